"""Backups and restores that are killed again and again, while a server answers and imports run, lose nothing.

`BUNKO_TEST_KILLS=500` kills 125 times each; with `-s`, the tests print what they did.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bunko.errors import LibraryError
from bunko.library.open import open_library
from tests.http.server import ask
from tests.library.full_library import place
from tests.slow import corpus
from tests.slow.serving import TOKEN, over_http
from tests.slow.test_kill_storm import Storm, check_file, rows, write_all
from tests.slow.test_kill_storm import storm as storm  # a fixture

pytestmark = pytest.mark.slow

UNFINISHED = "is an unfinished copy of a library"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TABLES = ("tools", "documents", "chunks", "vectors", "subwords", "removed", "sqlite_sequence")


def tables(database: Path) -> list[list[tuple[object, ...]]]:
    """Return all rows of the tables that an import fills, and the values of the library."""
    values = "SELECT key, value FROM meta WHERE key IN ('id', 'generation', 'swept') ORDER BY key"
    return [rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES] + [rows(database, values)]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of 60 documents with its library."""
    folder = tmp_path / "docs"
    write_all(folder, str, 60)
    assert corpus.run("reindex", "--docs-dir", folder).returncode == 0
    return folder


def test_a_killed_backup_leaves_no_half_file_while_a_server_answers_and_imports_run(
    storm: Storm, docs: Path, tmp_path: Path
) -> None:
    library, complete = docs / ".rag-index", 0
    texts = {number: {corpus.document(str(number), sections=2)} for number in range(60)}
    storm.run("backup", tmp_path / "first.zip", "--library", library)
    with over_http(docs) as server:
        port = urlsplit(server.address).port or 0
        while not storm.is_over():
            changed = {}
            for number in storm.chance.sample(range(60), 20):
                changed[f"{number}.md"] = corpus.document(f"{number} {storm.attempts}", sections=2)
                texts[number].add(changed[f"{number}.md"])
            for name, text in changed.items():
                (docs / name).write_text(text, encoding="utf-8", newline="")
            file = tmp_path / f"{storm.attempts}.zip"
            with corpus.start("reindex", "--docs-dir", docs) as importer:
                has_ended = storm.strike(library / "library.db", "backup", file, "--library", library)
                assert ask(port, "/api/v1/search?q=K0007", **BEARER).status == 200
                assert file.exists() or not has_ended
                if file.exists():
                    complete += 1
                else:
                    storm.run("backup", file, "--library", library)
                importer.communicate(timeout=corpus.PATIENCE)
            assert importer.returncode == 0
            check_file(library / "library.db")
            restored = tmp_path / "restored"
            storm.run("restore", file, "--library", restored)
            check_file(restored / "library.db")
            found = rows(restored / "library.db", "SELECT uri, text FROM documents")
            assert sorted(int(str(uri).removesuffix(".md")) for uri, _ in found) == sorted(texts)
            assert all(text in texts[int(str(uri).removesuffix(".md"))] for uri, text in found)
            shutil.rmtree(restored)
            file.unlink()
    storm.run("reindex", "--docs-dir", docs)
    storm.run("backup", tmp_path / "last.zip", "--library", library)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["first.zip", "last.zip"]
    assert not [path for path in (*tmp_path.iterdir(), *library.iterdir()) if path.name.startswith(".bunko-backup-")]
    storm.run("restore", tmp_path / "last.zip", "--library", tmp_path / "new")
    assert tables(tmp_path / "new" / "library.db") == tables(library / "library.db")
    print(f"\nbackup: {storm.killed} kills in {storm.attempts} runs, of which {complete} had finished")


def test_a_killed_restore_is_no_library_until_the_next_one_finishes_it(
    storm: Storm, docs: Path, tmp_path: Path
) -> None:
    library, place_of = docs / ".rag-index", tmp_path / "new"
    file, unfinished = tmp_path / "backup.zip", 0
    storm.run("backup", file, "--library", library)
    expected = tables(library / "library.db")
    storm.run("restore", file, "--library", tmp_path / "first")
    assert tables(tmp_path / "first" / "library.db") == expected
    while not storm.is_over():
        if storm.strike(place_of / "library.db", "restore", file, "--library", place_of):
            has_ended = True
        else:
            try:
                with open_library(place(place_of), environ={}, create=False) as opened:
                    has_ended = bool(opened.tools())
                    assert has_ended or not opened.store.rows.count("documents")
            except LibraryError as error:
                states = [
                    state for state in (UNFINISHED, "is an empty file", "There is no library") if state in str(error)
                ]
                if not states:
                    raise
                has_ended = False
                unfinished += UNFINISHED in states
        if has_ended:
            check_file(place_of / "library.db")
            assert tables(place_of / "library.db") == expected
            shutil.rmtree(place_of)
        elif storm.chance.random() < 0.5:  # else it is killed once more
            storm.run("restore", file, "--library", place_of)
            assert tables(place_of / "library.db") == expected
            shutil.rmtree(place_of)
    if place_of.exists():
        storm.run("restore", file, "--library", place_of)
        assert tables(place_of / "library.db") == expected
    assert not list(tmp_path.rglob(".bunko-backup-*"))
    print(f"\nrestore: {storm.killed} kills in {storm.attempts} runs, {unfinished} unfinished copies")
