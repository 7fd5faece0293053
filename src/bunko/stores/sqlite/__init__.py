"""Store a library in one SQLite file, which many processes can read while one writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.stores.sqlite.store import Sqlite


def build(path: Path, *, read_only: bool = False) -> Sqlite:
    """Open the store in a SQLite file, and create the file if it does not exist."""
    from bunko.stores.sqlite.store import Sqlite

    return Sqlite(path, read_only=read_only)
