"""A library file and a tool in, how much the tool holds out: sums that SQLite makes, so that no text is loaded."""

from __future__ import annotations

import json

from bunko.records import DatedDocument, DocumentSummary, StorageSize, Totals
from bunko.stores.filters import BEGINNING_CHARS, count_tags, effective_date, newest_first
from bunko.stores.sqlite.connection import Database
from bunko.types import LineSpan

_FROM_CHUNKS = "FROM chunks JOIN documents ON documents.id = document_id WHERE tool_id = :tool"


def totals(file: Database, tool_id: int) -> Totals:
    """Return how many documents, chunks, vectors and characters a tool has."""
    row = file.rows(
        "SELECT (SELECT count(*) FROM documents WHERE tool_id = :tool), count(chunks.id), count(vector_key),"
        f" (SELECT ifnull(sum(length(text)), 0) FROM documents WHERE tool_id = :tool) {_FROM_CHUNKS}",
        {"tool": tool_id},
    )[0]
    return Totals(*row)


def storage_size(file: Database, tool_id: int) -> StorageSize:
    """Return how many bytes a tool's rows take."""
    tool = {"tool": tool_id}
    text, terms = file.rows(
        f"SELECT ifnull(sum({_byte_length_sql('text')}), 0), ifnull(sum(length(terms)), 0) FROM documents WHERE tool_id = :tool",  # noqa: E501
        tool,
    )[0]
    own = " + ".join(_byte_length_sql(name) for name in ("heading", "heading_path", "ifnull(chunks.text, '')"))
    chunks, vectors = file.rows(f"SELECT ifnull(sum({own}), 0), count(DISTINCT vector_key) {_FROM_CHUNKS}", tool)[0]
    # One embedder made all vectors of a tool, so they are of one size, and one of them tells it.
    one = file.rows(
        f"SELECT length(vector) FROM vectors WHERE key = (SELECT vector_key {_FROM_CHUNKS} AND vector_key NOT NULL LIMIT 1)",  # noqa: E501
        tool,
    )
    size = int(one[0][0]) if one else 0
    return StorageSize(text, terms + chunks, vectors * size, size // 4)


def chunk_lengths(file: Database, tool_id: int) -> list[tuple[int, int]]:
    """Return pairs of chunk length in characters and number of chunks, shortest first."""
    return [
        (length, number)
        for length, number in file.rows(
            f"SELECT ifnull(length(chunks.text), end - start) AS characters, count(*) {_FROM_CHUNKS}"
            " GROUP BY characters ORDER BY characters",
            {"tool": tool_id},
        )
    ]


def list_documents(file: Database, tool_id: int, *, skip: int, limit: int) -> list[DocumentSummary]:
    """Return a page of documents, sorted by URI."""
    rows = file.rows(
        "SELECT uri, title, (SELECT count(*) FROM chunks WHERE document_id = documents.id), length(text),"
        " substr(text, body + 1, ?) FROM documents WHERE tool_id = ? ORDER BY uri LIMIT ? OFFSET ?",
        (BEGINNING_CHARS, tool_id, limit, skip),
    )
    return [DocumentSummary(*row) for row in rows]


def tags(file: Database, tool_id: int) -> list[tuple[str, int]]:
    """Return each tag with its number of documents, most used first."""
    rows = file.rows("SELECT tags FROM documents WHERE tool_id = ? AND tags <> '[]'", (tool_id,))
    return count_tags(json.loads(row[0]) for row in rows)


def recent_documents(file: Database, tool_id: int, *, limit: int) -> list[DatedDocument]:
    """Return the most recent documents, newest first; documents without a date come last."""
    rows = file.rows("SELECT uri, date, modified_ns, last_line FROM documents WHERE tool_id = ?", (tool_id,))
    found = []
    for uri, date in newest_first((uri, effective_date(*facts)) for uri, *facts in rows)[:limit]:
        for title, own, beginning, first, last in file.rows(
            "SELECT title, tags, substr(text, body + 1, ?), first_line, last_line FROM documents"
            " WHERE tool_id = ? AND uri = ?",
            (BEGINNING_CHARS, tool_id, uri),
        ):
            found.append(DatedDocument(uri, title, date, tuple(json.loads(own)), beginning, LineSpan(first, last)))
    return found


def _byte_length_sql(column: str) -> str:
    return f"length(CAST({column} AS BLOB))"
