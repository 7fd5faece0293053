"""Read documents and list them, after importing changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import unquote

from bunko.errors import UnknownName
from bunko.library import catalog
from bunko.library.search import Searcher
from bunko.protocols import Store
from bunko.records import NO_FILTER, Filter, ListedDocument, StoredDocument
from bunko.search.citations import Citation, parse_citation
from bunko.search.paging import Cursor, check_cursor, parse_cursor
from bunko.search.reading import OutlineHeading, Reading, ReadRequest, outline, read_part
from bunko.search.wiki_links import resolve_wiki_link
from bunko.types import Tool

_WIKI_LINK = re.compile(r"!?\[\[.+\]\]|\(\(.+\)\)")

Sort = Literal["newest", "name"]


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Which documents to list."""

    tool: str | None = None
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

    def read(self, request: ReadRequest, *, kinds: Sequence[str] = ()) -> Reading:
        """Return a document, or the part of it that a request names."""
        tool, document, cited = self._find(request.location, request.tool, kinds)
        return read_part(tool.name, document, request, cited)

    def outline(
        self, location: str, *, tool: str | None = None, kinds: Sequence[str] = ()
    ) -> tuple[Tool, StoredDocument, list[OutlineHeading]]:
        """Return a document, its tool and its headings."""
        found_tool, document, _ = self._find(location, tool, kinds)
        return found_tool, document, outline(document)

    def list_documents(self, request: ListRequest) -> Listing:
        """Return a page of the documents that match a filter."""
        tools = self._searcher.select_fresh_tools(request.tool, request.kinds)
        where = self._searcher.resolve_filter(request.where)
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

    def _find(
        self, location: str, tool: str | None, kinds: Sequence[str]
    ) -> tuple[Tool, StoredDocument, Citation | None]:
        """Return a document by its path, URL, memo id, citation or address, and what the citation names."""
        location = location.strip()
        if location.startswith(f"{catalog.ADDRESS_SCHEME}://"):
            address_tool, _, path = location.partition("://")[2].partition("/")
            names = {catalog.public_name(one.name): one.name for one in catalog.tools(self._store)}
            tool, location = names.get(address_tool, address_tool), unquote(path)
        tools = self._searcher.select_fresh_tools(tool, kinds)
        if _WIKI_LINK.fullmatch(location):
            return self._follow_link(tools, location)
        citation = parse_citation(location)
        for candidate in tools:
            if (document := self._store.documents.get(candidate.id, location)) is not None:
                return candidate, document, None
            if citation and (document := self._store.documents.get(candidate.id, citation.uri)) is not None:
                return candidate, document, citation
        return self._find_by_end(tools, citation.uri if citation else location, citation)

    def _follow_link(self, tools: Sequence[Tool], link: str) -> tuple[Tool, StoredDocument, Citation | None]:
        """Return the document that a wiki link leads to, and the lines of the heading or block it names."""
        for tool in tools:
            target = resolve_wiki_link(self._store, tool.id, link)
            if target is not None and (document := self._store.documents.get(tool.id, target.uri)) is not None:
                return tool, document, parse_citation(target.citation) if target.first_line else None
        raise UnknownName(f"{link[:200]!r} leads to no document", hint="Search for the words of the link.")

    def _find_by_end(
        self, tools: Sequence[Tool], name: str, cited: Citation | None
    ) -> tuple[Tool, StoredDocument, Citation | None]:
        """Return the only document whose path ends with these names, with or without its extension."""
        wanted = PurePosixPath(name.replace("\\", "/").strip("/")).parts
        matches = []
        for tool in tools:
            for listed in self._store.documents.find(tool.id, NO_FILTER):
                parts = PurePosixPath(listed.uri).parts
                stem = (*parts[:-1], PurePosixPath(parts[-1]).stem) if parts else ()
                if wanted and wanted in (parts[-len(wanted) :], stem[-len(wanted) :]):
                    matches.append((tool, listed.uri))
        if len(matches) == 1 and (document := self._store.documents.get(matches[0][0].id, matches[0][1])) is not None:
            return matches[0][0], document, cited
        if matches:
            shown = ", ".join(uri for _, uri in matches[:5])
            raise UnknownName(f"{name[:200]!r} names several documents", hint=f"Give the whole path: {shown}.")
        raise UnknownName(
            f"There is no document or passage {name[:200]!r}", hint="Give a path or citation as a search returned it."
        )
