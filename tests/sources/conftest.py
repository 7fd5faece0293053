"""Fixtures for sources."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.sources.memo_files import Opener


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that an ordinary user can reach, unlike tmp_path when root runs the tests."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def open_memos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Open a library of its own; settings are given as environment variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    libraries: list[Library] = []

    def opener(**environ: str) -> Library:
        environ.setdefault("BUNKO_SEARCH_FRESHNESS_SECONDS", "0")
        libraries.append(open_library(locate_library(library=tmp_path / "library", environ=environ), environ=environ))
        return libraries[-1]

    yield opener
    for library in libraries:
        library.close()
