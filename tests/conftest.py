"""What most tests start from: a folder of documents and the library over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko.home import locate
from bunko.library import Library
from bunko.opening import open_library

Opener = Callable[..., Library]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """An empty folder for documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def open_docs(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Open the library of the folder; settings are given as environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    opened: list[Library] = []

    def opener(*, read_only: bool = False, **environ: str) -> Library:
        home = locate(docs_dir=docs, environ=environ)
        environ.setdefault("BUNKO_SEARCH_FRESHNESS_SECONDS", "0")
        opened.append(open_library(home, environ=environ, read_only=read_only))
        return opened[-1]

    yield opener
    for library in opened:
        library.close()
