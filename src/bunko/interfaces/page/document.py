"""The page that shows a document, to read or as source: a part of it, its outline, and the way to other parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse

from bunko.errors import PackageError, UnknownName
from bunko.interfaces.page.query import document_address
from bunko.interfaces.page.reading.links import Links, find_heading, heading_lines
from bunko.interfaces.page.reading.marking import Marking
from bunko.interfaces.page.reading.parts import Parts, document_lines, document_marks
from bunko.interfaces.page.reading.render import is_prose, render_part
from bunko.interfaces.page.rendering import render, translate
from bunko.interfaces.page.results import TextSegment, mark_terms
from bunko.interfaces.page.view import PageView
from bunko.interfaces.sender import choose_language, is_local_user
from bunko.interfaces.text import single_line
from bunko.library.reading.document_files import document_file
from bunko.readers.places import NOTEBOOK, PDF, PRESENTATION, WORKBOOK
from bunko.search.passages import display_label, snippet_terms
from bunko.text.labels import remove_hidden_chars
from bunko.text.readable import readable_title
from bunko.text.snippets import SnippetTerms

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess
    from bunko.types import Tool
    from bunko.types.records import StoredDocument

# Lines of a part, and of a block in it, which scripts take out again when it is far from the screen.
_PART_LINES, _BLOCK_LINES = 300, 50
_LINES_BEFORE_HIT = 100
_PART_CHARS = 80_000
# A longer line is shown around what was found in it, or its beginning.
_LINE_CHARS, _CHARS_BEFORE_HIT = 4000, 500
_MAX_HEADINGS = 400
_MAX_TAGS = 20
_LINE = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?")
VIEWS = ("read", "source")
# What the styles need to know of a format.
_FORMATS = {PDF: "pages", PRESENTATION: "pages", WORKBOOK: "sheets", NOTEBOOK: "cells"}
_PROSE_TYPES = ("text/markdown", "text/plain", "text/html", "text/org", "application/", "message/")


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A line of a document as it is shown."""

    number: int
    segments: list[TextSegment]
    level: int  # of a heading; 0 for other lines
    is_hit: bool
    is_cut: bool  # at its beginning or end


