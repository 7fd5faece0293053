"""Keep web pages and their compressed content in memory."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bunko.records import WebPage
from bunko.stores.memory.data import MemoryTables, with_lock


class MemoryPages:
    """The fetched web pages of all tools."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def select(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages of a tool, or those with the given URLs, sorted by URL."""
        pages = [page for (owner_id, _), page in sorted(self._tables.pages.items()) if owner_id == tool_id]
        return [page for page in pages if urls is None or page.url in urls]

    @with_lock
    def content(self, tool_id: int, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""
        content = self._tables.contents.get((tool_id, url))
        return None if content is None else zlib.decompress(content)

    @with_lock
    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Write pages atomically; a page without new content keeps its old content."""
        tables = self._tables
        for url in remove:
            tables.pages.pop((tool_id, url), None)
            tables.contents.pop((tool_id, url), None)
        for page in upsert:
            key = (tool_id, page.url)
            if contents is not None and page.url in contents:
                tables.contents[key] = zlib.compress(contents[page.url])
            tables.pages[key] = replace(page, size=len(tables.contents.get(key, b"")))
