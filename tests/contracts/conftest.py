"""Every store, for the tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from bunko import stores
from bunko.indexes.options import EngineOptions
from bunko.protocols import Store
from tests.scale.engines import start_engine

# A store on a server needs that server.
KINDS = [pytest.param(kind, marks=pytest.mark.scale if kind == "postgres" else ()) for kind in stores.KINDS]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open an empty store of each kind."""
    server = request.getfixturevalue("postgres").new_library() if request.param == "postgres" else None
    opened = stores.build(request.param, tmp_path / "library.db", server)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], EngineOptions]]:
    """Start the server of an engine at its first use, for all tests; each store has collections of its own there."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(start_engine(name, tmp_path_factory.mktemp("engine"))))


@pytest.fixture
def engine_options(
    start_server: Callable[[str], EngineOptions], tmp_path: Path
) -> Iterator[Callable[[str], EngineOptions]]:
    """Give the options of an engine: on its server, or in files of this test."""
    with ExitStack() as stack:
        yield (
            lambda name: (
                start_server(name) if name.endswith("-server") else stack.enter_context(start_engine(name, tmp_path))
            )
        )