class DocumentPage(PageView):
    """Shows a document."""

    async def answer(self, request: Request) -> Response:
        """Return the page of a document, or only its article or its lines for scripts."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        parameters = request.query_params
        tool_name, path = request.path_params["tool"], request.path_params["path"]
        if section := parameters.get("section", ""):
            return _redirect_to_section(request, library, tool_name, path, section)
        document = show_document(
            library,
            tool_name,
            path,
            hit=parameters.get("hit", ""),
            lines=parameters.get("lines", ""),
            terms=parameters.get("q", ""),
            at=int(at) if (at := parameters.get("at", "")).isascii() and at.isdigit() else 0,
            view=parameters.get("view", ""),
            table_label=translate(choose_language(request), "document.table"),
        )
        values = {"document": document, "is_local_user": is_local_user(request)}
        template = "document_part.html" if parameters.get("part") else "document.html"
        if parameters.get("part") and parameters.get("lines") and not parameters.get("outline"):
            document["outline"] = []  # the page that loads further lines has it already
        return render(request, template, values, script_sections=["document"])


def show_document(
    library: LibraryAccess,
    tool_name: str,
    path: str,
    *,
    hit: str = "",
    lines: str = "",
    terms: str = "",
    at: int = 0,
    view: str = "",
    table_label: str = "",
) -> dict[str, object]:
    """Return what is shown of a document: some lines, or those around a hit with the terms of a query marked.

    `at` is the character of the document that was found, `view` one of VIEWS. Without it prose is read, as long as the
    hit is in what people read, and of code the source is shown.
    """
    tool, document = find_document(library, tool_name, path)
    place = _Place(
        tool,
        document,
        _parse_range(hit),
        (int(lines), 0) if _LINE.fullmatch(lines) else _parse_range(lines),
        snippet_terms(terms) if terms else SnippetTerms({}),
        at,
        {"hit": hit, "q": terms, "at": at, "view": view if view in VIEWS else ""},
    )
    name = display_label(readable_title(document.title, document.uri)) or single_line(document.uri).rpartition("/")[2]
    shown = None
    if view == "read" or (view != "source" and is_prose(document)):
        try:
            shown = _read_part(library, place, name, table_label)
        except PackageError:
            if view == "read":
                raise
    if shown is None or (not view and hit and not lines and not shown["shows_hit"]):
        shown = _source_part(place)
    file = document_file(tool, document.uri) if library.caller.rights.can_write(tool.name) else None
    is_text = document.media_type.startswith("text/") and document.media_type != "text/html"
    line = place.hit[0] if place.hit else document.lines.first
    return shown | {
        "tool": single_line(tool.name),
        "uri": single_line(document.uri),
        "name": name,
        "date": document.date[:10],
        "tags": [display_label(tag) for tag in document.tags[:_MAX_TAGS]],
        "is_prose": document.media_type.startswith(_PROSE_TYPES),
        "views": [(name, place.address(view=name)) for name in VIEWS],
        "address": document_address(tool.name, document.uri),
        "outline": _outline_links(place),
        "api_path": document_address(tool.name, document.uri).replace("/documents/", "/api/v1/documents/", 1),
        "line": line,
        "editor_link": (
            f"vscode://file{file.as_uri().removeprefix('file://')}:{place.hit[0] if place.hit else 1}"
            if file and is_text
            else ""
        ),
        "web_address": document.uri
        if tool.kind == "web" and document.uri.lower().startswith(("http://", "https://"))
        else "",
    }


@dataclass(frozen=True, slots=True)
class _Place:
    """What of a document is asked for; lines are those of its file."""

    tool: Tool
    document: StoredDocument
    hit: tuple[int, int] | None
    wanted: tuple[int, int] | None  # the second one is 0 if it does not matter
    terms: SnippetTerms
    at: int
    parameters: dict[str, Any]

    def address(self, start: int = 0, end: int = 0, **changes: str) -> str:
        """Return the address of the lines from `start`, counted from 0, to before `end`; 0: as many as fit."""
        first = self.document.lines.first
        lines = f"{first + start}-{first + end - 1}" if end else f"{first + start}" if start else ""
        return document_address(self.tool.name, self.document.uri, **(self.parameters | {"lines": lines} | changes))

    def to_index(self, lines: tuple[int, int] | None) -> tuple[int, int] | None:
        """Return lines of the file as lines of the document, counted from 0; of many that are one, all."""
        if lines is None:
            return None
        first = self.document.lines.first
        return lines[0] - first, (lines[1] - first if lines[1] else -1)

    def found_character(self) -> tuple[int, int]:
        """Return the line and the column of the character that was found, both counted from 0."""
        text, at = self.document.text, self.at
        return text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)


def _redirect_to_section(
    request: Request, library: LibraryAccess, tool_name: str, path: str, section: str
) -> RedirectResponse:
    """Return the way to the heading that an anchor names; without one, to the document."""
    _, document = find_document(library, tool_name, path)
    index = find_heading(heading_lines(document_marks(document).headings), section)
    number = document.lines.file_line(index + 1) if index is not None else 0
    parameters = {name: text for name, text in request.query_params.items() if name != "section"}
    address = document_address(tool_name, document.uri, **(parameters | ({"lines": number} if number else {})))
    return RedirectResponse(f"{address}#L{number}" if number else address, 303)


def _read_part(library: LibraryAccess, place: _Place, name: str, table_label: str) -> dict[str, Any]:
    """Return a part of a document as people read it."""
    document, parts = place.document, Parts(place.document)
    hit, wanted = place.to_index(place.hit), place.to_index(place.wanted)
    if document.lines.is_single_line and hit:
        hit = 0, len(parts.lines) - 1
    if wanted is None:
        part = parts.around(hit)
    else:
        part = parts.exactly(wanted[0], wanted[1] + 1) if wanted[1] >= 0 else parts.from_line(wanted[0])
    marking = Marking(document.lines, hit, place.terms)
    links = Links(library, place.tool, document.uri, document_marks(document).headings)
    rendered = render_part(
        document, parts, part, marking, links, title=name, table_label=table_label, at=place.found_character()
    )
    start, end, count = part.start, part.end, len(parts.lines)
    return _part_values(place, start, end, count) | {
        "view": "read",
        "html": rendered.html,
        "shows_hit": rendered.shows_hit,
        "is_cut": rendered.is_cut,
        "format": _FORMATS.get(document.media_type, ""),
        "before": place.address(parts.before(start), start) if start > parts.body else "",
        "after": place.address(end, parts.after(end).end) if end < count else "",
    }


def _source_part(place: _Place) -> dict[str, Any]:
    """Return numbered lines of a document."""
    lines = document_lines(place.document)
    start, end = _choose_part(lines, place.to_index(place.hit), place.to_index(place.wanted))
    shower = _LineShower(place)
    shown_lines = [shower.show(index, text) for index, text in enumerate(lines[start:end], start)]
    size = max(end - start, 1)
    return _part_values(place, start, end, len(lines)) | {
        "view": "source",
        "blocks": [
            shown_lines[position : position + _BLOCK_LINES] for position in range(0, len(shown_lines), _BLOCK_LINES)
        ],
        "before": place.address(max(start - size, 0), start) if start else "",
        "after": place.address(end, end + size) if end < len(lines) else "",
    }


def _part_values(place: _Place, start: int, end: int, count: int) -> dict[str, Any]:
    first = place.document.lines.first
    return {"total_lines": first + count - 1, "first": first + start, "last": first + end - 1}


def find_document(library: LibraryAccess, tool_name: str, path: str) -> tuple[Tool, StoredDocument]:
    """Return the document of a tool with this path."""
    tool = next((tool for tool in library.tools() if tool.name == tool_name), None)
    document = library.document(tool, path) if tool is not None else None
    if tool is None or document is None:
        raise UnknownName(
            f"There is no document or passage {path[:200]!r}", hint="Give a path or citation as a search returned it."
        )
    return tool, document


class _LineShower:
    """Turns lines of a document into what is shown of them."""

    def __init__(self, place: _Place) -> None:
        self._document, self._hit, self._terms = place.document, place.hit, place.terms
        self._levels = {heading.line: heading.level for heading in document_marks(place.document).headings}
        self._at_line, self._at_column = place.found_character()

    def show(self, index: int, text: str) -> DocumentLine:
        """Return a line by its index in the document."""
        number = self._document.lines.file_line(index + 1)
        is_hit = self._hit is not None and self._hit[0] <= number <= self._hit[1]
        start = 0
        if len(text) > _LINE_CHARS:
            column = self._at_column if index == self._at_line and is_hit else 0
            start = max(min(column - _CHARS_BEFORE_HIT, len(text) - _LINE_CHARS), 0)
        visible = remove_hidden_chars(text[start : start + _LINE_CHARS])
        segments = mark_terms(visible, self._terms) if is_hit and self._terms.weights else [TextSegment(visible)]
        level = 0 if self._document.lines.is_single_line else self._levels.get(index, 0)
        return DocumentLine(number, segments, level, is_hit, is_cut=len(text) > _LINE_CHARS)


def _parse_range(text: str) -> tuple[int, int] | None:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if 1 <= first <= last else None


def _choose_part(lines: list[str], hit: tuple[int, int] | None, wanted: tuple[int, int] | None) -> tuple[int, int]:
    """Return which lines are shown: those that are wanted, else those around the hit; the end is not included."""
    count = len(lines)
    if wanted is not None:
        start = min(max(wanted[0], 0), count - 1) if wanted[1] >= 0 or count > _PART_LINES else 0
        end = min(wanted[1] + 1, count) if wanted[1] >= 0 else count
    else:
        start = max(min(hit[0] - _LINES_BEFORE_HIT, count - 1), 0) if hit else 0
        end = count
    end = min(max(end, start + 1), start + _PART_LINES)
    size = 0
    for index in range(start, end):
        size += min(len(lines[index]), _LINE_CHARS)
        if size > _PART_CHARS and (wanted is not None or hit is None or index > hit[0]):
            return start, max(index, start + 1)
    return start, end


def _outline_links(place: _Place) -> list[dict[str, object]]:
    """Return the headings with their addresses; of very many, only those of the upper levels."""
    headings = document_marks(place.document).headings
    for level in (6, 5, 4, 3, 2, 1):
        if len(headings) <= _MAX_HEADINGS:
            break
        headings = tuple(heading for heading in headings if heading.level < level)
    return [
        {
            "level": min(heading.level, 6),
            "title": display_label(readable_title(heading.title, place.document.uri)),
            "line": (line := place.document.lines.file_line(heading.line + 1)),
            "address": f"{place.address(lines=str(line))}#L{line}",
        }
        for heading in headings[:_MAX_HEADINGS]
    ]
