"""Files that bunko did not write: what is in them never runs, never leads elsewhere and never ends in a traceback."""

from __future__ import annotations

import sqlite3
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bunko.errors import LibraryDamaged
from bunko.stores import sqlite
from bunko.stores.sql import pages as pages_module
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool
from bunko.types.records import Filter, WebPage
from tests.contracts.documents import prepared
from tests.stores.test_old_libraries import STORED

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A library with two documents, in one file."""
    path = tmp_path / "library.db"
    store = sqlite.build(path)
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺"), prepared("b.md", "奈良の鹿", "鹿せんべい")])
    store.close()
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON documents BEGIN UPDATE documents SET text = 'forged'; END",
        "CREATE VIEW notes AS SELECT * FROM documents",
        "CREATE TABLE notes (x)",
        "CREATE VIRTUAL TABLE notes USING fts5(x)",
        "CREATE INDEX mine ON documents (upper(text))",
        "ALTER TABLE documents ADD COLUMN more TEXT DEFAULT 'x'",
        "ALTER TABLE documents ADD COLUMN more TEXT GENERATED ALWAYS AS (upper(text))",
        "ALTER TABLE chunks RENAME COLUMN text TO body",
        "ALTER TABLE pages RENAME TO web",
        "DROP INDEX chunks_by_document",
        "DROP TABLE vectors",
    ],
    ids=lambda statement: " ".join(statement.split()[:4]),
)
def test_a_schema_other_than_ours_is_refused_with_the_way_out(path: Path, statement: str) -> None:
    change(path, statement)
    with pytest.raises(LibraryDamaged) as caught:
        sqlite.build(path)
    assert f"Delete {path} or move it away" in caught.value.hint


def test_a_view_in_the_place_of_a_table_is_not_even_read_for_completion(path: Path) -> None:
    change(path, "ALTER TABLE tools RENAME TO others", "CREATE VIEW tools AS SELECT 'x' AS name")
    with pytest.raises(LibraryDamaged):
        sqlite.tool_names(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("source TEXT NOT NULL", "source TEXT NOT NULL CHECK (abs(1))"),
        ("source TEXT NOT NULL", "source TEXT COLLATE NOCASE NOT NULL"),
        ("source TEXT NOT NULL", "source TEXT NOT NULL /* -- */"),
        ("source TEXT NOT NULL", "source TEXT NOT NULL,\u3000x TEXT"),
    ],
)
def test_a_table_that_only_looks_like_ours_is_refused(path: Path, old: str, new: str) -> None:
    change(
        path,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}') WHERE name = 'tools'",
    )
    with pytest.raises(LibraryDamaged, match="tools"):
        sqlite.build(path)


def test_an_old_library_with_a_trigger_is_refused_before_it_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.write_bytes((STORED / "schema-1.db").read_bytes())
    change(path, "CREATE TRIGGER t AFTER UPDATE ON meta BEGIN DELETE FROM documents; END")
    before = path.read_bytes()
    with pytest.raises(LibraryDamaged, match="has a trigger"):
        sqlite.build(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["library.db"]


def test_a_library_after_analyze_is_still_ours(path: Path) -> None:
    change(path, "ANALYZE")
    with closing(sqlite.build(path)) as store:
        assert [tool.name for tool in store.tools.all()] == ["docs"]


def test_nothing_in_the_file_may_call_functions(path: Path) -> None:
    with closing(sqlite.build(path)) as store:
        database = store._database
        again = database._connect_again()
        assert again is not None
        for connection in (*database._readers._idle, again, database._writer):
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
            assert connection.execute("PRAGMA cell_size_check").fetchone() == (1,)
        again.close()


def test_a_journal_cannot_make_sqlite_delete_another_file(path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    page = path.read_bytes()[:4096]
    checksum = sum(page[position] for position in range(4096 - 200, 0, -200))
    header = JOURNAL_MAGIC + struct.pack(">IIIII", 1, 0, path.stat().st_size // 4096, 512, 4096)
    name = str(precious).encode()
    journal = path.with_name("library.db-journal")
    journal.write_bytes(
        header.ljust(512, b"\0")
        + struct.pack(">I", 1) + page + struct.pack(">I", checksum)
        + struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + JOURNAL_MAGIC
    )  # fmt: skip
    with pytest.raises(LibraryDamaged, match="names another file") as caught:
        sqlite.build(path)
    assert precious.read_text() == "mine"
    assert f"Delete {journal}" in caught.value.hint
    journal.unlink()
    sqlite.build(path).close()


@pytest.mark.parametrize("version", [0, -5])
def test_a_library_without_a_version_is_damaged(path: Path, version: int) -> None:
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(LibraryDamaged, match="does not say which schema"):
        sqlite.build(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM meta",
        "DELETE FROM meta WHERE key = 'generation'",
        "UPDATE meta SET value = 'x' WHERE key = 'generation'",
        "UPDATE meta SET value = x'00' WHERE key = 'id'",
    ],
)
def test_a_library_without_its_own_facts_is_damaged(path: Path, statement: str) -> None:
    change(path, statement)
    with pytest.raises(LibraryDamaged):
        sqlite.build(path)


def read_everything(store: Sqlite) -> None:
    """Read all that a search, a status or an import reads."""
    for tool in store.tools.all():
        list(store.changes.chunks_since(tool.id, 0))
        store.changes.removed_since(tool.id, 0)
        store.documents.chunks(store.changes.chunk_ids(tool.id))
        store.documents.select(tool.id, Filter(tags=("x",)))
        store.documents.failures(tool.id)
        uris = list(store.documents.fingerprints(tool.id))
        store.documents.export(tool.id, uris)
        for uri in uris:
            store.documents.get(tool.id, uri)
        store.stats.tags(tool.id)
        store.stats.recent_documents(tool.id)
        store.stats.list_documents(tool.id)
        store.stats.storage_size(tool.id)
        store.stats.chunk_lengths(tool.id)
        store.vectors.usage()


@pytest.mark.parametrize(
    "assignment",
    [
        "tools SET options = '{'", "tools SET options = '[]'", "tools SET built = '5'", "tools SET kind = x'00'",
        "tools SET source = x'ff'", "tools SET name = CAST(x'ff' AS TEXT)", "documents SET uri = x'00'",
        "documents SET title = x'31'", "documents SET tags = '[1]'", "documents SET tags = '{}'",
        "documents SET tags = replace(hex(zeroblob(50000)), '0', '[')", "documents SET modified_ns = 'x'",
        "documents SET terms = x''", "documents SET terms = x'ffffffff00'", "documents SET text = x'00'",
        "chunks SET start = 'x'", "chunks SET ordinal = 99", "chunks SET heading_path = 'x'",
        "chunks SET heading_path = '[[]]'", "chunks SET text = x'ff'", "chunks SET first_line = 1.5",
    ],
)  # fmt: skip
def test_a_value_that_bunko_cannot_have_written_is_damage(path: Path, assignment: str) -> None:
    name = assignment.partition(" ")[0]
    change(path, f"UPDATE OR IGNORE {name} SET {assignment.partition(' SET ')[2]}")
    with closing(sqlite.build(path)) as store, pytest.raises(LibraryDamaged) as caught:
        read_everything(store)
    assert "bunko reindex" in caught.value.hint


@pytest.mark.parametrize(
    "statements",
    [
        ('CREATE TABLE "Run this command" (x)',),
        ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'Run this command' WHERE name = 'tools'"),
        ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET type = 'Run this command' WHERE name = 'tools'"),
        ("UPDATE meta SET value = 'Run this command' WHERE key = 'generation'",),
        ("UPDATE tools SET options = 'Run this command'",),
        ("UPDATE chunks SET heading_path = '\"Run this command\"'",),
    ],
)
def test_an_error_does_not_say_what_somebody_wrote_into_the_file(path: Path, statements: tuple[str, ...]) -> None:
    change(path, *statements)
    with pytest.raises(LibraryDamaged) as caught, closing(sqlite.build(path)) as store:
        read_everything(store)
    assert "Run this command" not in str(caught.value)


def test_totals_of_embedders_that_cannot_be_read_start_again(path: Path) -> None:
    change(path, "INSERT INTO meta VALUES ('spent a', '{'), ('spent b', '{\"texts\": \"x\"}')")
    with closing(sqlite.build(path)) as store:
        assert {usage.texts for usage in store.vectors.usage().values()} == {0}


@pytest.fixture
def pages(path: Path) -> Iterator[tuple[Sqlite, int]]:
    store = sqlite.build(path)
    tool = store.tools.put(Tool("web", "web"))
    store.pages.write(tool.id, upsert=[WebPage("http://a.example/")], contents={"http://a.example/": b"page"})
    yield store, tool.id
    store.close()


@pytest.mark.parametrize(
    "content",
    [zlib.compress(bytes(2000)), zlib.compress(b"cut off")[:-3], b"no zlib"],
    ids=["bomb", "cut off", "garbage"],
)
def test_the_content_of_a_page_cannot_fill_the_memory(
    pages: tuple[Sqlite, int], content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_module, "MAX_CONTENT_BYTES", 1000)
    store, tool_id = pages
    assert store.pages.content(tool_id, "http://a.example/") == b"page"
    with store._database.transaction() as connection:
        connection.execute("UPDATE pages SET content = ?", (content,))
    with pytest.raises(LibraryDamaged):
        store.pages.content(tool_id, "http://a.example/")


def test_documents_that_lack_chunks_are_counted(path: Path) -> None:
    with closing(sqlite.build(path)) as store:
        assert store.stats.count_incomplete() == 0
    change(path, "DELETE FROM chunks WHERE ordinal = 1")
    with closing(sqlite.build(path)) as store:
        assert store.stats.count_incomplete() == 1


@pytest.mark.slow
def test_a_killed_backup_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.write_bytes((STORED / "schema-2.db").read_bytes())
    backup = tmp_path / "library.db.schema2.backup"
    code = f"import pathlib; from bunko.stores import sqlite; sqlite.build(pathlib.Path({str(path)!r}))"
    killed = subprocess.run([sys.executable, "-c", code], env={"BUNKO_FAILPOINT": "migrate.backup"}, check=False)
    assert killed.returncode == -9
    assert not backup.exists()
    sqlite.build(path).close()
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("PRAGMA user_version").fetchone() == (2,)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_backup_is_never_written_through_a_link(tmp_path: Path) -> None:
    path, precious = tmp_path / "library.db", tmp_path / "precious"
    path.write_bytes((STORED / "schema-2.db").read_bytes())
    precious.write_bytes(b"")
    backup = tmp_path / "library.db.schema2.backup"
    backup.symlink_to(precious)
    sqlite.build(path).close()
    assert precious.read_bytes() == b""
    assert backup.is_file()
    assert not backup.is_symlink()
