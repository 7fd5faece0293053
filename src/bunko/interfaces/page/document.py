"""The page that shows a document: a part of it around the hit, its outline, and the way to the other parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bunko.errors import UnknownName
from bunko.interfaces.page.query import document_address
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.results import TextSegment, mark_terms
from bunko.interfaces.page.view import PageView
from bunko.interfaces.sender import is_local_user
from bunko.interfaces.text import single_line
from bunko.library.reading.document_files import document_file
from bunko.readers.outline import unify_line_ends
from bunko.search.passages import display_label, snippet_terms
from bunko.search.reading import OutlineHeading, outline
from bunko.text.labels import remove_hidden_chars
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
_RANGE = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?")
_MAX_CACHED = 64
_cached_headings: dict[tuple[object, ...], tuple[OutlineHeading, ...]] = {}
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
        document = show_document(
            library,
            request.path_params["tool"],
            request.path_params["path"],
            hit=parameters.get("hit", ""),
            lines=parameters.get("lines", ""),
            terms=parameters.get("q", ""),
            at=int(at) if (at := parameters.get("at", "")).isascii() and at.isdigit() else 0,
        )
        values = {"document": document, "is_local_user": is_local_user(request)}
        template = "document_part.html" if parameters.get("part") else "document.html"
        if parameters.get("part") and parameters.get("lines"):
            document["outline"] = []  # the page that loads further lines has it already
        return render(request, template, values, script_sections=["document"])


def show_document(
    library: LibraryAccess, tool_name: str, path: str, *, hit: str = "", lines: str = "", terms: str = "", at: int = 0
) -> dict[str, object]:
    """Return what is shown of a document: some lines, or those around a hit with the terms of a query marked.

    `at` is the character of the document that was found.
    """
    tool, document = find_document(library, tool_name, path)
    text_lines = unify_line_ends(document.text).split("\n")
    if len(text_lines) > 1 and not text_lines[-1]:
        text_lines.pop()
    first_line = document.lines.first
    hit_range = _parse_range(hit)
    start, end = _choose_part(text_lines, _to_index(hit_range, first_line), _to_index(_parse_range(lines), first_line))
    shower = _LineShower(document, hit_range, snippet_terms(terms) if terms else SnippetTerms({}), at)
    shown_lines = [shower.show(index, text) for index, text in enumerate(text_lines[start:end], start)]
    parameters = {"hit": hit, "q": terms}
    part_size = max(end - start, 1)
    file = document_file(tool, document.uri) if library.caller.rights.can_write(tool.name) else None
    is_text = document.media_type.startswith("text/") and document.media_type != "text/html"
    return {
        "tool": single_line(tool.name),
        "uri": single_line(document.uri),
        "name": display_label(document.title) or single_line(document.uri).rpartition("/")[2],
        "date": document.date[:10],
        "tags": [display_label(tag) for tag in document.tags[:_MAX_TAGS]],
        "blocks": [
            shown_lines[position : position + _BLOCK_LINES] for position in range(0, len(shown_lines), _BLOCK_LINES)
        ],
        "is_prose": document.media_type.startswith(_PROSE_TYPES),
        "total_lines": len(text_lines),
        "first": first_line + start,
        "last": first_line + end - 1,
        "address": document_address(tool.name, document.uri),
        "before": document_address(
            tool.name,
            document.uri,
            lines=f"{first_line + max(start - part_size, 0)}-{first_line + start - 1}",
            **parameters,
        )
        if start
        else "",
        "after": document_address(
            tool.name, document.uri, lines=f"{first_line + end}-{first_line + end + part_size - 1}", **parameters
        )
        if end < len(text_lines)
        else "",
        "outline": _outline_links(tool, document, parameters),
        "api_path": document_address(tool.name, document.uri).replace("/documents/", "/api/v1/documents/", 1),
        "line": hit_range[0] if hit_range else first_line,
        "editor_link": (
            f"vscode://file{file.as_uri().removeprefix('file://')}:{hit_range[0] if hit_range else 1}"
            if file and is_text
            else ""
        ),
        "web_address": document.uri
        if tool.kind == "web" and document.uri.lower().startswith(("http://", "https://"))
        else "",
    }


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

    def __init__(self, document: StoredDocument, hit: tuple[int, int] | None, terms: SnippetTerms, at: int) -> None:
        self._document, self._hit, self._terms = document, hit, terms
        self._levels = {heading.line: heading.level for heading in _headings(document)}
        # The line and column of the character that was found, both counted from 0.
        self._at_line = document.text.count("\n", 0, at)
        self._at_column = at - (document.text.rfind("\n", 0, at) + 1)

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
        level = 0 if self._document.lines.is_single_line else self._levels.get(number, 0)
        return DocumentLine(number, segments, level, is_hit, is_cut=len(text) > _LINE_CHARS)


def _parse_range(text: str) -> tuple[int, int] | None:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if 1 <= first <= last else None


def _to_index(lines: tuple[int, int] | None, first_line: int) -> tuple[int, int] | None:
    return (lines[0] - first_line, lines[1] - first_line) if lines else None


def _choose_part(lines: list[str], hit: tuple[int, int] | None, wanted: tuple[int, int] | None) -> tuple[int, int]:
    """Return which lines are shown: those that are wanted, else those around the hit; the end is not included."""
    count = len(lines)
    if wanted is not None:
        start, end = min(max(wanted[0], 0), count - 1), min(wanted[1] + 1, count)
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


def _outline_links(tool: Tool, document: StoredDocument, parameters: dict[str, str]) -> list[dict[str, object]]:
    """Return the headings with their addresses; of very many, only those of the upper levels."""
    headings = _headings(document)
    for level in (6, 5, 4, 3, 2, 1):
        if len(headings) <= _MAX_HEADINGS:
            break
        headings = tuple(heading for heading in headings if heading.level < level)
    return [
        {
            "level": min(heading.level, 6),
            "title": display_label(heading.title),
            "line": heading.line,
            "address": document_address(
                tool.name, document.uri, lines=f"{heading.line}-{heading.line + _PART_LINES - 1}", **parameters
            )
            + f"#L{heading.line}",
        }
        for heading in headings[:_MAX_HEADINGS]
    ]


def _headings(document: StoredDocument) -> tuple[OutlineHeading, ...]:
    """Return the headings of a document, found once for each text: all parts of a large document need them."""
    key = document.uri, document.content_hash, document.lines
    headings = _cached_headings.get(key)
    if headings is None:
        if len(_cached_headings) >= _MAX_CACHED:
            _cached_headings.clear()
        headings = _cached_headings[key] = tuple(outline(document))
    return headings
