"""What a search says while the changes of another tool are imported, which its caller may not know of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SourceError
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.stores.sql.tools import SqlTools

PATIENCE = 60.0
FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 2


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    environ = {
        "BUNKO_EMBEDDING_PROVIDER": "none",
        "BUNKO_SEARCH_FRESHNESS_SECONDS": "0",
        "BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS": "0",
    }
    with open_library(paths_for_folder(tmp_path / "library"), environ=environ) as opened:
        for name in ("recipes", "secret"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "one.md").write_text(f"# {name}\n\n{FILLER}", encoding="utf-8")
            opened.add(tmp_path / name, name=name)
        opened.import_()
        yield opened


def _begin_import(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let a search import changes of the tool `secret`, which fails as soon as the event is set."""
    gate = threading.Event()

    def fail(*_: Any) -> None:
        gate.wait(PATIENCE)
        raise SourceError("/srv/secret/plan.md cannot be read")

    monkeypatch.setattr(library._importer, "import_scan", fail)
    (tmp_path / "secret" / "two.md").write_text(f"# two\n\n{FILLER}", encoding="utf-8")
    assert "still being indexed" in library.search("two", tool="secret").notices[0]
    return gate


def test_the_import_of_another_tool_is_not_named(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _begin_import(library, tmp_path, monkeypatch)
    notices = library.search("recipes", tool="recipes").notices
    gate.set()
    assert notices == ["Another tool is still being indexed; recipes was not checked for changes."]


def test_a_tool_of_another_machine_says_nothing_of_imports_here(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _begin_import(library, tmp_path, monkeypatch)
    database = library.store._database  # type: ignore[attr-defined]
    for machine, name in (("there", "recipes"), ("here", "secret")):
        SqlTools(database, machine).put(library.resolve_tool(name))
    monkeypatch.setattr(library.store.tools, "_machine", "here")
    notices = library.search("recipes", tool="recipes").notices
    monkeypatch.setattr(library._refresher, "_wait_seconds", 0.0)
    with library._refresher._check_lock:  # another search is looking at a folder that hangs
        notices += library.search("recipes", tool="recipes").notices
    gate.set()
    assert notices == []


def test_the_error_of_another_tool_is_not_told(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _begin_import(library, tmp_path, monkeypatch)
    monkeypatch.setattr(library._refresher, "_wait_seconds", PATIENCE)
    threading.Timer(0.1, gate.set).start()
    assert "secret" not in str(library.search("recipes", tool="recipes").notices)
    assert "secret" in str(library.search("two", tool="secret").notices)
