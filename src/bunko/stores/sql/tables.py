"""List the tables of a library with their columns, for whoever copies all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bunko.stores.sql.database import BLOB, INTEGER, NULL, REAL, TEXT, ColumnType


class TableLayout(NamedTuple):
    """A table: its columns with the types of their values, and the columns that sort and identify its rows."""

    columns: Mapping[str, ColumnType]
    key: tuple[str, ...]
    large: tuple[str, ...] = ()  # columns whose values may be large
    tool: str = "tool_id"  # SQL for the id of the tool that a row belongs to, 0 if to none


_FINGERPRINT = {"content_hash": TEXT, "size": INTEGER, "modified_ns": INTEGER, "seen_ns": INTEGER}

# In an order in which each table refers only to those before it. The table `meta` is not listed: its values describe
# the library as a whole, and some of them only the place where it is.
TABLES: Mapping[str, TableLayout] = {
    "tools": TableLayout(
        {
            "id": INTEGER, "name": TEXT, "kind": TEXT, "description": TEXT, "source": TEXT, "active": INTEGER,
            "created_at": TEXT, "imported_at": TEXT, "checked_at": TEXT, "built": TEXT, "options": TEXT,
        },
        ("id",),
        tool="id",
    ),
    "documents": TableLayout(
        {
            "id": INTEGER, "tool_id": INTEGER, "uri": TEXT, "generation": INTEGER, **_FINGERPRINT,
            "first_line": INTEGER, "last_line": INTEGER, "media_type": TEXT, "encoding": TEXT, "title": TEXT,
            "date": TEXT, "tags": TEXT, "body": INTEGER, "text": TEXT, "terms": BLOB,
        },
        ("id",),
        large=("text", "terms"),
    ),
    "chunks": TableLayout(
        {
            "id": INTEGER, "document_id": INTEGER, "ordinal": INTEGER, "start": INTEGER, '"end"': INTEGER,
            "first_line": INTEGER, "last_line": INTEGER, "heading": TEXT, "heading_path": TEXT, "text": TEXT | NULL,
            "vector_key": BLOB | NULL,
        },
        ("id",),
        large=("text",),
        tool="(SELECT tool_id FROM documents WHERE documents.id = chunks.document_id)",
    ),
    "vectors": TableLayout({"key": BLOB, "vector": BLOB}, ("key",), large=("vector",), tool="0"),
    "sentences": TableLayout({"key": BLOB, "vectors": BLOB}, ("key",), large=("vectors",), tool="0"),
    "kept": TableLayout({"tool_id": INTEGER, "key": BLOB, "embedder": TEXT}, ("tool_id", "key")),
    "failures": TableLayout({"tool_id": INTEGER, "uri": TEXT, **_FINGERPRINT, "reason": TEXT}, ("tool_id", "uri")),
    "removed": TableLayout(
        {"tool_id": INTEGER, "document_id": INTEGER, "generation": INTEGER}, ("tool_id", "generation", "document_id")
    ),
    "pages": TableLayout(
        {
            "tool_id": INTEGER, "url": TEXT, "state": TEXT, "depth": INTEGER, "found_on": TEXT, "status": INTEGER,
            "media_type": TEXT, "charset": TEXT, "etag": TEXT, "last_modified": TEXT, "fetched_at": TEXT,
            "checked_at": TEXT, "content_hash": TEXT, "problem": TEXT, "content": BLOB | NULL,
        },
        ("tool_id", "url"),
        large=("content",),
    ),
    "index_statistics": TableLayout(
        {
            "tool_id": INTEGER, "copy": TEXT, "generation": INTEGER, "chunks": INTEGER, "terms": INTEGER,
            "vectors": BLOB,
        },
        ("tool_id", "copy"),
        large=("vectors",),
    ),
    "index_frequencies": TableLayout(
        {"tool_id": INTEGER, "copy": TEXT, "key": INTEGER, "count": INTEGER}, ("tool_id", "copy", "key")
    ),
    "redated": TableLayout(
        {"document_id": INTEGER, "generation": INTEGER},
        ("document_id",),
        tool="(SELECT tool_id FROM documents WHERE documents.id = redated.document_id)",
    ),
    "tokens": TableLayout(
        {
            "name": TEXT, "digest": TEXT, "read": TEXT, "write": TEXT, "created_at": TEXT, "expires_at": TEXT,
            "last_used_at": TEXT,
        },
        ("name",),
        tool="0",
    ),
    "audit": TableLayout(
        {
            "id": INTEGER, "time": TEXT, "who": TEXT, "via": TEXT, "action": TEXT, "tools": TEXT, "arguments": TEXT,
            "result": TEXT, "details": TEXT,
        },
        ("id",),
        large=("arguments", "details"),
        tool="0",
    ),
    "outbox": TableLayout(
        {
            "key": TEXT, "bot": TEXT, "thread": TEXT, "position": TEXT, "request": TEXT, "created_at": REAL,
            "state": TEXT, "attempts": INTEGER, "answer": TEXT,
        },
        ("key",),
        large=("request", "answer"),
        tool="0",
    ),
    "domains": TableLayout(
        {"domain": TEXT, "allowed": INTEGER, "changed_by": TEXT, "changed_at": TEXT}, ("domain",), tool="0"
    ),
    "answers": TableLayout({"kind": TEXT, "key": BLOB, "value": TEXT, "until": REAL}, ("kind", "key"), tool="0"),
    "asked": TableLayout({"query": TEXT, "tool": TEXT, "count": INTEGER, "last": TEXT}, ("query", "tool"), tool="0"),
}  # fmt: skip

# Tables whose ids are never used twice, also if the row with the highest one is gone.
TABLES_WITH_IDS = ("tools", "documents", "chunks", "audit")
