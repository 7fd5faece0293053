"""Show answers: their sentences with citations and remarks, and their sources; for all interfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from bunko.interfaces.fields import Fields, of
from bunko.text.readable import has_markup, readable
from bunko.types.answers import DENIAL, AnswerSource, CheckedAnswer, CheckedCitation, CheckedSentence

NOTHING_FOUND = "The library does not say."
QUOTED = "These sentences are quoted from your documents. No chat model was used."
_QUOTED_INSTEAD = "These sentences are quoted from your documents."
ADDED_NOTE = "+ marks a source that bunko found; the model did not cite it."
_MAX_MISSING = 6
_CODE_ENDS = ("```", "~~~")
_DENIED = "a source says the opposite"
_STATE_REMARKS = {
    "changed": "the source has changed since",
    "deleted": "the source was deleted since",
    "unchecked": "the source could not be checked",
}


def visible_sentences(answer: CheckedAnswer, *, strict: bool = False) -> list[CheckedSentence]:
    """Return the sentences to show; with `strict`, none that the sources do not support."""
    sentences = [sentence for sentence in answer.sentences if sentence.holds or not strict]
    # Headings and introductions alone say nothing.
    if strict and not any(sentence.status == "supported" for sentence in sentences):
        return []
    # Japanese has no space between sentences: a citation right before the next one would look like its own.
    spaced = [
        replace(sentence, before=" ") if not sentence.before and previous.citations else sentence
        for previous, sentence in pairwise(sentences)
    ]
    return [*sentences[:1], *spaced]


def readable_sentences(answer: CheckedAnswer, *, strict: bool = False) -> list[CheckedSentence]:
    """Return the sentences to show to people: those that are quoted from marked-up text without its marks."""
    sentences = visible_sentences(answer, strict=strict)
    if answer.model:
        return sentences
    uris = {source.number: source.uri for source in answer.sources}
    return [
        replace(sentence, text=_without_marks(sentence.text, uri))
        if has_markup(uri := uris.get(sentence.best_source, ""))
        else sentence
        for sentence in sentences
    ]


def _without_marks(text: str, uri: str) -> str:
    # A quotation begins after the marks of its line, so one of a pair may be missing.
    opening = next((mark for mark in ("**", "*", "`") if text.count(mark) % 2), "")
    is_closed = text.partition(opening)[0][-1:].strip() if opening else ""
    return readable(f"{opening}{text}" if is_closed else text, uri)


def is_answered(answer: CheckedAnswer, *, strict: bool = False) -> bool:
    """Return whether a reader gets an answer."""
    return answer.is_found and bool(visible_sentences(answer, strict=strict))


def visible_sources(answer: CheckedAnswer, *, strict: bool = False) -> list[AnswerSource]:
    """Return the sources that the sentences to show cite."""
    numbers = {
        citation.number
        for sentence in visible_sentences(answer, strict=strict)
        for citation in visible_citations(sentence)
    }
    return [source for source in answer.cited_sources if source.number in numbers]


def visible_citations(sentence: CheckedSentence) -> list[CheckedCitation]:
    """Return the citations to show: those that hold, and of a supported sentence only those that say it."""
    citations = [citation for citation in sentence.citations if citation.holds]
    supporting = [citation for citation in citations if citation.supports]
    return supporting if supporting and sentence.status == "supported" else citations


def introduction(answer: CheckedAnswer, *, strict: bool = False) -> str:
    """Return who wrote an answer."""
    if answer.model:
        return f"Written by {answer.model}. What the sources do not say is {'left out' if strict else 'marked'}."
    return _QUOTED_INSTEAD if answer.notices else QUOTED


def citation_marks(sentence: CheckedSentence) -> str:
    """Return the citations of a sentence to show, as [1][+2]; + is one that bunko added."""
    numbers = {citation.number: citation.added for citation in visible_citations(sentence)}
    return "".join(f"[{'+' if is_added else ''}{number}]" for number, is_added in numbers.items())


def remarks(sentence: CheckedSentence) -> list[str]:
    """Return what a reader must know of a sentence; nothing if it can be relied on."""
    result = [
        f"there is no source {citation.label}" for citation in sentence.citations if citation.state == "not_shown"
    ]
    states = dict.fromkeys(citation.state for citation in sentence.citations)
    result += [_STATE_REMARKS[state] for state in states if state in _STATE_REMARKS]
    if sentence.holds:
        return result
    missing = ", ".join([item for item in sentence.missing if item != DENIAL][:_MAX_MISSING])
    is_denied = DENIAL in sentence.missing
    if sentence.status == "partly":
        result.append(f"only partly in the sources, not: {missing}" if missing else "only partly in the sources")
    elif missing or not is_denied:
        result.append(f"not in the sources: {missing}" if missing else "not in the sources")
    return [*result, _DENIED] if is_denied else result


def split_end(text: str) -> tuple[str, str, str]:
    """Return a sentence up to where its citations go, what stands before these, and the rest of the sentence.

    In a row of a Markdown table, they go into the last cell; a line that ends a code block has room for nothing else.
    """
    if text.startswith("|") and text.endswith("|") and len(text) > 1:
        return text[:-1].rstrip(), " ", " |"
    return text, "\n" if text.endswith(_CODE_ENDS) else " ", ""


def answer_text(
    answer: CheckedAnswer, *, strict: bool = False, translate: Callable[[str], str] = lambda text: text
) -> str:
    """Return the sentences of an answer with their citations, each remark in round brackets after its sentence."""
    parts = []
    for sentence in visible_sentences(answer, strict=strict):
        marks = citation_marks(sentence)
        notes = "; ".join(map(translate, remarks(sentence)))
        text, space, end = split_end(sentence.text)
        added = " ".join(filter(None, [marks, f"({notes})" if notes else ""]))
        parts.append(f"{sentence.before}{text}{space if added else ''}{added}{end}")
    return "".join(parts).strip() or translate(NOTHING_FOUND)


class AnswerCitation(Fields):
    """A citation of a sentence."""

    label: str
    source: int | None = of(lambda citation: citation.number or None)
    state: str
    supports: bool
    added: bool


class SentenceFields(Fields):
    """A sentence, compared with the sources that it cites."""

    text: str
    status: str
    missing: list[str]
    best_source: int | None = of(lambda sentence: sentence.best_source or None)
    citations: list[AnswerCitation]


class AnswerReply(Fields):
    """An answer with its sources."""

    question: str
    found: bool
    text: str
    model: str
    sentences: list[SentenceFields]
    sources: list[dict[str, object]]
    prompt_tokens: int | None
    answer_tokens: int | None
    cost: Any = of(optional=True)
    notices: list[str] = of(optional=True)


def answer_to_dict(answer: CheckedAnswer, *, strict: bool = False) -> dict[str, object]:
    """Return an answer as a dictionary, with the sources that it cites and the others that were read."""
    cited = {source.number for source in answer.cited_sources}
    return AnswerReply.fill(
        answer,
        found=is_answered(answer, strict=strict),
        text=answer_text(answer, strict=strict),
        sentences=[SentenceFields.fill(sentence) for sentence in visible_sentences(answer, strict=strict)],
        sources=[
            asdict(source) | {"headings": list(source.headings), "cited": source.number in cited}
            for source in answer.sources
        ],
        cost=answer.cost or None,
    )
