"""Read and write web pages and their compressed content."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

from bunko.stores.sql.database import BLOB, INTEGER, NULL, TEXT, Database, batches, placeholders, retried
from bunko.types.records import WebPage

_COLUMN_NAMES = [column.name for column in fields(WebPage) if column.name != "size"]
_COLUMNS = ", ".join(_COLUMN_NAMES)
_column_values = attrgetter(*_COLUMN_NAMES)
_COMPRESSION_LEVEL = 3  # takes 60 % of the time of the default level 6, for pages that are 10 % larger
_INSERT = (
    f"INSERT INTO pages (tool_id, {_COLUMNS}, content) VALUES ({placeholders([*_COLUMN_NAMES, 'tool_id', 'content'])})"
)
_UPDATE = (
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMN_NAMES[1:])},"
    " content = coalesce(excluded.content, pages.content)"
)


_COLUMN_TYPES = tuple(INTEGER if column.type == "int" else TEXT for column in fields(WebPage))
# Far more than a page may have; a small content that grows beyond it is meant to fill the memory.
MAX_CONTENT_BYTES = 256 * 2**20


class SqlPages:
    """The fetched web pages of all tools."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def select(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages of a tool, or those with the given URLs, sorted by URL."""
        query = f"SELECT {_COLUMNS}, coalesce(length(content), 0) FROM pages WHERE tool_id = ?"
        if urls is None:
            return [
                WebPage(*row) for row in self._database.rows(f"{query} ORDER BY url", (tool_id,), types=_COLUMN_TYPES)
            ]
        rows = []
        for batch in batches(sorted(set(urls))):
            rows += self._database.rows(
                f"{query} AND {self._database.uri_key('url')} IN ({placeholders(batch)}) ORDER BY url",
                (tool_id, *map(self._database.key_of, batch)),
                types=_COLUMN_TYPES,
            )
        return [WebPage(*row) for row in rows]

    def content(self, tool_id: int, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""
        rows = self._database.rows(
            f"SELECT content FROM pages WHERE tool_id = ? AND {self._database.uri_key('url')} = ?",
            (tool_id, self._database.key_of(url)),
            types=(BLOB | NULL,),
        )
        if not rows or rows[0][0] is None:
            return None
        with self._database.decode_values():
            data = rows[0][0]
            decompressor = zlib.decompressobj()
            content = decompressor.decompress(data, MAX_CONTENT_BYTES)
            if not decompressor.eof:
                raise ValueError("the content of a page is cut off or too large")
            return content

    @retried
    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Write pages atomically; a page without new content keeps its old content."""
        contents = contents or {}
        with self._database.transaction() as connection:
            url_key = connection.uri_key("url")
            connection.executemany(
                f"DELETE FROM pages WHERE tool_id = ? AND {url_key} = ?",
                [(tool_id, connection.key_of(url)) for url in remove],
            )
            connection.executemany(
                f"{_INSERT} ON CONFLICT (tool_id, {url_key}) {_UPDATE}",
                [
                    (
                        tool_id,
                        *_column_values(page),
                        zlib.compress(contents[page.url], _COMPRESSION_LEVEL) if page.url in contents else None,
                    )
                    for page in upsert
                ],
            )
