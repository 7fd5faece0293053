"""A library file and a tool in, how much the tool holds out: sums that SQLite makes, so that no text is loaded."""

from __future__ import annotations

import json

from bunko.records import Dated, Listed, Room, Totals
from bunko.stores.filters import BEGINNING, counted, dated, latest
from bunko.stores.sqlite.connection import File
from bunko.types import Lines

_CHUNKS = "FROM chunks JOIN documents ON documents.id = document_id WHERE tool_id = :tool"


def totals(file: File, tool_id: int) -> Totals:
    """Return how much a tool holds."""
    row = file.rows(
        "SELECT (SELECT count(*) FROM documents WHERE tool_id = :tool), count(chunks.id), count(vector_key),"
        f" (SELECT ifnull(sum(length(text)), 0) FROM documents WHERE tool_id = :tool) {_CHUNKS}",
        {"tool": tool_id},
    )[0]
    return Totals(*row)


def room(file: File, tool_id: int) -> Room:
    """Return how many bytes a tool's rows take."""
    tool = {"tool": tool_id}
    text, terms = file.rows(
        f"SELECT ifnull(sum({_bytes('text')}), 0), ifnull(sum(length(terms)), 0) FROM documents WHERE tool_id = :tool",
        tool,
    )[0]
    own = " + ".join(_bytes(name) for name in ("heading", "heading_path", "ifnull(chunks.text, '')"))
    chunks, vectors = file.rows(f"SELECT ifnull(sum({own}), 0), count(DISTINCT vector_key) {_CHUNKS}", tool)[0]
    # One embedder made all vectors of a tool, so they are of one size, and one of them tells it.
    one = file.rows(
        f"SELECT length(vector) FROM vectors WHERE key = (SELECT vector_key {_CHUNKS} AND vector_key NOT NULL LIMIT 1)",
        tool,
    )
    size = int(one[0][0]) if one else 0
    return Room(text, terms + chunks, vectors * size, size // 4)


def lengths(file: File, tool_id: int) -> list[tuple[int, int]]:
    """Return how many chunks there are of each length in characters, the shortest first."""
    return [
        (length, number)
        for length, number in file.rows(
            f"SELECT ifnull(length(chunks.text), end - start) AS characters, count(*) {_CHUNKS}"
            " GROUP BY characters ORDER BY characters",
            {"tool": tool_id},
        )
    ]


def listed(file: File, tool_id: int, *, skip: int, limit: int) -> list[Listed]:
    """Return some documents in the order of their uris."""
    rows = file.rows(
        "SELECT uri, title, (SELECT count(*) FROM chunks WHERE document_id = documents.id), length(text),"
        " substr(text, body + 1, ?) FROM documents WHERE tool_id = ? ORDER BY uri LIMIT ? OFFSET ?",
        (BEGINNING, tool_id, limit, skip),
    )
    return [Listed(*row) for row in rows]


def tags(file: File, tool_id: int) -> list[tuple[str, int]]:
    """Return each tag and how many documents have it, the most used first."""
    rows = file.rows("SELECT tags FROM documents WHERE tool_id = ? AND tags <> '[]'", (tool_id,))
    return counted(json.loads(row[0]) for row in rows)


def recent(file: File, tool_id: int, *, limit: int) -> list[Dated]:
    """Return the documents of the latest dates, the latest first; those without a date come last."""
    rows = file.rows("SELECT uri, date, modified_ns, last_line FROM documents WHERE tool_id = ?", (tool_id,))
    found = []
    for uri, date in latest((uri, dated(*facts)) for uri, *facts in rows)[:limit]:
        for title, own, beginning, first, last in file.rows(
            "SELECT title, tags, substr(text, body + 1, ?), first_line, last_line FROM documents"
            " WHERE tool_id = ? AND uri = ?",
            (BEGINNING, tool_id, uri),
        ):
            found.append(Dated(uri, title, date, tuple(json.loads(own)), beginning, Lines(first, last)))
    return found


def _bytes(column: str) -> str:
    return f"length(CAST({column} AS BLOB))"
