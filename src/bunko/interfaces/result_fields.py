"""Say of a search result where it is, what leads to it, why it matches, and what its text is without its heading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from bunko.interfaces.serialize import explanation_to_dict
from bunko.interfaces.text import single_line
from bunko.library.reading.document_files import document_file
from bunko.messages import translate
from bunko.sources import section_of
from bunko.text.readable import SITE_MARK, has_markup, readable
from bunko.types import ArmScore, Explanation

if TYPE_CHECKING:
    from bunko.search.paging import PageItem
    from bunko.search.passages import Passage
    from bunko.types import Hit, Tool

Tools = Mapping[str, "Tool"]  # the tools of a library by name

# The line below or above a heading that is drawn with signs.
_RULE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}")
# The headings of pages, slides and cells, without the title of the slide or of the section.
_PLACE_HEADING = re.compile(r"\A(?:(?:Page|Slide) \d{1,6}(?:: |\Z)|.+![A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7}\Z)")
# All that may stand in a link; a percent sign is part of an address that is encoded already.
_LINK_CHARS = "%/:=&?~#+!$,;'@()*[]"


def location(passage: Passage) -> str:
    """Return where a passage is, for people: with its page, slide or cell if it has one, else with its lines."""
    return f"{passage.hit.uri}:{passage.place}" if passage.place else passage.citation


def absolute_path(hit: Hit, tools: Tools) -> str:
    """Return the path of the file that a hit is in; empty for a web page and a document without a file."""
    tool = tools.get(hit.tool)
    file = document_file(tool, hit.uri) if tool else None
    return str(file) if file else ""


def link(hit: Hit, tools: Tools) -> str:
    """Return the address that opens a hit: of its file or its web page; empty if it has none."""
    return source_link(hit.tool, hit.uri, tools)


def source_link(tool_name: str, uri: str, tools: Tools) -> str:
    """Return the address that opens a document of a tool; empty if it has none."""
    if uri.lower().startswith(("http://", "https://")):
        return quote(uri, safe=_LINK_CHARS, errors="replace")
    tool = tools.get(tool_name)
    file = document_file(tool, uri) if tool else None
    return file.as_uri() if file else ""


def is_memo(hit: Hit, tools: Tools) -> bool:
    """Return whether a hit is a memo, which people know by its title and date."""
    tool = tools.get(hit.tool)
    return tool is not None and section_of(tool.kind) == "memos"


def memo_label(passage: Passage) -> str:
    """Return the title, date, tags and author of a memo."""
    hit = passage.hit
    tags = " ".join(f"#{tag}" for tag in hit.tags)
    return "  ".join(part for part in (hit.title, hit.date[:10], tags, passage.label.author) if part)


def heading_labels(passage: Passage) -> list[str]:
    """Return the headings above a passage as people read them: without the number of the page that its place names."""
    labels = list(passage.label.heading_path)
    if passage.place:
        labels = [_PLACE_HEADING.sub("", label) for label in labels]
    if has_markup(passage.hit.uri):
        labels = [" ".join(readable(label, passage.hit.uri).split()) for label in labels]
    return [label for label in labels if label]


def body_text(item: PageItem, *, titles: Sequence[str] = ()) -> str:
    """Return the text of a result without the headings and `titles` it begins with: they stand above it."""
    labels = (*item.passage.label.heading_path, *titles)
    headings = {letters for label in labels if (letters := _letters(label))}
    lines = item.text.replace("\r\n", "\n").split("\n")
    count = index = 0  # lines at the beginning that are headings, rules below them, or blank
    for index, line in enumerate(lines, 1):
        if line.strip() and not _RULE.fullmatch(line.strip()):
            if _letters(line) not in headings:
                break
            count = index
        elif count == index - 1 and count:
            count = index
    return "\n".join(lines[count:])


def _letters(text: str) -> str:
    return "".join(char for char in SITE_MARK.sub("", text).casefold() if char.isalnum())


_WORDING_CHARS = 30
_SENTENCE_CHARS = 60  # on a line that names many other things


def explanation_text(explanation: Explanation, score: float) -> str:
    """Return the explanation of a score in the user's language, on one line."""
    return "; ".join(f"{name} {value}" for name, value in explanation_rows(explanation, score))


def explanation_rows(explanation: Explanation, score: float, *, is_table: bool = False) -> list[tuple[str, str]]:
    """Return the parts of an explanation in the user's language: what each term and each arm adds to the score.

    In a table, each kind of terms that matched in place of others has a row of its own.
    """
    arithmetic = explanation_to_dict(explanation, score)
    scores = {(term["kind"], term["term"]): term["score"] for term in arithmetic["term_scores"]}
    rows = [("lane", translate(explanation.lane))]
    if explanation.terms:
        words = [(term, scores.get(("word", term), scores.get(("part", term)))) for term in explanation.terms]
        rows.append(("terms", " ".join(f"{term}{_added(points)}" for term, points in words)))
    if is_table:
        for kind in dict.fromkeys(kind for kind, _ in explanation.expansions):
            terms = [term for other, term in explanation.expansions if other == kind]
            rows.append((kind, " ".join(f"{term}{_added(scores.get((kind, term)))}" for term in terms)))
    elif explanation.expansions:
        expansions = [
            f"{term} ({translate(kind)}){_added(scores.get((kind, term)))}" for kind, term in explanation.expansions
        ]
        rows.append(("also", " ".join(expansions)))
    arms = (("bm25", explanation.bm25), ("vector", explanation.vector))
    rows += [(name, _arm_text(arm)) for name, arm in arms if arm]
    if explanation.sentence_score is not None:
        sentence = " ".join(explanation.nearest_sentence.split())
        sentence = sentence if len(sentence) <= _SENTENCE_CHARS else f"{sentence[:_SENTENCE_CHARS].rstrip()}…"
        rows.append(("nearest sentence", f"{explanation.sentence_score:.3f} {sentence}"))
    if explanation.near_words:
        pairs = (f"{pair.word} ≈ {pair.near} {pair.cosine:.2f}" for pair in explanation.near_words)
        rows.append(("near words", ", ".join(pairs)))
    if len(arithmetic["parts"]) > 1:
        names = [translate(part["arm"].replace("_", " ")) for part in arithmetic["parts"]]
        points = "".join(
            f" {'-' if part['points'] < 0 else '+'} {name} {abs(part['points']):.4f}"
            for name, part in zip(names, arithmetic["parts"], strict=True)
        )
        rows.append(("score", f"{explanation.explained_score(score):.4f} = {points.removeprefix(' + ')}"))
    if explanation.wordings:
        added = []
        for wording in explanation.wordings:
            text = single_line(wording.text) if wording.kind == "also" else translate(wording.kind)
            if wording.kind == "also" and len(text) > _WORDING_CHARS:
                text = f"{text[:_WORDING_CHARS].rstrip()}…"
            added += [f"{text}{_added(wording.added)}"] if wording.added else []
        rows.append(("wordings", f"{score:.4f} = {', '.join(added)}"))
    if explanation.reranker:
        rows.append(("reranker", _arm_text(explanation.reranker)))
    return [(translate(name), value) for name, value in rows]


def _arm_text(arm: ArmScore) -> str:
    return f"{arm.score:.3f} ({translate(f'rank {arm.rank}')})"


def _added(points: float | None) -> str:
    return f" +{points:.4f}" if points else ""
