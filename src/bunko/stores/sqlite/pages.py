"""A library file and a tool in, its web pages out: what is known of each, and the content, kept compressed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from bunko.protocols import Store
from bunko.records import WebPage
from bunko.stores.sqlite.connection import Database, placeholders

_COLUMN_NAMES = [leaf.name for leaf in fields(WebPage) if leaf.name != "size"]
_COLUMNS = ", ".join(_COLUMN_NAMES)
_column_values = attrgetter(*_COLUMN_NAMES)
_BATCH_SIZE = 500  # names in one question
_COMPRESSION_LEVEL = 3  # takes six tenths of the time of the usual 6, for pages that are a tenth larger


def list_pages(file: Database, tool_id: int, urls: Sequence[str] | None) -> list[WebPage]:
    """Return all pages, or those with the given URLs, sorted by URL."""
    select = f"SELECT {_COLUMNS}, ifnull(length(content), 0) FROM pages WHERE tool_id = ?"
    if urls is None:
        return [WebPage(*row) for row in file.rows(f"{select} ORDER BY url", (tool_id,))]
    wanted, found = sorted(set(urls)), []
    for at in range(0, len(wanted), _BATCH_SIZE):
        some = wanted[at : at + _BATCH_SIZE]
        found += file.rows(f"{select} AND url IN ({placeholders(some)}) ORDER BY url", (tool_id, *some))
    return [WebPage(*row) for row in found]


def page_content(file: Database, tool_id: int, url: str) -> bytes | None:
    """Return the content of a page as it was fetched, or None."""
    rows = file.rows("SELECT content FROM pages WHERE tool_id = ? AND url = ?", (tool_id, url))
    return zlib.decompress(rows[0][0]) if rows and rows[0][0] is not None else None


def write_pages(
    connection: sqlite3.Connection,
    tool_id: int,
    upsert: Sequence[WebPage],
    contents: Mapping[str, bytes],
    remove: Sequence[str],
) -> None:
    """Write pages inside a transaction; a page without new content keeps its old content."""
    connection.executemany("DELETE FROM pages WHERE tool_id = ? AND url = ?", [(tool_id, url) for url in remove])
    connection.executemany(
        f"INSERT INTO pages (tool_id, {_COLUMNS}, content) VALUES ({','.join('?' * (len(_COLUMN_NAMES) + 2))})"
        " ON CONFLICT (tool_id, url) DO UPDATE SET"
        f" {', '.join(f'{name} = excluded.{name}' for name in _COLUMN_NAMES[1:])},"
        " content = ifnull(excluded.content, content)",
        [
            (
                tool_id,
                *_column_values(one),
                zlib.compress(contents[one.url], _COMPRESSION_LEVEL) if one.url in contents else None,
            )
            for one in upsert
        ],
    )


class ToolPages:
    """The pages of one tool as a source reads them; sent to another process, it opens the library's file there."""

    def __init__(self, store: Store, tool_id: int, database_path: Path) -> None:
        self._store, self._tool_id, self._database_path = store, tool_id, database_path

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen_pages, (self._tool_id, self._database_path)

    def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages, or those with the given URLs, sorted by URL."""
        return self._store.pages(self._tool_id, urls)

    def content(self, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""
        return self._store.page_content(self._tool_id, url)


@cache  # a worker is given the source once for each batch
def _reopen_pages(tool_id: int, database_path: Path) -> ToolPages:
    from bunko.stores import sqlite

    return ToolPages(sqlite.build(database_path, read_only=True), tool_id, database_path)
