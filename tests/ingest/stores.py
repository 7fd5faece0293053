"""Compare libraries by everything that an import writes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

# When something was written, and random names, differ between two imports of the same documents.
_VARYING_COLUMNS = {"seen_ns", "created_at", "imported_at", "checked_at"}
_TABLES = ("tools", "documents", "chunks", "vectors", "failures", "removed", "pages")


def dump_library(folder: Path) -> dict[str, list[str]]:
    """Return the rows of a library: documents with their terms and fingerprints, chunks, vectors and failures."""
    with closing(sqlite3.connect(f"file:{folder / 'library.db'}?mode=ro", uri=True)) as database:
        tables = {}
        for table in _TABLES:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            names = ", ".join(f'"{column}"' for column in columns if column not in _VARYING_COLUMNS)
            tables[table] = sorted(map(repr, database.execute(f"SELECT {names} FROM {table}")))
        return tables


def write_old(path: Path, content: str | bytes) -> None:
    """Write a file that is old enough for its time to be trusted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (1_700_000_000, 1_700_000_000))
