"""List documents and read them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bunko.errors import UnknownName
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.serialize import readable_address
from bunko.library.reading.documents import ListRequest
from bunko.library.reading.find_document import FoundDocument
from bunko.search.reading import ReadRequest, outline, read_part
from bunko.text.tags import normalise_tag
from bunko.types.records import Filter

_MAX_LISTED = 1000
_MAX_CHARS = 2_000_000


class ListQuery(Shape):
    """Which documents to list."""

    tool: list[Name] = Field([], max_length=100, description="Only these tools; may be repeated")
    tag: list[Name] = Field([], max_length=100, description="Only with these tags; may be repeated")
    since: Name = Field("", description="Only from this date on: 2024-01-15, 2024-01, today, 2w")
    until: Name = Field("", description="Only up to this date")
    path: Name = Field("", description="Only paths that match a pattern: guide/**")
    selection: Name = Field("", description="Only the documents of a selection: POST /api/v1/selections")
    sort: Literal["newest", "name"] = Field("newest", description="Order")
    limit: int = Field(50, ge=1, le=_MAX_LISTED, description="Number of documents of a page")
    cursor: Name = Field("", description="next_cursor of the page before")


class ListedFields(Fields):
    """A document in a list."""

    tool: str
    path: str = of("uri")
    title: str
    date: str
    tags: list[str]
    media_type: str
    bytes: int = of("size")
    uri: str


class ListReply(Fields):
    """A page of documents."""

    documents: list[ListedFields]
    total: int
    next_cursor: str = of(optional=True)


class ReadQuery(Shape):
    """What to read of a document."""

    lines: Name = Field("", description="Only these lines: 12 or 12-30")
    section: Name = Field("", description="Only the section with this heading")
    around: int = Field(0, ge=0, le=100_000, description="Further lines before and after")
    max_chars: int = Field(_MAX_CHARS, ge=100, le=_MAX_CHARS, description="Longest text; next_cursor continues it")
    cursor: Name = Field("", description="next_cursor of the part before")


class DocumentReply(Fields):
    """A document, or a part of one."""

    tool: str
    path: str = of("uri")
    title: str
    date: str
    tags: list[str]
    media_type: str
    text: str
    citation: str
    place: str
    line_start: int = of("first_line")
    line_end: int = of("last_line")
    total_lines: int
    hash: str
    uri: str
    next_cursor: str = of(optional=True)


class HeadingFields(Fields):
    """A heading and its line."""

    level: int
    text: str = of("title")
    line: int


class OutlineReply(Fields):
    """The headings of a document."""

    tool: str
    path: str
    title: str
    headings: list[HeadingFields]


def list_documents(call: Call, query: ListQuery) -> dict[str, object]:
    """List documents by tool, path, tag or date."""
    tools = query.tool[0] if len(query.tool) == 1 else tuple(query.tool) or None
    tags = tuple(map(normalise_tag, query.tag))
    where = Filter(query.path, tags, query.since, query.until, selection=query.selection)
    listing = call.library.documents.list_documents(
        ListRequest(tools, (), where, query.sort, query.limit, query.cursor)
    )
    names = call.library.assistant_names()
    documents = [
        ListedFields.fill(document, tool=tool.name, uri=readable_address(names[tool.name], document.uri))
        for tool, document in listing.documents
    ]
    return ListReply.fill(listing, documents=documents)


def read_document(call: Call, tool: str, path: str, query: ReadQuery) -> dict[str, object]:
    """Read a document, some of its lines, or a section."""
    target = find_exactly(call, tool, path)
    request = ReadRequest(
        path, tool, query.lines, query.section, query.around, max_chars=query.max_chars, cursor=query.cursor
    )
    reading = read_part(target.tool.name, target.document, request, None)
    address = readable_address(call.library.assistant_names()[reading.tool], reading.uri)
    return DocumentReply.fill(reading, uri=address)


def read_outline(call: Call, tool: str, path: str) -> dict[str, object]:
    """List the headings of a document."""
    target = find_exactly(call, tool, path)
    return {
        "tool": target.tool.name,
        "path": target.uri,
        "title": target.title,
        "headings": [HeadingFields.fill(heading) for heading in outline(target.document)],
    }


def find_exactly(call: Call, tool: str, path: str) -> FoundDocument:
    """Return the document with this path; an address never means another document."""
    target = call.library.documents.find(path, tool=tool)
    if target.uri != path:
        raise UnknownName(f"{target.tool.name} has no document {path[:200]!r}", hint=f"Did you mean {target.uri!r}?")
    return target


ENDPOINTS = [
    Endpoint("GET", "/documents", list_documents, ListReply, right="read", has_etag=True),
    Endpoint("GET", "/documents/{tool}/{path}", read_document, DocumentReply, right="read", has_etag=True),
    Endpoint("GET", "/outlines/{tool}/{path}", read_outline, OutlineReply, right="read", has_etag=True),
]
