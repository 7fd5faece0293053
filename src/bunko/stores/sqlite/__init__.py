"""Keep a library in one SQLite file: many processes read it, one at a time writes, a kill loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.stores.sqlite.store import Sqlite


def build(path: Path, *, read_only: bool = False) -> Sqlite:
    """Open the store in a SQLite file; the file is created where there is none."""
    from bunko.stores.sqlite.store import Sqlite

    return Sqlite(path, read_only=read_only)
