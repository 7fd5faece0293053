"""Open libraries written by older versions of bunko, and check the messages for files that cannot be opened."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import LibraryDamaged, LibraryError, LibraryReadOnly, LibraryTooNew
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.stores.sqlite import schema
from bunko.stores.sqlite.errors import translate_errors
from bunko.types.records import Filter
from tests.conftest import Run

STORED = Path(__file__).parents[1] / "fixtures" / "libraries"
SCHEMAS = (1, 2, 3)
TOOLS = {1: ["notes"], 2: ["memos", "notes"], 3: ["knowledge", "memos", "notes"]}
EMBEDDERS = {1: "hashing", 2: "static", 3: "static"}

CopyStored = Callable[[int], Path]


@pytest.fixture
def copy_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CopyStored:
    """Copy the library of a schema into a folder of its own, and return its file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def copy(number: int) -> Path:
        database = tmp_path / "library" / "library.db"
        database.parent.mkdir()
        shutil.copyfile(STORED / f"schema-{number}.db", database)
        return database

    return copy


def open_at(database: Path, *, read_only: bool = False, embedder: str = "") -> Library:
    environ = {"BUNKO_EMBEDDING_PROVIDER": embedder} if embedder else {}
    return open_library(locate_library(library=database.parent, environ={}), environ=environ, read_only=read_only)


def best_uri(library: Library, query: str, **options: Any) -> str:
    """Return the uri of the best hit, from what the library holds alone: its sources are not on this machine."""
    hits = library.search(query, refresh=False, **options).hits
    return hits[0].uri if hits else ""


def schema_of(database: Path) -> int:
    with sqlite3.connect(database) as connection:
        number = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.close()
    return number


def test_there_is_a_library_of_every_schema_up_to_this_one() -> None:
    assert sorted(STORED.glob("*.db")) == [STORED / f"schema-{number}.db" for number in SCHEMAS]
    assert [schema_of(STORED / f"schema-{number}.db") for number in SCHEMAS] == list(SCHEMAS)
    assert set(SCHEMAS) >= set(schema.MIGRATIONS)


@pytest.mark.parametrize("number", SCHEMAS)
def test_an_old_library_is_searched_in_both_languages(number: int, copy_stored: CopyStored) -> None:
    with open_at(copy_stored(number)) as library:
        assert best_uri(library, "露天風呂のある旅館", mode="bm25") == "温泉.md"
        assert best_uri(library, "予算の会議", mode="bm25") == "会議/2025-04-10.md"
        assert best_uri(library, "feeding a sourdough starter", mode="bm25") == "sourdough.md"
        assert best_uri(library, "when to water tomatoes", mode="bm25") == "garden.md"
        assert best_uri(library, "来年度", mode="bm25", where=Filter(tags=("予算",))) == "会議/2025-04-10.md"


@pytest.mark.parametrize("number", SCHEMAS)
def test_an_old_library_tells_what_it_holds(number: int, copy_stored: CopyStored) -> None:
    with open_at(copy_stored(number)) as library:
        assert [tool.name for tool in library.tools()] == TOOLS[number]
        notes = next(status for status in library.status().tools if status.tool.name == "notes")
        assert (notes.tool.source, notes.totals.documents, notes.totals.vectors) == ("/home/hana/notes", 4, 4)
        assert notes.source_state == "missing"
        assert library.tags("notes") == [("garden", 1), ("予算", 1), ("会議", 1)]
        dates = {document.uri: document.date for _, document in library.recent_documents("notes")}
        assert (dates["garden.md"], dates["会議/2025-04-10.md"]) == ("2025-05-03", "2025-04-10")
        assert [item.uri for item in library.tool_status("notes").documents][:2] == ["garden.md", "sourdough.md"]


@pytest.mark.parametrize("number", [2, 3])
def test_memos_of_an_old_library_keep_their_lines(number: int, copy_stored: CopyStored) -> None:
    with open_at(copy_stored(number)) as library:
        hit = library.search("図書館 library card", tool="memos", mode="bm25", refresh=False).hits[0]
        document = library.document_of(hit)
        assert document is not None
        assert (document.title, document.tags, document.lines.first) == ("Library card", ("errand",), 7)
        assert best_uri(library, "パンクの修理", tool="memos", mode="bm25") == "ChangeLog#2025-06-01-自転車の修理"


def test_a_table_that_an_older_bunko_creates_again_after_the_migration_does_no_harm(copy_stored: CopyStored) -> None:
    """A server of that version that was not stopped does not notice the migration."""
    database = copy_stored(3)
    open_at(database).close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE sentences (key BLOB PRIMARY KEY, vectors BLOB NOT NULL)")
    with open_at(database) as library:
        assert best_uri(library, "予算の会議", mode="bm25") == "会議/2025-04-10.md"
        assert library.store.check() == ""


