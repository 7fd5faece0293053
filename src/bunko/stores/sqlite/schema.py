"""Define the schema of a library file and the migrations from older versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

VERSION = 3
APPLICATION_ID = 0x62756E6B  # "bunk", so that `file` and bunko can tell a library from any other database

_CREATE_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('generation', '0'), ('id', lower(hex(randomblob(16))));

CREATE TABLE tools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    source TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    imported_at TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    built TEXT NOT NULL,
    options TEXT NOT NULL
);

-- A replaced document gets a new id, so that an index only needs the documents written and removed since a generation.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    generation INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    seen_ns INTEGER NOT NULL,
    first_line INTEGER NOT NULL DEFAULT 1,  -- of its file; a last line of 0: it is the whole file
    last_line INTEGER NOT NULL DEFAULT 0,
    media_type TEXT NOT NULL,
    encoding TEXT NOT NULL,
    title TEXT NOT NULL,
    date TEXT NOT NULL,
    tags TEXT NOT NULL,
    body INTEGER NOT NULL,
    text TEXT NOT NULL,
    terms BLOB NOT NULL,
    UNIQUE (tool_id, uri)
);
CREATE INDEX documents_by_generation ON documents (tool_id, generation);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    heading TEXT NOT NULL,
    heading_path TEXT NOT NULL,
    text TEXT,
    vector_key BLOB
);
CREATE INDEX chunks_by_document ON chunks (document_id);

CREATE TABLE failures (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    seen_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (tool_id, uri)
) WITHOUT ROWID;

CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL);

CREATE TABLE removed (tool_id INTEGER NOT NULL, document_id INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX removed_by_generation ON removed (tool_id, generation);
"""

