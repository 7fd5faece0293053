"""Give a source the web pages of one tool, in this process and in workers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from bunko import stores
from bunko.protocols import Store
from bunko.types.records import StoreAddress, WebPage


class ToolPages:
    """The pages of one tool, for a source; when unpickled in another process, it opens the library there."""

    def __init__(self, store: Store, tool_id: int) -> None:
        self._store, self._tool_id = store, tool_id

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen_pages, (self._store.address, self._tool_id)

    def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages, or those with the given URLs, sorted by URL."""
        return self._store.pages.select(self._tool_id, urls)

    def content(self, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""
        return self._store.pages.content(self._tool_id, url)


@cache  # a worker receives the source with every batch
def _reopen_pages(address: StoreAddress, tool_id: int) -> ToolPages:
    return ToolPages(stores.build(*address, read_only=True), tool_id)
