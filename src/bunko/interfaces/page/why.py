"""Why a result was found, as the page shows it: what each term and each arm adds, as numbers and as bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bunko.interfaces.serialize import explanation_to_dict
from bunko.text.labels import remove_hidden_chars

if TYPE_CHECKING:
    from bunko.types import ArmScore, Hit, NearWord

# The width of the picture in its own units; it scales with the column that it stands in.
WIDTH = 400.0
_MAX_TERMS = 24
_MIN_VISIBLE = 1.5  # a bar that is not 0 can be seen


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """A bar of the picture."""

    kind: str  # bm25, vector, or the kind of a term
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class TermRow:
    """A term with what it adds to the score by words."""

    term: str
    kind: str
    score: str
    counts: bool
    fields: list[str]
    bar: ScoreBar


@dataclass(frozen=True, slots=True)
class PartRow:
    """An arm with the arithmetic of what it adds to the score."""

    arm: str
    score: str
    rank: int | None
    value: str
    weight: str
    points: str
    bar: ScoreBar


@dataclass(frozen=True, slots=True)
class WordingRow:
    """The query, or another wording of it, with what it adds to the score."""

    kind: str
    text: str
    rank: int | None
    weight: str
    added: str


@dataclass(frozen=True, slots=True)
class Why:
    """Everything about the score of one result."""

    lane: str
    fusion: str
    score: str
    words_score: str  # the sum of the terms; empty if words did not find it
    parts: list[PartRow]
    terms: list[TermRow]
    hidden_terms: int
    hidden_score: str
    best_sentence: str
    nearest_sentence: str
    sentence_score: str  # its cosine; empty if its sentences were not compared
    near_words: tuple[NearWord, ...]
    reranker: ArmScore | None
    wordings: list[WordingRow]
    wordings_score: str  # with them; the parts add up to what one of them finds by itself
    width: float = WIDTH


def explain_result(hit: Hit) -> Why:
    """Return the explanation of a hit for the page; the numbers add up to its score as it is shown."""
    assert hit.explanation is not None
    why = explanation_to_dict(hit.explanation, hit.score)
    terms = sorted(why["term_scores"], key=lambda term: -term["score"])
    visible, hidden = terms[:_MAX_TERMS], terms[_MAX_TERMS:]
    highest = max((term["score"] for term in terms), default=0.0)
    nearest = why["nearest_sentence"]
    return Why(
        lane=why["lane"],
        fusion=why["fusion"],
        score=f"{hit.explanation.explained_score(hit.score):.4f}",
        words_score=f"{why['bm25']['score']:.4f}" if why["bm25"] else "",
        parts=_part_rows(why["parts"], hit.explanation.explained_score(hit.score) if why["fusion"] == "rrf" else 1.0),
        terms=[_term_row(term, highest) for term in visible],
        hidden_terms=len(hidden),
        hidden_score=f"{sum(term['score'] for term in hidden):.4f}",
        best_sentence=remove_hidden_chars(why["best_sentence"]),
        nearest_sentence=remove_hidden_chars(nearest["text"] if nearest else ""),
        sentence_score=f"{nearest['score']:.4f}" if nearest else "",
        near_words=hit.explanation.near_words,
        reranker=hit.explanation.reranker,
        wordings=[
            WordingRow(
                wording["kind"],
                remove_hidden_chars(wording["text"]),
                wording["rank"],
                f"{wording['weight']:.4f}",
                f"{wording['added']:.4f}",
            )
            for wording in why.get("wordings", ())
        ],
        wordings_score=f"{hit.score:.4f}",
    )


def _part_rows(parts: list[dict[str, Any]], highest: float) -> list[PartRow]:
    """Return the arms; their bars stand one behind the other, and what is taken away covers the end of the last one."""
    rows, x = [], 0.0
    for part in parts:
        width = _width(abs(part["points"]), highest)
        x -= width if part["points"] < 0 else 0.0
        bar = ScoreBar(part["arm"], round(x, 1), width)
        rows.append(
            PartRow(
                part["arm"], f"{part['score']:.4f}", part["rank"], f"{part['value']:.4f}", f"{part['weight']:.4f}",
                f"{part['points']:.4f}", bar,
            )
        )  # fmt: skip
        x += width if part["points"] > 0 else 0.0
    return rows


def _term_row(term: dict[str, Any], highest: float) -> TermRow:
    bar = ScoreBar(term["kind"], 0.0, _width(term["score"], highest))
    return TermRow(
        remove_hidden_chars(term["term"]), term["kind"], f"{term['score']:.4f}", term["score"] > 0, term["fields"], bar
    )


def _width(value: float, highest: float) -> float:
    if value <= 0 or highest <= 0:
        return 0.0
    return round(max(WIDTH * min(value / highest, 1.0), _MIN_VISIBLE), 1)
