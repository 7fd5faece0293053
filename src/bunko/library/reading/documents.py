"""Read documents and list them, after importing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote

from bunko.errors import UnknownName
from bunko.library.reading.find_document import FoundDocument, find_document
from bunko.library.tools import catalog
from bunko.library.tools.catalog import ADDRESS_SCHEME
from bunko.protocols import DocumentReader, Store
from bunko.search.citations import CitationCheck
from bunko.search.paging import Cursor, check_cursor, parse_cursor
from bunko.search.reading import OutlineHeading, Reading, ReadRequest, outline, read_part
from bunko.types import Tool
from bunko.types.records import NO_FILTER, Filter, ListedDocument, StoredDocument

if TYPE_CHECKING:
    from bunko.library.searching.search import Searcher

Sort = Literal["newest", "name"]


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Which documents to list."""

    tool: str | tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    where: Filter = NO_FILTER
    sort: Sort = "newest"
    limit: int = 50
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list of documents."""

    documents: list[tuple[Tool, ListedDocument]]
    total: int  # of all pages
    next_cursor: str  # empty after the last page


class Documents:
    """The documents of one library, to read and to list."""

    def __init__(self, store: Store, searcher: Searcher) -> None:
        self._store, self._searcher = store, searcher
        self.stored: DocumentReader = store.documents  # as they are, by the ids of tools

    def is_empty(self) -> bool:
        """Return whether no tool has a document."""
        return not any(self.stored.uris(tool.id, limit=1) for tool in catalog.tools(self._store))

    def read(self, request: ReadRequest, *, kinds: Sequence[str] = ()) -> Reading:
        """Return a document, or the part of it that a request names."""
        target = self.find(request.location, tool=request.tool, kinds=kinds)
        return read_part(target.tool.name, target.document, request, target.citation)

    def outline(
        self, location: str, *, tool: str | None = None, kinds: Sequence[str] = ()
    ) -> tuple[Tool, StoredDocument, list[OutlineHeading]]:
        """Return a document, its tool and its headings."""
        target = self.find(location, tool=tool, kinds=kinds)
        return target.tool, target.document, outline(target.document)

    def refresh(self, tool: str | tuple[str, ...] | None = None) -> None:
        """Import the changes of one tool, several, or all active ones, if a check is due."""
        self._searcher.select_fresh_tools(tool, ())

    def fresh_tools(self) -> list[Tool]:
        """Return all active tools, after importing their changes if a check is due; none if there are none yet."""
        if not any(tool.active for tool in catalog.tools(self._store)):
            return []
        tools = self._searcher.select_fresh_tools(None, ())
        names = {tool.name for tool in tools}
        return [tool for tool in catalog.tools(self._store) if tool.name in names]  # with what the import has built

    def list_documents(self, request: ListRequest) -> Listing:
        """Return a page of the documents that match a filter."""
        tools = self._searcher.select_fresh_tools(request.tool, request.kinds)
        where = self._searcher.planner.resolve_filter(request.where)
        documents = [(tool, document) for tool in tools for document in self._store.documents.find(tool.id, where)]
        documents.sort(key=lambda item: (item[1].uri, item[0].name))
        if request.sort == "newest":
            documents.sort(key=lambda item: item[1].date, reverse=True)
        key = repr((request.tool, request.kinds, request.where, request.sort))
        start = 0
        if request.cursor:
            cursor, digest = parse_cursor(request.cursor)
            check_cursor(digest, key)
            start = cursor.passage_index
        end = start + request.limit
        next_cursor = Cursor(0, end).encode(key) if end < len(documents) else ""
        return Listing(documents[start:end], len(documents), next_cursor)

    def find(self, location: str, *, tool: str | None = None, kinds: Sequence[str] = ()) -> FoundDocument:
        """Return a document by its path, URL, memo id, citation, wiki link or address, and what of it was named."""
        location, names = location.strip(), self._searcher.assistant_names()
        if address := parse_address(location, names):
            tool, location = address
        tools = self._searcher.select_fresh_tools(tool, kinds)
        try:
            return find_document(self._store, tools, location)
        except UnknownName:
            address = parse_short_address(location, names) if tool is None else None
            selected = [tool for tool in tools if address and tool.name == address.tool]
            if not address or not selected:
                raise
            return find_document(self._store, selected, address.path)

    def verify_citation(self, citation: str, digest: str, *, tool: str | None = None) -> CitationCheck:
        """Return whether a cited passage is still in its document; an address may stand for the path."""
        names = self._searcher.assistant_names()
        if address := parse_address(citation, names):
            return self._searcher.verify_citation(address.path, digest, tool=address.tool)
        check = self._searcher.verify_citation(citation, digest, tool=tool)
        if check.status != "same" and tool is None and (address := parse_short_address(citation, names)):
            other_check = self._searcher.verify_citation(address.path, digest, tool=address.tool)
            return other_check if other_check.status == "same" else check
        return check


class Address(NamedTuple):
    """A tool and what is named of it: a path or a citation."""

    tool: str  # its real name, or one that no tool has
    path: str


def parse_address(text: str, assistant_names: Mapping[str, str]) -> Address | None:
    """Return what an address names, or None if the text is none. The names are those that assistants see, by tool."""
    scheme, mark, rest = text.strip().partition("://")
    if not mark or scheme != ADDRESS_SCHEME:
        return None
    seen_name, _, path = rest.partition("/")
    return Address(_real_name(seen_name, assistant_names) or seen_name, unquote(path))


def parse_short_address(text: str, assistant_names: Mapping[str, str]) -> Address | None:
    """Return what a path names whose first folder is a tool, or None if no tool has that name."""
    first, _, path = text.strip().partition("/")
    tool = _real_name(first, assistant_names)
    return Address(tool, path) if tool and path else None


def _real_name(name: str, assistant_names: Mapping[str, str]) -> str | None:
    by_seen_name = {seen_name: tool for tool, seen_name in assistant_names.items()}
    return by_seen_name.get(name) or (name if name in assistant_names else None)
