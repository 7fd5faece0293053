"""Every store, for the tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko import stores
from bunko.protocols import Store


@pytest.fixture(params=stores.KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open an empty store of each kind."""
    opened = stores.build(request.param, tmp_path / "library.db")
    yield opened
    opened.close()
