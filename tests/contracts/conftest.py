"""Every store, for the tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko.protocols import Store
from bunko.stores import memory, sqlite

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: memory.build(),
    "sqlite": lambda path: sqlite.build(path / "library.db"),
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open an empty store of each kind."""
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()
