"""What the page shows of each search result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from bunko.interfaces.page.query import PageQuery, document_address, like_address
from bunko.interfaces.page.sheet_rows import find_sheet_rows
from bunko.interfaces.page.why import Why, explain_result
from bunko.interfaces.result_fields import body_text, heading_labels, location
from bunko.interfaces.text import single_line
from bunko.search.nearest_sentence import nearest_sentence
from bunko.search.passages import display_label, snippet_terms
from bunko.sources import section_of
from bunko.text.labels import remove_hidden_chars
from bunko.text.readable import excerpt_text, excerpt_with_code, readable_title
from bunko.text.snippets import SnippetTerms, highlight_ranges, snippet_range

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.search.paging import PageItem

_MAX_TAGS = 6
# About two lines of a wide screen; a Japanese character says as much as two others, and is as wide.
_EXCERPT_CHARS, _JAPANESE_EXCERPT_CHARS = 240, 130


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A part of a text, and whether it is a term of the query, or code."""

    text: str
    is_marked: bool = False
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One search result."""

    number: int
    key: str  # the same for the same passage in another list
    name: str
    trail: list[str]  # the title and headings above it
    excerpt: list[TextSegment]
    sheet_header: list[str]  # with its rows shown instead of an excerpt; empty if it is no part of a sheet
    sheet_rows: list[list[list[TextSegment]]]
    tool: str
    uri: str
    location: str
    citation: str
    date: str
    author: str
    tags: list[str]
    trust: str
    more: int
    score: str
    address: str  # of the document with the hit
    beside: str  # the same, beside the results
    why_address: str
    like_address: str  # of documents like this one
    markdown: str
    line: int
    why: Why | None
    moved: int | None  # how many ranks it rose, None if it is new


class ResultBuilder:
    """Builds the results of one search of a page; `before` are their keys with the settings as they are."""

    def __init__(self, library: Library, query: PageQuery, searched_query: str, before: Sequence[str] = ()) -> None:
        self._library, self._query, self._before = library, query, before
        self._terms = snippet_terms(searched_query)
        self._memo_tools = {tool.name for tool in library.tools() if section_of(tool.kind) == "memos"}

    def build(self, items: Sequence[PageItem]) -> list[Result]:
        """Return the results of a page."""
        # A cursor is a digest, then the number of hits before it.
        parts = self._query.cursor.split(".")
        first = int(parts[1]) + 1 if len(parts) > 1 and parts[1].isdigit() else 1
        return [self._build(item, number) for number, item in enumerate(items, first)]

    def _build(self, item: PageItem, number: int) -> Result:
        query, terms, before = self._query, self._terms, self._before
        passage, hit = item.passage, item.passage.hit
        lines = f"L{passage.first_line}-L{passage.last_line}"
        labels = [display_label(label) for label in heading_labels(passage)]
        title = display_label(readable_title(hit.title, hit.uri))
        file_name = single_line(hit.uri).rstrip("/").rpartition("/")[2]
        name = (labels[-1] if labels else title) or file_name
        if hit.tool in self._memo_tools:  # people know it by its title, or by its day
            name = title or display_label(file_name.rpartition("#")[2])
        trail = list(dict.fromkeys(label for label in (title, *labels) if label and label != name))
        parameters: dict[str, Any] = {"hit": lines, "q": query.q, "at": passage.start}
        text = (
            remove_hidden_chars(body_text(item, titles=(hit.title,))).strip() or remove_hidden_chars(item.text).strip()
        )
        key, sheet = result_key(item), find_sheet_rows(passage, terms, self._library.document_of)
        return Result(
            number=number,
            key=key,
            name=name,
            trail=trail,
            excerpt=_excerpt(*excerpt_with_code(text, hit.uri), terms, excerpt_text(nearest_sentence(hit), hit.uri)),
            sheet_header=sheet.header if sheet else [],
            sheet_rows=[[mark_terms(cell, terms) for cell in row] for row in sheet.rows] if sheet else [],
            tool=single_line(hit.tool),
            uri=hit.uri,
            location=single_line(location(passage)),
            citation=single_line(passage.citation),
            date=hit.date[:10],
            author=display_label(passage.label.author),
            tags=[display_label(tag) for tag in hit.tags[:_MAX_TAGS]],
            trust=hit.trust,
            more=item.more_in_document,
            score=f"{hit.score:.4f}",
            address=document_address(hit.tool, hit.uri, **parameters),
            beside=query.address(open=f"{hit.tool}/{hit.uri}", hit=lines, at=passage.start),
            like_address=like_address(hit.tool, hit.uri, lang=query.lang),
            why_address=query.address(why=0 if query.why == number else number),
            markdown=_markdown(single_line(passage.citation), name, text),
            line=passage.first_line,
            why=explain_result(hit) if hit.explanation else None,
            moved=before.index(key) + 1 - number if key in before else None,
        )


def result_key(item: PageItem) -> str:
    """Return what names a passage in every list."""
    hit = item.passage.hit
    return f"{hit.tool}/{hit.uri}/{hit.chunk.index}"


def mark_terms(text: str, terms: SnippetTerms) -> list[TextSegment]:
    """Return a text cut into parts, with those that are terms of the query marked."""
    return [segment for segment in _cut(text, 0, len(text), highlight_ranges(text, terms)) if segment.text]


def _cut(text: str, start: int, end: int, marks: Sequence[tuple[int, int]]) -> Iterator[TextSegment]:
    for mark_start, mark_end in marks:
        yield TextSegment(text[start:mark_start])
        yield TextSegment(text[mark_start:mark_end], is_marked=True)
        start = mark_end
    yield TextSegment(text[start:end])


def _is_mostly_ascii(text: str) -> bool:
    """Return whether most of the beginning of a text are letters of Western languages."""
    beginning = text[:400]
    return 2 * len(beginning.encode("ascii", "ignore")) >= len(beginning)


def _excerpt(paragraph: str, code: Sequence[tuple[int, int]], terms: SnippetTerms, sentence: str) -> list[TextSegment]:
    """Return the part of a text around the terms of the query, or without any around the nearest sentence."""
    size = _EXCERPT_CHARS if _is_mostly_ascii(paragraph) else _JAPANESE_EXCERPT_CHARS
    start, end = snippet_range(paragraph, terms, size, sentence=sentence)
    before, after = "… " if start else "", " …" if end < len(paragraph) else ""
    # Marked as parts of the whole text, whose words are known already.
    marks = highlight_ranges(paragraph, terms)
    borders = {start, end, *(border for border in chain(*marks, *code) if start < border < end)}
    segments = [
        TextSegment(paragraph[first:last], is_marked=_is_within(first, marks), is_code=_is_within(first, code))
        for first, last in pairwise(sorted(borders))
    ]
    return [segment for segment in (TextSegment(before), *segments, TextSegment(after)) if segment.text]


def _is_within(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= position < last for first, last in ranges)


def _markdown(citation: str, name: str, text: str) -> str:
    """Return a passage as a quotation with its source."""
    quotation = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
    return f"{quotation}\n>\n> — {name} ({citation})\n"
