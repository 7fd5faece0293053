"""Every store, for the tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko import stores
from bunko.protocols import Store

# A store on a server needs that server.
KINDS = [pytest.param(kind, marks=pytest.mark.scale if kind == "postgres" else ()) for kind in stores.KINDS]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open an empty store of each kind."""
    server = request.getfixturevalue("postgres").new_library() if request.param == "postgres" else None
    opened = stores.build(request.param, tmp_path / "library.db", server)
    yield opened
    opened.close()
