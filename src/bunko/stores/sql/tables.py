"""Declare the tables of a library once, for all databases.

A definition is SQL in which these words stand for types, so that each database names them in its own way:

ID: given by the database, and never used twice. BIGINT and INTEGER: 8 and 4 bytes; a position in a text has 4, because
PostgreSQL's functions of text take no others. TEXT. NAME: a text that is sorted or looked up, by code point, as
everywhere else in bunko. BLOB. PACKED: bytes that do not compress. REAL.

A file of SQLite keeps its definitions to the letter, with their comments. An older library has the same ones: a new
column needs a new version of both schemas, a new table one of PostgreSQL's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bunko.stores.sql.database import BLOB, INTEGER, NULL, REAL, TEXT, ColumnType

_TYPES = {
    "ID": INTEGER, "BIGINT": INTEGER, "INTEGER": INTEGER, "TEXT": TEXT, "NAME": TEXT, "BLOB": BLOB, "PACKED": BLOB,
    "REAL": REAL,
}  # fmt: skip
_COLUMN = re.compile(rf"(\w+) ({'|'.join(_TYPES)})\b([^,\n]*(?:NOT NULL|PRIMARY KEY))?")
_RESERVED = ("end",)  # a name that only SQLite takes without quotes


class Table(NamedTuple):
    """A table, the columns that sort and identify its rows, and how they move to another store."""

    definition: str
    key: tuple[str, ...]
    large: tuple[str, ...] = ()  # columns whose values may be large
    tool: str = "tool_id"  # SQL for the id of the tool that a row belongs to, 0 if to none
    indexes: Mapping[str, str] = MappingProxyType({})  # their columns by their names

    @property
    def columns(self) -> Mapping[str, ColumnType]:
        """Return the columns as queries name them, with the Python types of their values."""
        return {
            f'"{name}"' if name in _RESERVED else name: _TYPES[word] | (frozenset() if rest or word == "ID" else NULL)
            for name, word, rest in _COLUMN.findall(self.definition)
        }

    def render(self, types: Mapping[str, str]) -> str:
        """Return the definition with the types of a database in place of the words."""
        return _COLUMN.sub(
            lambda column: f"{column[1]} {types.get(column[2], column[2])}{column[3] or ''}", self.definition
        )


# In an order in which each table refers only to those before it.
TABLES: Mapping[str, Table] = {
    # Values that describe the library as a whole, and some that describe only the place where it is.
    "meta": Table("(key NAME PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID", ("key",), tool="0"),
    "tools": Table(
        """(
    id ID,
    name NAME UNIQUE NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    source TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    imported_at TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    built TEXT NOT NULL,
    options TEXT NOT NULL
)""",
        ("id",),
        tool="id",
    ),
    # A replaced document gets a new id, so that an index needs only the documents written and removed since a
    # generation. Those of a rebuilt tool keep their ids, and are removed and written.
    "documents": Table(
        """(
    id ID,
    tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    uri NAME NOT NULL,
    generation BIGINT NOT NULL,
    content_hash NAME NOT NULL,
    size BIGINT NOT NULL,
    modified_ns BIGINT NOT NULL,
    seen_ns BIGINT NOT NULL,
    first_line BIGINT NOT NULL DEFAULT 1,  -- of its file; a last line of 0: it is the whole file
    last_line BIGINT NOT NULL DEFAULT 0,
    media_type TEXT NOT NULL,
    encoding TEXT NOT NULL,
    title TEXT NOT NULL,
    date TEXT NOT NULL,
    tags TEXT NOT NULL,
    body INTEGER NOT NULL,
    text TEXT NOT NULL,
    terms BLOB NOT NULL,
    UNIQUE (tool_id, uri)
)""",
        ("id",),
        large=("text", "terms"),
        indexes={"documents_by_generation": "tool_id, generation"},
    ),
    "chunks": Table(
        """(
    id ID,
    document_id BIGINT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal BIGINT NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    first_line BIGINT NOT NULL,
    last_line BIGINT NOT NULL,
    heading TEXT NOT NULL,
    heading_path TEXT NOT NULL,
    text TEXT,
    vector_key BLOB
)""",
        ("id",),
        large=("text",),
        tool="(SELECT tool_id FROM documents WHERE documents.id = chunks.document_id)",
        indexes={"chunks_by_document": "document_id"},
    ),
    "vectors": Table("(key BLOB PRIMARY KEY, vector PACKED NOT NULL)", ("key",), large=("vector",), tool="0"),
    # The subwords of the sentences of texts, by the key of the text's vector.
    "subwords": Table("(key BLOB PRIMARY KEY, sentences PACKED NOT NULL)", ("key",), large=("sentences",), tool="0"),
    # Vectors that no chunk may use: pinned ones, of an embedder, for chunks to come, and without an embedder those that
    # chunks of the tool have used.
    "kept": Table(
        """(
    tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    key BLOB NOT NULL,
    embedder TEXT NOT NULL,
    PRIMARY KEY (tool_id, key)
) WITHOUT ROWID""",
        ("tool_id", "key"),
    ),
    "failures": Table(
        """(
    tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    uri NAME NOT NULL,
    content_hash TEXT NOT NULL,
    size BIGINT NOT NULL,
    modified_ns BIGINT NOT NULL,
    seen_ns BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (tool_id, uri)
) WITHOUT ROWID""",
        ("tool_id", "uri"),
    ),
    "removed": Table(
        "(tool_id BIGINT NOT NULL, document_id BIGINT NOT NULL, generation BIGINT NOT NULL)",
        ("tool_id", "generation", "document_id"),
        indexes={"removed_by_generation": "tool_id, generation"},
    ),
    # Fetched web pages: the source of web tools, so that chunking or embedding them again fetches nothing.
    "pages": Table(
        """(
    tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    url NAME NOT NULL,
    state TEXT NOT NULL,  -- waiting: to be fetched; held; failed: never fetched; alias: held under another URL
    depth BIGINT NOT NULL,
    found_on TEXT NOT NULL,  -- where the crawl that found it began; of an alias: the URL it is held under
    status BIGINT NOT NULL,
    media_type TEXT NOT NULL,
    charset TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    fetched_at TEXT NOT NULL,  -- when the content came
    checked_at TEXT NOT NULL,  -- when it was last asked for
    content_hash TEXT NOT NULL,
    problem TEXT NOT NULL,  -- of the last attempt; content from before it stays
    content PACKED,  -- as it came, compressed
    PRIMARY KEY (tool_id, url)
)""",
        ("tool_id", "url"),
        large=("content",),
    ),
    # Statistics over the chunks of each copy of a tool, and in how many chunks each term occurs, for indexes outside
    # the library.
    "index_statistics": Table(
        """(
    tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    copy NAME NOT NULL,
    generation BIGINT NOT NULL,
    chunks BIGINT NOT NULL,
    terms BIGINT NOT NULL,
    vectors PACKED NOT NULL,
    PRIMARY KEY (tool_id, copy)
)""",
        ("tool_id", "copy"),
        large=("vectors",),
    ),
    "index_frequencies": Table(
        """(
    tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    copy NAME NOT NULL,
    key BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (tool_id, copy, key)
) WITHOUT ROWID""",
        ("tool_id", "copy", "key"),
    ),
    # Documents whose date, that of their file, became another day.
    "redated": Table(
        """(
    document_id BIGINT PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    generation BIGINT NOT NULL
)""",
        ("document_id",),
        tool="(SELECT tool_id FROM documents WHERE documents.id = redated.document_id)",
    ),
    # The tokens of HTTP clients, as digests, and what each may read and write: names of tools as JSON.
    "tokens": Table(
        """(
    name NAME PRIMARY KEY,
    digest TEXT NOT NULL,
    read TEXT NOT NULL,
    write TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,  -- empty: never
    last_used_at TEXT NOT NULL
) WITHOUT ROWID""",
        ("name",),
        tool="0",
    ),
    # Who changed what, the oldest first.
    "audit": Table(
        """(
    id ID,
    time NAME NOT NULL,
    who TEXT NOT NULL,
    via TEXT NOT NULL,
    action TEXT NOT NULL,
    tools TEXT NOT NULL,  -- as JSON, like the arguments and the details
    arguments TEXT NOT NULL,
    result TEXT NOT NULL,
    details TEXT NOT NULL
)""",
        ("id",),
        large=("arguments", "details"),
        tool="0",
    ),
    # What chat bots have promised to answer: a message that was acknowledged, and its answer as soon as there is one.
    "outbox": Table(
        """(
    key NAME PRIMARY KEY,
    bot TEXT NOT NULL,
    thread TEXT NOT NULL,
    position NAME NOT NULL,  -- sorts the messages of a thread
    request TEXT NOT NULL,  -- as JSON, like the answer
    created_at REAL NOT NULL,  -- seconds since 1970
    state TEXT NOT NULL,  -- waiting; answered, but not all of it sent; done; failed
    attempts INTEGER NOT NULL,
    answer TEXT NOT NULL
) WITHOUT ROWID""",
        ("key",),
        large=("request", "answer"),
        tool="0",
    ),
    # The domains that pages may be added from by a chat bot, as people decided there.
    "domains": Table(
        """(
    domain NAME PRIMARY KEY,
    allowed INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at TEXT NOT NULL
) WITHOUT ROWID""",
        ("domain",),
        tool="0",
    ),
    # Cached answers of remote models (rewritten queries, summaries) and of web sites (robots.txt) until they expire.
    "answers": Table(
        """(
    kind NAME NOT NULL,
    key BLOB NOT NULL,
    value TEXT NOT NULL,
    until REAL NOT NULL,  -- seconds since 1970
    PRIMARY KEY (kind, key)
) WITHOUT ROWID""",
        ("kind", "key"),
        tool="0",
    ),
    # The search log.
    "asked": Table(
        """(
    query NAME NOT NULL,
    tool NAME NOT NULL,
    count BIGINT NOT NULL,
    last NAME NOT NULL,
    PRIMARY KEY (query, tool)
) WITHOUT ROWID""",
        ("query", "tool"),
        tool="0",
    ),
}

# Tables whose ids are never used twice, also if the row with the highest one is gone.
TABLES_WITH_IDS = tuple(name for name, table in TABLES.items() if "id ID" in table.definition)
# The values of `meta` are moved one by one.
MOVING_TABLES = tuple(name for name in TABLES if name != "meta")
# To ask whether a chunk uses a vector: a file gets this index when the first unused one is looked for.
VECTOR_INDEX = "CREATE INDEX IF NOT EXISTS chunks_by_vector ON chunks (vector_key)"
