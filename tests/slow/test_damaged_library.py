"""Damage of every kind, at random places: each command answers or says what to do, and never ends in a traceback."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bunko.errors import BunkoError
from bunko.indexes.embedded import segment
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.runtime import array_file
from tests.conftest import Run

pytestmark = pytest.mark.slow

ROUNDS = 25
COMMANDS = (
    ("search", "server 京都"), ("search", "庭 dog", "--mode", "semantic", "--extract", "section"),
    ("search", "budget", "--mode", "bm25", "--since", "2020", "--json"), ("status",), ("status", "-n", "documents"),
    ("doctor",), ("tags",), ("recent",), ("tool", "ls", "--all"), ("reindex",),
)  # fmt: skip
VALUES = (
    0, -1, 2**62, 1.5, float("inf"), "", "x", "[", "{}", "[1]", '[["a"]]', "null", "../../etc/passwd", "9" * 5000,
    "[" * 100_000, b"", b"\xff", b"\xff\xfe" * 40, b"\0" * 1024, b"\x00\x00\xc0\x7f" * 256, b"\xff\xff\xff\xff" * 3,
)  # fmt: skip
Damage = Callable[[random.Random, Path], str]


def tables_and_columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


def change_value(rng: random.Random, database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        table, columns = rng.choice(list(tables_and_columns(connection).items()))
        column, value = rng.choice(columns), rng.choice(VALUES)
        try:
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
        except sqlite3.IntegrityError:  # an id that must be a number
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = 7")
        connection.commit()
    return f"{table}.{column} = {str(value)[:40]!r}"


def change_table(rng: random.Random, database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        table = rng.choice([name for name in tables_and_columns(connection) if name != "sqlite_sequence"])
        statement = rng.choice(
            (
                f"DROP TABLE {table}",
                f"DELETE FROM {table}",
                f"DELETE FROM {table} WHERE random() % 2",
                f"ALTER TABLE {table} RENAME TO other",
                f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END",
                f"PRAGMA user_version = {rng.choice((0, 1, 2, -5, 99))}",
            )
        )
        connection.execute(statement)
        connection.commit()
    return statement


def change_bytes(rng: random.Random, path: Path) -> str:
    data = bytearray(path.read_bytes())
    if rng.random() < 0.2:
        length = rng.randrange(len(data))
        path.write_bytes(data[:length])
        return f"cut off after {length}"
    places = [rng.randrange(rng.choice((512, len(data)))) for _ in range(rng.choice((1, 3, 50)))]
    for place in places:
        data[place] = rng.choice((0, 255, rng.randrange(256)))
    path.write_bytes(data)
    return f"bytes at {places[:5]}"


def change_index_bytes(rng: random.Random, database: Path) -> str:
    return change_bytes(rng, next((database.parent / "index").glob("*.segment")))


def change_index_values(rng: random.Random, database: Path) -> str:
    """Change numbers in the index, with a valid checksum."""
    path = next((database.parent / "index").glob("*.segment"))
    arrays, stamp = array_file.load_arrays(path, format_version=segment.FORMAT)
    name = rng.choice([name for name, array in arrays.items() if array.size])
    changed = bytearray(arrays[name].tobytes())
    for _ in range(rng.choice((1, 4, 100))):
        changed[rng.randrange(len(changed))] = rng.choice((0, 127, 128, 255, rng.randrange(256)))
    arrays[name] = np.frombuffer(changed, arrays[name].dtype).reshape(arrays[name].shape)
    array_file.save_arrays(path, arrays, format_version=segment.FORMAT, stamp=stamp)
    return name


@pytest.fixture
def intact(docs: Path, run: Run) -> Path:
    """A library of a few documents, in one file and an index file; a copy of it can be damaged."""
    (docs / "京都.md").write_text(
        "---\ntags: [旅]\ndate: 2024-03-01\n---\n# 京都\n\n寺と庭。\n\n## 予算\n\n宿は一万円。\n", encoding="utf-8"
    )
    (docs / "empty.md").write_text("")
    for number in range(12):
        text = f"# Note {number}\n\nNumber {number} 京都 予算 server. The dog sleeps in the garden. 犬は庭で寝る。\n"
        (docs / f"{number}.md").write_text(text, encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    with closing(sqlite3.connect(docs / ".rag-index" / "library.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    shutil.copytree(docs / ".rag-index", docs.parent / "intact")
    return docs.parent / "intact"


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("damage", [change_value, change_table, change_bytes, change_index_bytes, change_index_values])
def test_a_damaged_library_never_ends_in_a_traceback(
    damage: Damage, size: str, docs: Path, intact: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{damage.__name__} {size}")
    if size == "large":
        monkeypatch.setattr(array_file, "MAX_VERIFIED_BYTES", 0)  # as for a file too large to be checked on opening
    for _ in range(ROUNDS):
        shutil.rmtree(docs / ".rag-index")
        shutil.copytree(intact, docs / ".rag-index")
        done = damage(rng, docs / ".rag-index" / "library.db")
        for command in COMMANDS:
            try:
                ran = run(*command, "--docs-dir", docs)
            except Exception as error:
                raise AssertionError(f"{command} after {done}") from error
            assert ran.code in (0, 1, *EXIT_CODES.values()), done
            assert ran.code in (0, 1) or ran.err.count("\n") >= 2, f"{command} after {done}: {ran.err}"
            assert "NaN" not in ran.out, f"{command} after {done}"
        assert_assistants_get_an_answer_or_an_error(docs, done)


def assert_assistants_get_an_answer_or_an_error(docs: Path, done: str) -> None:
    paths = locate_library(docs_dir=docs, environ={})
    with closing(ToolRegistry(lambda: open_library(paths, environ={}), folder=str(docs))) as registry:
        [search] = [tool for tool in registry.tools() if tool.name == "search"]
        try:
            reply = registry.call(search, {"query": "京都 server", "extract": "full"}).text
        except BunkoError as error:
            reply = error.hint
    assert reply, done