def test_the_vectors_of_sentences_give_way_to_their_subwords(tmp_path: Path) -> None:
    database, notes = tmp_path / "library" / "library.db", tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# 庭\n\n池に鯉がいます。松の手入れは秋にします。", encoding="utf-8")
    with open_at(database) as library:
        library.add(notes, name="notes")
        library.reindex()
        before = library.search("魚のいる庭", refresh=False).hits
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE sentences (key BLOB PRIMARY KEY, vectors BLOB NOT NULL)")
        connection.execute("INSERT INTO sentences SELECT key, zeroblob(512) FROM vectors")
        connection.execute("DROP TABLE subwords")
        connection.execute("PRAGMA user_version = 3")
        connection.commit()
    with open_at(database) as library:
        found = library.search("魚のいる庭", refresh=False).hits
        assert [(hit.uri, hit.score) for hit in found] == [(hit.uri, hit.score) for hit in before] != []
        [warning] = [finding for finding in library.maintenance.diagnose() if "older bunko" in finding.message]
        assert (warning.state, warning.message[:8]) == ("warning", "1 chunks")
        assert "bunko reembed -n notes" in warning.hint
        assert library.reembed(["notes"]).embedded == 1
        assert library.reembed(["notes"]).embedded == 0
        assert not [finding for finding in library.maintenance.diagnose() if "older bunko" in finding.message]
        found = library.search("魚のいる庭", refresh=False).hits
        assert [(hit.uri, hit.score) for hit in found] == [(hit.uri, hit.score) for hit in before]
    with closing(sqlite3.connect(database)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert "sentences" not in tables
        assert connection.execute("SELECT count(*) FROM subwords").fetchone() == (1,)


def test_web_pages_of_an_old_library_are_still_there(copy_stored: CopyStored) -> None:
    with open_at(copy_stored(3)) as library:
        assert best_uri(library, "急須で新茶を淹れる", mode="bm25") == "http://hana.example/tea"
        tool = library.resolve_tool("knowledge")
        content = library.store.pages.content(tool.id, "http://hana.example/tea")
        assert content is not None
        assert "二煎目" in content.decode()


@pytest.mark.parametrize("number", SCHEMAS)
def test_an_old_library_is_brought_up_to_date_after_a_backup_beside_it(number: int, copy_stored: CopyStored) -> None:
    database = copy_stored(number)
    open_at(database).close()
    backup = database.with_name(f"library.db.schema{number}.backup")
    assert schema_of(database) == schema.VERSION
    assert backup.exists() == (number < schema.VERSION)
    if backup.exists():
        database.unlink()
        backup.rename(database)  # as somebody does who goes back
        assert schema_of(database) == number
        with open_at(database) as library:
            assert best_uri(library, "露天風呂", mode="bm25") == "温泉.md"


@pytest.mark.parametrize("number", SCHEMAS)
def test_an_old_library_takes_in_new_documents(number: int, copy_stored: CopyStored, docs: Path) -> None:
    (docs / "温泉.md").write_text("# 草津の温泉\n\n湯畑のそばの宿に泊まった。", encoding="utf-8")
    (docs / "train.md").write_text("# Night train\n\nThe sleeper leaves Tokyo at ten in the evening.", encoding="utf-8")
    database = copy_stored(number)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE tools SET source = ? WHERE name = 'notes'", (str(docs),))
    connection.close()
    with open_at(database, embedder=EMBEDDERS[number]) as library:
        report = library.import_tools(["notes"], "update")
        assert (report.added, report.updated, report.deleted) == (1, 1, 3)
        assert best_uri(library, "湯畑", tool="notes") == "温泉.md"
        assert best_uri(library, "sleeper to Tokyo", tool="notes") == "train.md"
        assert library.store.check() == ""


@pytest.mark.parametrize("number", SCHEMAS)
def test_an_old_library_is_searched_with_the_embedder_that_built_it_while_there_is_one(
    number: int, copy_stored: CopyStored
) -> None:
    with open_at(copy_stored(number), embedder=EMBEDDERS[number]) as library:
        assert best_uri(library, "箱根の旅館", mode="hybrid") == "温泉.md"
        assert best_uri(library, "bake bread in an iron pot", mode="hybrid") == "sourdough.md"
        problems = {finding.message for finding in library.maintenance.diagnose() if finding.state != "ok"}
        missing = {f"its source /home/hana/{name} is missing; the index is kept" for name in ("notes", "ChangeLog")}
        assert problems - missing <= {
            "was built with a different tokenizer, and keeps it",
            "only words are searched: the model static is newer than its vectors",
        }


def test_with_another_embedder_an_old_library_is_searched_by_words_and_can_get_new_vectors(
    copy_stored: CopyStored, run: Run
) -> None:
    database = copy_stored(1)
    with open_at(database) as library:
        answer = library.search("箱根の旅館", mode="hybrid", refresh=False)
        assert (answer.mode, answer.hits[0].uri) == ("bm25", "温泉.md")
        assert any("its embedder hashing" in notice for notice in answer.notices)
        name = library.tools()[0].name
    assert run("reembed", "-n", name, "--database", database).code == 0
    with open_at(database) as library:
        assert best_uri(library, "箱根の旅館", mode="hybrid") == "温泉.md"


@pytest.mark.parametrize("number", SCHEMAS)
def test_an_old_library_opened_for_reading_works_or_names_the_command_that_lets_it(
    number: int, copy_stored: CopyStored, run: Run
) -> None:
    database = copy_stored(number)
    before = database.read_bytes()
    if number < schema.VERSION:
        with pytest.raises(LibraryReadOnly, match=f"older schema {number}") as caught:
            open_at(database, read_only=True)
        assert database.read_bytes() == before
        command = shlex.split(caught.value.hint.partition(": ")[2])
        assert run(*command[1:]).code == 0
    with open_at(database, read_only=True) as library:
        assert best_uri(library, "露天風呂", mode="bm25") == "温泉.md"


def raise_schema(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()


def overwrite_with_text(database: Path) -> None:
    database.write_bytes(b"this is a letter to a friend, not a database\n" * 100)


def truncate(database: Path) -> None:
    content = database.read_bytes()
    database.write_bytes(content[: len(content) // 2])


def keep_a_few_bytes(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:50])


def zero_pages(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[16_384:65_536] = bytes(49_152)
    database.write_bytes(content)


def drop_table(table: str) -> Callable[[Path], None]:
    def drop(database: Path) -> None:
        with sqlite3.connect(database) as connection:
            connection.execute(f"DROP TABLE {table}")
        connection.close()

    return drop


def empty(database: Path) -> None:
    database.write_bytes(b"")


def replace_with_other_database(database: Path) -> None:
    database.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


@pytest.mark.parametrize(
    ("damage", "error", "next_step"),
    [
        (raise_schema, LibraryTooNew, "pip install -U bunko"),
        (overwrite_with_text, LibraryDamaged, "Delete {database} or move it away"),
        (truncate, LibraryDamaged, "Delete {database} or move it away"),
        (keep_a_few_bytes, LibraryDamaged, "Delete {database} or move it away"),
        (zero_pages, LibraryDamaged, "Delete {database} or move it away"),
        (drop_table("meta"), LibraryDamaged, "Delete {database} or move it away"),
        (drop_table("chunks"), LibraryDamaged, "Delete {database} or move it away"),
        (empty, LibraryError, "bunko add DIR"),
        (replace_with_other_database, LibraryDamaged, "Name another file or folder with --database or --library"),
    ],
    ids=["newer", "letter", "truncated", "a few bytes", "zeroed", "no meta", "no chunks", "emptied", "somebody else's"],
)
def test_doctor_and_status_say_what_to_do_about_a_library_that_cannot_be_used(
    damage: Callable[[Path], None], error: type[LibraryError], next_step: str, copy_stored: CopyStored, run: Run
) -> None:
    database = copy_stored(3)
    damage(database)
    for command in ("doctor", "status"):
        ran = run(command, "--library", database.parent)
        assert ran.code == EXIT_CODES[error.code]
        message, hint = ran.err.splitlines()
        assert str(database) in message
        assert not message.endswith(".")
        assert next_step.format(database=database) in hint
        assert "bunko doctor" not in ran.err


def test_an_error_of_sqlite_that_has_no_name_says_what_to_do_without_doctor(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    with pytest.raises(LibraryError, match="unknown error") as caught, translate_errors(path, str(path)):
        raise sqlite3.OperationalError("unknown error")
    assert "run the same command again" in caught.value.hint
    assert f"Delete {path}" in caught.value.hint
    assert "doctor" not in caught.value.hint


def test_after_a_damaged_library_is_deleted_as_told_the_same_import_works(run: Run, docs: Path) -> None:
    (docs / "a.md").write_text("# 京都\n\n寺の庭を訪ねた日の、少し長めの記録。", encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    truncate(docs / ".rag-index" / "library.db")
    ran = run("search", "京都", "--docs-dir", docs)
    assert ran.code == EXIT_CODES["damaged"]
    named = re.search(r"Delete (.+) or move it away", ran.err)
    assert named is not None
    Path(named[1]).unlink()
    assert run("reindex", "--docs-dir", docs).code == 0
    assert run("search", "京都", "--docs-dir", docs).out.startswith("[1] a.md")


def test_doctor_names_the_file_in_which_something_is_wrong(copy_stored: CopyStored, run: Run) -> None:
    database = copy_stored(3)
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM tools WHERE name = 'memos'")  # and its documents stay behind
    connection.close()
    ran = run("doctor", "--library", database.parent)
    assert ran.code == 1
    assert f"Delete {database} or move it away" in ran.out
