"""Read a document, the cited lines of one, a section or some lines around them, in parts that fit a token budget."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bunko.errors import QueryError, UnknownName
from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.readers.places import find_place, place_of
from bunko.search.citations import Citation
from bunko.search.paging import Cursor, check_cursor, parse_cursor, truncate_to_budget
from bunko.search.passages import passage_hash
from bunko.text.labels import remove_hidden_chars
from bunko.text.normalise import normalise
from bunko.types import format_citation
from bunko.types.records import StoredDocument

_LINES = re.compile(r"\s*L?(\d{1,9})\s*(?:(?:-|–|to|:)\s*L?(\d{1,9}))?\s*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read."""

    location: str  # a path, URL or memo id, a citation (path:L12-L30), or an address (bunko://tool/path)
    tool: str | None = None  # None: the first active tool that has it
    lines: str = ""  # 12 or 12-30, of the file
    section: str = ""  # a heading: that section, with the sections below it
    context_lines: int = 0  # further lines before and after what is read
    token_budget: int | None = None  # None: all of it, as it is stored
    max_chars: int | None = None  # without a token budget: at most so much of it, up to the end of a line if possible
    cursor: str = ""  # `next_cursor` of the part before


@dataclass(frozen=True, slots=True)
class OutlineHeading:
    """A heading of a document and its line in the file."""

    level: int
    title: str
    line: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A document, or a part of one."""

    tool: str
    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    media_type: str
    text: str
    first_line: int  # of the file, counted from 1, both included
    last_line: int
    total_lines: int  # of the document
    hash: str  # of the document and of these lines, to verify a citation later
    next_cursor: str = ""  # empty if this is the end of what was asked for
    place: str = ""  # its pages, slides or cells, in files that have them

    @property
    def citation(self) -> str:
        """Where the text is: path:L12-L30."""
        return format_citation(self.uri, self.first_line, self.last_line)


def read_part(tool: str, document: StoredDocument, request: ReadRequest, cited: Citation | None) -> Reading:
    """Return the requested text, or as much of it as fits its token budget."""
    lines = unify_line_ends(document.text).split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    is_single_line = document.lines.is_single_line
    first, last = (0, len(lines) - 1) if is_single_line else _select_lines(document, lines, request, cited)
    start = _parse_start(request, document) if request.cursor else Cursor()
    begin = first + start.passage_index
    if begin > last:
        raise QueryError("The cursor is past the end of the text", hint="Leave it out to start again.")
    text, end, next_start = "\n".join(lines[begin : last + 1]), last, None
    # A model reads what fits a token budget, so hidden characters are removed; line ends are not among them.
    remaining = (remove_hidden_chars(text) if request.token_budget is not None else text)[start.char_offset :]
    text = _truncate(remaining, request)
    if len(text) < len(remaining):
        end = begin + text.count("\n")
        line_start = text.rfind("\n") + 1
        offset = len(text) - line_start + (0 if line_start else start.char_offset)
        next_start = Cursor(0, end - first, offset)
        end -= text.endswith("\n")
    file_first = document.lines.first
    cited_lines = (file_first, file_first) if is_single_line else (file_first + begin, file_first + max(begin, end))
    read_lines = lines if is_single_line else lines[begin : max(begin, end) + 1]
    return Reading(
        tool,
        document.uri,
        document.title,
        document.date,
        document.tags,
        document.media_type,
        text,
        *cited_lines,
        len(lines),
        passage_hash(document.content_hash, read_lines),
        next_start.encode(_request_key(request, document)) if next_start else "",
        place_of("\n".join(lines), document.media_type, begin + 1, max(begin, end) + 1),
    )


def _truncate(text: str, request: ReadRequest) -> str:
    if request.token_budget is not None:
        return truncate_to_budget(text, request.token_budget)
    if request.max_chars is None or len(text) <= request.max_chars:
        return text
    line_end = text.rfind("\n", 0, request.max_chars) + 1
    # A line that is longer than half of it is cut.
    return text[: line_end if line_end > request.max_chars // 2 else request.max_chars]


def outline(document: StoredDocument) -> list[OutlineHeading]:
    """Return the headings of a document."""
    text = unify_line_ends(document.text)
    headings, line, position = [], 1, 0
    for mark in scan_outline(text, document.body_start, media_type=document.media_type):
        if isinstance(mark, Heading):
            line, position = line + text.count("\n", position, mark.start), mark.start
            headings.append(OutlineHeading(mark.level, mark.title, document.lines.file_line(line)))
    return headings


def _select_lines(
    document: StoredDocument, lines: list[str], request: ReadRequest, cited: Citation | None
) -> tuple[int, int]:
    """Return the first and last line to read, counted from 0 in the document."""
    file_first = document.lines.first
    if request.section:
        first, last = (line - file_first for line in section_lines(document, request.section))
    elif not request.lines and cited and cited.place:
        place_lines = find_place(unify_line_ends(document.text), document.media_type, cited.place)
        if place_lines is None:
            raise UnknownName(f"{document.uri} has no {cited.place}", hint="Name a place as a search returned it.")
        first, last = place_lines[0] - 1, place_lines[1] - 1
    elif request.lines or cited:
        first, last = (
            line - file_first
            for line in (_parse_lines(request.lines) if request.lines or not cited else (cited.first, cited.last))
        )
        if not 0 <= first < len(lines):
            raise UnknownName(
                f"{document.uri} has no line {first + file_first}",
                hint=f"It has the lines {file_first} to {file_first + len(lines) - 1}.",
            )
    else:
        first, last = 0, len(lines) - 1
    context = max(0, request.context_lines)
    return max(0, first - context), min(len(lines) - 1, last + context)


def _parse_lines(text: str) -> tuple[int, int]:
    match = _LINES.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2] or match[1]):
        raise QueryError(f"{text[:80]!r} is not a range of lines", hint="Give it as 12 or 12-30.")
    return int(match[1]), int(match[2] or match[1])


def section_lines(document: StoredDocument, section: str) -> tuple[int, int]:
    """Return the first and last line, in the file, of the first section with that heading.

    The heading may be a part of it, or its anchor, in which - stands for blanks and marks.
    """
    text = unify_line_ends(document.text)
    headings = [
        mark
        for mark in scan_outline(text, document.body_start, media_type=document.media_type)
        if isinstance(mark, Heading)
    ]
    wanted_title = normalise(section.lstrip("#").strip()).casefold()
    titles = [normalise(heading.title).casefold() for heading in headings]
    position = next((index for index, title in enumerate(titles) if title == wanted_title), None)
    if position is None:
        position = next((index for index, title in enumerate(titles) if wanted_title and wanted_title in title), None)
    if position is None and (words := _WORD.findall(wanted_title)):
        position = next((index for index, title in enumerate(titles) if _WORD.findall(title) == words), None)
    if position is None:
        some_titles = "; ".join(heading.title[:60] for heading in headings[:20]) or "it has no headings"
        raise UnknownName(f"{document.uri} has no section {section[:80]!r}", hint=f"Its headings: {some_titles}.")
    heading = headings[position]
    end = next((other.start for other in headings[position + 1 :] if other.level <= heading.level), len(text))
    first = document.lines.first + text.count("\n", 0, heading.start)
    return first, first + text[heading.start : end].rstrip().count("\n")


def _parse_start(request: ReadRequest, document: StoredDocument) -> Cursor:
    start, digest = parse_cursor(request.cursor)
    check_cursor(digest, _request_key(request, document))
    return start


def _request_key(request: ReadRequest, document: StoredDocument) -> str:
    # A cursor counts lines and characters of one text: it is not valid for another one.
    return repr((document.uri, document.content_hash, request.lines, request.section, request.context_lines))