# Fetched web pages: the source of web tools, so that chunking or embedding them again fetches nothing.
_CREATE_PAGES = """
CREATE TABLE pages (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    state TEXT NOT NULL,  -- waiting: to be fetched; held; failed: never fetched; alias: held under another URL
    depth INTEGER NOT NULL,
    found_on TEXT NOT NULL,  -- where the crawl that found it began; of an alias: the URL it is held under
    status INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    charset TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    fetched_at TEXT NOT NULL,  -- when the content came
    checked_at TEXT NOT NULL,  -- when it was last asked for
    content_hash TEXT NOT NULL,
    problem TEXT NOT NULL,  -- of the last attempt; content from before it stays
    content BLOB,  -- as it came, compressed
    PRIMARY KEY (tool_id, url)
)
"""
# Cached answers of remote models (rewritten queries, summaries) and of web sites (robots.txt) until they expire.
_CREATE_ANSWERS = """
CREATE TABLE answers (
    kind TEXT NOT NULL,
    key BLOB NOT NULL,
    value TEXT NOT NULL,
    until REAL NOT NULL,  -- seconds since 1970
    PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""

# Created with the first logged search, so that a library without a search log has no table for it.
_CREATE_ASKED = """
CREATE TABLE IF NOT EXISTS asked (
    query TEXT NOT NULL,
    tool TEXT NOT NULL,
    count INTEGER NOT NULL,
    last TEXT NOT NULL,
    PRIMARY KEY (query, tool)
) WITHOUT ROWID
"""

# The vectors of the sentences of texts, by the key of the text's own vector. Created with the first ones.
_CREATE_SENTENCES = """
CREATE TABLE IF NOT EXISTS sentences (key BLOB PRIMARY KEY, vectors BLOB NOT NULL)
"""

# Pinned vectors: computed, but not used by a chunk yet. Created with the first one.
_CREATE_KEPT = """
CREATE TABLE IF NOT EXISTS kept (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    key BLOB NOT NULL,
    embedder TEXT NOT NULL,
    PRIMARY KEY (tool_id, key)
) WITHOUT ROWID
"""

# Statistics over the chunks of each copy of a tool, and in how many chunks each term occurs, for indexes outside the
# library. Created with the first copy of a tool to such an index.
_CREATE_STATISTICS = """
CREATE TABLE IF NOT EXISTS index_statistics (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    copy TEXT NOT NULL,
    generation INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    terms INTEGER NOT NULL,
    vectors BLOB NOT NULL,
    PRIMARY KEY (tool_id, copy)
)
"""
_CREATE_FREQUENCIES = """
CREATE TABLE IF NOT EXISTS index_frequencies (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    copy TEXT NOT NULL,
    key INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tool_id, copy, key)
) WITHOUT ROWID
"""

# The tokens of HTTP clients, as digests, and what each may read and write: names of tools as JSON. Created with the
# first one.
_CREATE_TOKENS = """
CREATE TABLE IF NOT EXISTS tokens (
    name TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    read TEXT NOT NULL,
    write TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,  -- empty: never
    last_used_at TEXT NOT NULL
) WITHOUT ROWID
"""

# Who changed what, the oldest first. Created with the first entry.
_CREATE_AUDIT = """
CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    via TEXT NOT NULL,
    action TEXT NOT NULL,
    tools TEXT NOT NULL,  -- as JSON, like the arguments and the details
    arguments TEXT NOT NULL,
    result TEXT NOT NULL,
    details TEXT NOT NULL
)
"""

# What chat bots have promised to answer: a message that was acknowledged, and its answer as soon as there is one.
# Created with the first message.
_CREATE_OUTBOX = """
CREATE TABLE IF NOT EXISTS outbox (
    key TEXT PRIMARY KEY,
    bot TEXT NOT NULL,
    thread TEXT NOT NULL,
    position TEXT NOT NULL,  -- sorts the messages of a thread
    request TEXT NOT NULL,  -- as JSON, like the answer
    created_at REAL NOT NULL,  -- seconds since 1970
    state TEXT NOT NULL,  -- waiting; answered, but not all of it sent; done; failed
    attempts INTEGER NOT NULL,
    answer TEXT NOT NULL
) WITHOUT ROWID
"""

# The domains that pages may be added from by a chat bot, as people decided there. Created with the first one.
_CREATE_DOMAINS = """
CREATE TABLE IF NOT EXISTS domains (
    domain TEXT PRIMARY KEY,
    allowed INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at TEXT NOT NULL
) WITHOUT ROWID
"""

# Documents whose date, that of their file, became another day. Created with the first one.
_CREATE_REDATED = """
CREATE TABLE IF NOT EXISTS redated (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL
)
"""

# A library has exactly these tables; another one in the file is refused, so a new table needs a new version.
TABLES = (_CREATE_TABLES, _CREATE_PAGES, _CREATE_ANSWERS)
OPTIONAL_TABLES = {
    "asked": _CREATE_ASKED,
    "sentences": _CREATE_SENTENCES,
    "kept": _CREATE_KEPT,
    "index_statistics": _CREATE_STATISTICS,
    "index_frequencies": _CREATE_FREQUENCIES,
    "tokens": _CREATE_TOKENS,
    "audit": _CREATE_AUDIT,
    "outbox": _CREATE_OUTBOX,
    "domains": _CREATE_DOMAINS,
    "redated": _CREATE_REDATED,
}


def _add_line_ranges(connection: sqlite3.Connection) -> None:
    """Add the lines that a document occupies in its file; until version 1 every document was a whole file."""
    connection.execute("ALTER TABLE documents ADD COLUMN first_line INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE documents ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0")


def _add_pages_and_answers(connection: sqlite3.Connection) -> None:
    """Add the tables for web pages and for answers of remote models."""
    connection.execute(_CREATE_PAGES)
    connection.execute(_CREATE_ANSWERS)


# From version n to n + 1, each in one transaction that also updates the version.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_line_ranges, 2: _add_pages_and_answers}


def create_schema(connection: sqlite3.Connection) -> None:
    """Create an empty library atomically."""
    connection.executescript(
        f"BEGIN IMMEDIATE;{';'.join(TABLES)};"
        f"PRAGMA application_id = {APPLICATION_ID};PRAGMA user_version = {VERSION};COMMIT;"
    )
