"""Keep the totals of each tool, so that no caller reads all of its texts to count them.

Every change of documents adds to the numbers in its own transaction. They name the generation that they describe: an
older bunko changes documents without them, and an older library has none; a reader without current ones counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from bunko.stores.sql.database import INTEGER, TEXT, ColumnType, Connection, Database
from bunko.stores.sql.scans import PUT_VALUE

TOTALS_PREFIX = "totals "  # of the keys in `meta`, each with the id of a tool

_FORGOTTEN_PREFIX = "forgotten "  # of the keys with the generation up to which removals are not known any more
_Fetch = Callable[[str, Sequence[Any], Sequence[ColumnType]], list[tuple[Any, ...]]]


class Counts(NamedTuple):
    """How many documents, chunks and vectors some documents have, and how long they are."""

    documents: int = 0
    chunks: int = 0
    vectors: int = 0
    characters: int = 0
    text_bytes: int = 0
    index_bytes: int = 0  # terms, chunk headings, and chunk texts that are stored separately

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """Return the sum of two, or with the sign -1 the difference."""
        return Counts(*(number + sign * further for number, further in zip(self, other, strict=True)))


class KeptCounts:
    """The kept counts of tools, for a database that may only be read; what it had to count stays in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._values: dict[int, str] = {}

    def get(self, tool_id: int) -> Counts:
        """Return the counts of a tool, and keep them if they had to be counted."""
        counts = _read(self._fetch, tool_id, self._values.get(tool_id, ""))
        if counts is None:
            generation = self._fetch("SELECT value FROM meta WHERE key = 'generation'", (), (TEXT,))[0][0]
            counts = _count(self._fetch, self._database.byte_length, "tool_id = ?", (tool_id,))
            # Of a change in the meantime, the counts may have a part: its generation tells that they are not current.
            self._values[tool_id] = _encode(generation, counts)
            self._database.try_transaction([(PUT_VALUE, (f"{TOTALS_PREFIX}{tool_id}", self._values[tool_id]))])
        return counts

    def _fetch(self, query: str, values: Sequence[Any], types: Sequence[ColumnType]) -> list[tuple[Any, ...]]:
        return self._database.rows(query, values, types=types)


def read_counts(connection: Connection, tool_id: int) -> Counts | None:
    """Return the counts of a tool inside a write transaction, None if no current ones are kept."""
    return _read(_fetch_in(connection), tool_id)


def count_documents(connection: Connection, condition: str, values: Sequence[Any]) -> Counts:
    """Count the documents that fulfil a condition inside a write transaction."""
    return _count(_fetch_in(connection), connection.byte_length, condition, values)


def keep_counts(connection: Connection, tool_id: int, generation: int, counts: Counts) -> None:
    """Keep the counts of a tool at a generation."""
    connection.execute(PUT_VALUE, (f"{TOTALS_PREFIX}{tool_id}", _encode(generation, counts)))


def _fetch_in(connection: Connection) -> _Fetch:
    return lambda query, values, _: connection.execute(query, values).fetchall()


def _read(fetch: _Fetch, tool_id: int, in_memory: str = "") -> Counts | None:
    """Return the counts that describe what a tool holds now, None if there are none."""
    totals_key, forgotten_key = f"{TOTALS_PREFIX}{tool_id}", f"{_FORGOTTEN_PREFIX}{tool_id}"
    rows = fetch("SELECT key, value FROM meta WHERE key IN (?, ?)", (totals_key, forgotten_key), (TEXT, TEXT))
    values: dict[str, str] = dict(rows)
    for value in (values.get(totals_key, ""), in_memory):
        with suppress(TypeError, ValueError):  # a stranger wrote it, or there is none
            generation, *numbers = map(int, value.split())
            counts = Counts(*numbers)
            if int(values.get(forgotten_key, 0)) <= generation and not _has_changed(fetch, tool_id, generation):
                return counts
    # A tool without documents need not be counted.
    return None if _has_changed(fetch, tool_id, -1, "documents") else Counts()


def _has_changed(fetch: _Fetch, tool_id: int, generation: int, *tables: str) -> bool:
    return any(
        fetch(f"SELECT 1 FROM {table} WHERE tool_id = ? AND generation > ? LIMIT 1", (tool_id, generation), (INTEGER,))
        for table in tables or ("documents", "removed")
    )


def _count(fetch: _Fetch, byte_length: Callable[[str], str], condition: str, values: Sequence[Any]) -> Counts:
    [(documents, characters, text_bytes, term_bytes)] = fetch(
        f"SELECT count(*), coalesce(sum(length(text)), 0), coalesce(sum({byte_length('text')}), 0),"
        f" coalesce(sum(length(terms)), 0) FROM documents WHERE {condition}",
        values,
        (INTEGER,) * 4,
    )
    chunk_bytes = " + ".join(map(byte_length, ("heading", "heading_path", "coalesce(chunks.text, '')")))
    [(chunks, vectors, index_bytes)] = fetch(
        f"SELECT count(*), count(vector_key), coalesce(sum({chunk_bytes}), 0)"
        f" FROM chunks JOIN documents ON documents.id = document_id WHERE {condition}",
        values,
        (INTEGER,) * 3,
    )
    return Counts(documents, chunks, vectors, characters, text_bytes, term_bytes + index_bytes)


def _encode(generation: int | str, counts: Counts) -> str:
    return " ".join(map(str, (generation, *counts)))
