"""Fixtures of the tests of packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.tool_options import ToolOptions
from tests.library.packs import TEXTS, OpenNamed


@pytest.fixture
def open_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenNamed]:
    """Open a library by its name; settings are given as environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    libraries: list[Library] = []

    def opener(name: str, **environ: str) -> Library:
        environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"} | environ
        libraries.append(open_library(locate_library(library=tmp_path / name, environ={}), environ=environ))
        return libraries[-1]

    yield opener
    for library in libraries:
        library.close()


@pytest.fixture
def notes_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def packed(open_named: OpenNamed, notes_folder: Path, tmp_path: Path) -> Path:
    """A pack of four documents; the folder is away afterwards."""
    with open_named("home") as library:
        library.tools.add("notes", "旅と運用の記録", notes_folder, options=ToolOptions(exclude=("draft*",)))
        library.import_tools(["notes"])
        library.packs.export_tool("notes", tmp_path / "notes.bunko")
    notes_folder.rename(tmp_path / "away")
    return tmp_path / "notes.bunko"
