"""What only a file can go through: other versions, damage, other processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko.errors import LibraryDamaged, LibraryError, LibraryReadOnly, LibraryTooNew
from bunko.stores import sqlite
from bunko.stores.sql import unused_vectors
from bunko.stores.sqlite import schema
from bunko.text import analyzer
from bunko.text.term_codec import pack_terms
from bunko.types import Chunk, Document, LineSpan, SourceEntry, Text, Tool
from bunko.types.records import PreparedDocument


def test_a_library_of_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    sqlite.build(tmp_path / "library.db").close()
    with sqlite3.connect(tmp_path / "library.db") as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    with pytest.raises(LibraryTooNew, match="newer bunko") as caught:
        sqlite.build(tmp_path / "library.db")
    assert "pip install -U bunko" in caught.value.hint


def test_tables_that_a_newer_bunko_changes_while_they_are_open_are_neither_read_nor_written(tmp_path: Path) -> None:
    store = sqlite.build(tmp_path / "library.db")
    store.tools.put(Tool("docs"))
    connection = sqlite3.connect(tmp_path / "library.db")
    with store.read_transaction():
        assert store.generation() == 0
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")  # as the first process of a newer bunko does
        assert [tool.name for tool in store.tools.all()] == ["docs"], "a search ends with what it began with"
    with pytest.raises(LibraryTooNew, match=f"newer bunko .schema {schema.VERSION + 1}"), store.read_transaction():
        pass
    with pytest.raises(LibraryTooNew):
        store.tools.put(Tool("late"))
    store.cache.log_search("京都", "docs", "2026-01-01T00:00:00", limit=10)  # it may be lost
    assert connection.execute("SELECT name FROM tools").fetchall() == [("docs",)]
    assert not connection.execute("SELECT name FROM sqlite_master WHERE name = 'asked'").fetchall()
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    connection.close()
    store.tools.put(Tool("later"))
    with store.read_transaction():
        assert len(store.tools.all()) == 2
    store.close()


def test_an_older_library_is_brought_up_to_date_after_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "library.db"
    old = sqlite.build(path)
    old.tools.put(Tool("docs"))
    old.close()
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setitem(
        schema.MIGRATIONS, schema.VERSION - 1, lambda c: c.execute("UPDATE tools SET description = 'of today'")
    )
    new = sqlite.build(path)
    assert [tool.name for tool in new.tools.all()] == ["docs"]
    new.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert connection.execute("SELECT description FROM tools").fetchall() == [("of today",)]
    connection.close()
    with sqlite3.connect(f"{path}.schema{schema.VERSION - 1}.backup") as backup:
        assert backup.execute("SELECT name, description FROM tools").fetchall() == [("docs", "")]
    backup.close()


def test_a_library_of_the_first_schema_keeps_its_documents(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    store = sqlite.build(path)
    tool = store.tools.put(Tool("docs"))
    text = Text("京都の寺", "text/plain", "utf-8", "寺")
    chunk = Chunk(0, 0, 4, 1, 1, "京都の寺")
    store.documents.write(
        tool.id,
        upsert=[
            PreparedDocument(
                Document(SourceEntry("a.md", 12, 1), text, "h"), [chunk], pack_terms([analyzer.term_keys("寺")])
            )
        ],
    )
    store.close()
    with sqlite3.connect(path) as connection:
        for column in ("first_line", "last_line"):
            connection.execute(f"ALTER TABLE documents DROP COLUMN {column}")
        for table in ("pages", "answers"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    store = sqlite.build(path)
    document = store.documents.get(tool.id, "a.md")
    assert document is not None
    assert (document.text, document.lines) == ("京都の寺", LineSpan(1, 0))
    store.documents.write(
        tool.id,
        upsert=[
            PreparedDocument(
                Document(SourceEntry("b.md", 12, 1), text, "h"), [chunk], pack_terms([analyzer.term_keys("寺")])
            )
        ],
    )
    assert store.documents.uris(tool.id) == ["a.md", "b.md"]
    store.close()
    with sqlite3.connect(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"pages", "answers"} <= tables


def test_a_migration_that_fails_leaves_the_old_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "library.db"
    sqlite.build(path).close()
    with monkeypatch.context() as patched:
        patched.setattr(schema, "VERSION", schema.VERSION + 1)
        patched.setitem(
            schema.MIGRATIONS,
            schema.VERSION - 1,
            lambda c: (c.execute("DROP TABLE chunks"), c.execute("SELECT no such thing")),
        )
        with pytest.raises(LibraryError):
            sqlite.build(path)
    again = sqlite.build(path)
    assert again.check() == ""
    again.close()


def test_a_file_that_is_no_database_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.write_bytes(b"this is a letter to a friend, not a database" * 100)
    with pytest.raises(LibraryDamaged, match="not a readable library"):
        sqlite.build(path)


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LibraryDamaged, match="not a bunko library"):
        sqlite.build(path)
    assert path.read_bytes() == before


def test_a_reader_sees_one_state_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    reader, writer = sqlite.build(path), sqlite.build(path)
    with reader.read_transaction():
        assert reader.tools.all() == []
        writer.tools.put(Tool("docs"))
        assert reader.tools.all() == []
    assert [tool.name for tool in reader.tools.all()] == ["docs"]
    reader.close()
    writer.close()


def test_a_library_opened_for_reading_cannot_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    sqlite.build(path).close()
    store = sqlite.build(path, read_only=True)
    with pytest.raises(LibraryReadOnly, match="reading only"):
        store.tools.put(Tool("docs"))
    store.close()


def test_a_library_that_is_not_there_cannot_be_opened_for_reading(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="no library"):
        sqlite.build(tmp_path / "library.db", read_only=True)
    assert not (tmp_path / "library.db").exists()


def test_ctrl_c_right_behind_the_beginning_of_a_transaction_leaves_none_open(tmp_path: Path) -> None:
    class Interrupted:
        """A connection that is interrupted at the first moment when Python looks again."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection, self._once = connection, True

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            cursor = self._connection.execute(statement, *values)
            if statement.startswith("BEGIN") and self._once:
                self._once = False
                raise KeyboardInterrupt
            return cursor

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    store = sqlite.build(tmp_path / "library.db")
    store._database._writer = Interrupted(store._database._writer)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        store.tools.put(Tool("docs"))
    assert store.tools.all() == []
    store.tools.put(Tool("docs"))
    assert [tool.name for tool in store.tools.all()] == ["docs"]
    store.close()


def test_others_write_between_the_steps_in_which_unused_vectors_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unused_vectors, "BATCH", 2)
    store, other = sqlite.build(tmp_path / "library.db"), sqlite.build(tmp_path / "library.db")
    tool = store.tools.put(Tool("docs"))
    store.vectors.pin(tool.id, "a", {bytes([number]): np.ones(2, np.float32) for number in range(7)})
    store.vectors.unpin(tool.id)
    left = []
    transaction = store._database.transaction

    @contextmanager
    def after_another_write() -> Iterator[sqlite3.Connection]:
        left.append(other.vectors.unused().count)
        other.tools.put(Tool(f"tool{len(left)}"))  # fails after a moment if the library is locked
        with transaction() as connection:
            yield connection

    monkeypatch.setattr(store._database, "transaction", after_another_write)
    store.vectors.delete_released(tool.id)
    assert left == [7, 5, 3, 1]
    assert store.vectors.unused().count == 0
    other.vectors.pin(tool.id, "a", {bytes([number]): np.ones(2, np.float32) for number in range(3)})
    other.vectors.unpin(tool.id)
    left.clear()
    store.vectors.delete_orphans()
    assert left == [3, 3, 1, 0]
    other.close()
    store.close()
