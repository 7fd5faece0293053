"""Vectors go with the last text that uses them, at the end of an import: another text may need them before."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.runtime.observer import Observer
from bunko.types.records import VectorRoom
from tests.conftest import Run
from tests.library.packs import OpenNamed

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 2


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"# {text}\n\n{FILLER}", encoding="utf-8")


def vectors(library: Library) -> list[int]:
    """Return how many chunks and vectors there are, and how many keys wait for the end of an import."""
    with closing(sqlite3.connect(library.paths.database)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("chunks", "vectors")]
        return [*counts, connection.execute("SELECT count(*) FROM kept").fetchone()[0] if "kept" in tables else 0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "folder"


def test_a_file_that_was_changed_eight_times_has_one_vector(folder: Path, open_named: OpenNamed) -> None:
    library = open_named("changed")
    put(folder, "a.md", "一度目")
    library.add(folder, name="docs")
    for number in range(8):
        put(folder, "a.md", f"{number}")
        library.reindex()
    assert vectors(library) == [1, 1, 0]
    for number in range(3):  # searches import changes too
        put(folder, "a.md", f"京都 {number}")
        assert library.search("京都").hits
    assert vectors(library) == [1, 1, 0]
    (folder / "a.md").unlink()
    put(folder, "b.md", "奈良")
    library.import_changes("docs")
    assert vectors(library) == [1, 1, 0]
    assert library.status().unused_vectors == VectorRoom(0, 0)


def test_a_text_that_moves_to_another_file_or_tool_is_not_embedded_again(folder: Path, open_named: OpenNamed) -> None:
    library = open_named("moved")
    for name in ("a", "b"):
        put(folder / name, "rest.md", f"残り {name}")
        library.add(folder / name, name=name)
    put(folder / "a", "one.md", "京都")
    library.reindex()
    (folder / "a" / "one.md").rename(folder / "a" / "two.md")
    (folder / "a" / "two.md").write_text((folder / "a" / "two.md").read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert library.reindex().embedded == 0
    (folder / "a" / "two.md").rename(folder / "b" / "three.md")
    report = library.reindex()
    assert (report.added, report.deleted, report.embedded) == (1, 1, 0)
    assert vectors(library) == [3, 3, 0]


def test_what_an_interrupted_import_no_longer_uses_stays_for_the_next_one(folder: Path, open_named: OpenNamed) -> None:
    library = open_named("interrupted")
    put(folder / "a", "one.md", "京都")
    put(folder / "b", "other.md", "奈良")
    for name in ("a", "b"):
        library.add(folder / name, name=name)
    library.reindex()
    text = (folder / "a" / "one.md").read_text(encoding="utf-8")
    (folder / "a" / "one.md").unlink()
    (folder / "a" / "two.md").write_text(f"{text}\n", encoding="utf-8")
    assert library.reindex(tool="a", observer=Observer(is_cancelled=lambda: True)).interrupted
    assert vectors(library) == [1, 2, 1]
    unused = library.status().unused_vectors
    assert (unused.count, unused.bytes > 0) == (1, True)
    put(folder / "b", "other.md", "大阪")
    library.reindex(tool="b")  # deletes its own, and not those of others
    assert vectors(library) == [1, 2, 1]
    assert library.reindex(tool="a").embedded == 0
    assert vectors(library) == [2, 2, 0]


def test_a_rebuild_and_other_vectors_leave_nothing_behind(folder: Path, open_named: OpenNamed) -> None:
    library = open_named("rebuilt")
    for number in range(5):
        put(folder, f"{number}.md", f"{number}")
    library.add(folder, name="docs")
    library.reindex()
    for number in range(3):
        put(folder, f"{number}.md", f"もう一度 {number}")
    library.reindex(rebuild=True)
    assert vectors(library) == [5, 5, 0]
    library.close()
    library = open_named("rebuilt", EMBEDDING_PROVIDER="hashing")
    library.reembed(["docs"])
    assert vectors(library) == [5, 5, 0]
    library.delete_tool("docs")
    assert vectors(library) == [0, 0, 0]


def test_the_first_import_into_a_library_of_an_older_bunko_deletes_what_that_left(
    folder: Path, open_named: OpenNamed, run: Run
) -> None:
    library = open_named("older")
    put(folder, "a.md", "京都")
    library.add(folder, name="docs")
    library.reindex()
    location = library.paths.database
    library.close()
    with closing(sqlite3.connect(location)) as older, older:
        older.execute("DELETE FROM meta WHERE key = 'swept'")
        orphans = [(number.to_bytes(4, "big"), bytes(1024)) for number in range(1799)]
        older.executemany("INSERT INTO vectors VALUES (?, ?)", orphans)
    shown = run("status", "--database", location)
    assert "no document uses 1,799 vectors (1.8 MB); the next import uses or deletes them\n" in shown.out
    assert json.loads(run("status", "--json", "--database", location).out)["unused_vectors"] == {
        "count": 1799,
        "bytes": 1799 * 1024,
    }
    library = open_named("older")
    assert library.reindex().unchanged == 1
    assert vectors(library) == [1, 1, 0]
