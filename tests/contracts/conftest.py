"""Every store, for the tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko import stores
from bunko.indexes.options import ChromaOptions, EngineOptions, MilvusOptions
from bunko.protocols import Store
from tests.scale.engines import chroma_server, milvus_server, require_chroma, require_milvus

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
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one Chroma server for all tests; each store has collections of its own there."""
    with chroma_server(tmp_path_factory.mktemp("chroma")) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="session")
def milvus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one Milvus server for all tests; each store has collections of its own there."""
    with milvus_server(tmp_path_factory.mktemp("milvus")) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def engine_options(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], EngineOptions]:
    """Give the options of an engine, and start its server at the first use."""

    def options_of(name: str) -> EngineOptions:
        if name == "chroma":
            require_chroma()
            return EngineOptions(chroma=ChromaOptions(folder=tmp_path / "chroma"))
        if name == "milvus":
            require_milvus()
            return EngineOptions(milvus=MilvusOptions(uri=str(tmp_path / "milvus.db"), timeout=60.0))
        if name == "milvus-server":
            return EngineOptions(milvus=MilvusOptions(uri=request.getfixturevalue("milvus_url"), timeout=60.0))
        return EngineOptions(chroma=ChromaOptions(url=request.getfixturevalue("chroma_url")))

    return options_of
