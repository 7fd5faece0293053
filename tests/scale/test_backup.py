"""A backup is the same file for both stores: written while machines import, and restored from one into the other."""

from __future__ import annotations

import signal
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from bunko.errors import LibraryError
from bunko.library.library import Library
from bunko.library.moving.backup import restore_backup, write_backup
from bunko.library.open import open_library
from bunko.library.opening.load_settings import load_library_settings
from bunko.types import Tool
from bunko.types.records import DatabaseServer
from tests.library.full_library import answers, digests, make_library, place
from tests.scale.postgres_server import PostgresServer, environment
from tests.slow import corpus

pytestmark = pytest.mark.scale

DOCS = {f"{number}.md": corpus.document(f"{number}") for number in range(300)}
CHANGED = {name: corpus.document(f"{name} anew") for name in DOCS}


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def open_at(folder: Path, server: DatabaseServer | None = None) -> Library:
    return open_library(place(folder), environ=environment(server) if server else {})


def back_up(folder: Path, path: Path, server: DatabaseServer | None = None) -> int:
    with open_library(place(folder), environ=environment(server) if server else {}, read_only=True) as library:
        return write_backup(library, place(folder), path)[1]


def restore(path: Path, folder: Path, server: DatabaseServer | None = None) -> int:
    loaded = load_library_settings(place(folder), environ=environment(server) if server else {})
    return restore_backup(path, place(folder), loaded).rows


def test_a_backup_goes_from_a_file_to_a_server_to_another_and_back_with_everything(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    make_library(tmp_path / "0", tmp_path / "docs")
    with open_at(tmp_path / "0") as library:
        before, found, ids = digests(library.store), answers(library), library.store.rows.last_ids()
        values = {key: value for key, value in library.store.rows.values().items() if not key.startswith("derived ")}
        library_id = library.store.id
    servers = [None, postgres.new_library(), postgres.new_library(), None]
    for number, server in enumerate(servers[1:], 1):
        old, new = tmp_path / f"{number - 1}", tmp_path / f"{number}"
        rows = back_up(old, tmp_path / f"{number}.zip", servers[number - 1])
        assert restore(tmp_path / f"{number}.zip", new, server) == rows == sum(map(len_of, before.values()))
        with open_at(new, server) as library:
            assert library.store.kind == ("sqlite" if server is None else "postgres")
            assert digests(library.store) == before
            kept = library.store.rows.values()
            assert {key: kept[key] for key in values} == values
            assert (library.store.rows.last_ids(), library.store.id) == (ids, library_id)
            assert answers(library) == found
            assert library.store.check() == ""
            # The machine that restores a file owns its tools; those of another machine stay that machine's.
            assert library.store.tools.is_local(library.resolve_tool("notes").id) == (number != 2)
    with open_at(tmp_path / "3") as library:
        assert library.store.tools.put(Tool("next")).id == ids["tools"] + 1
        assert library.import_("notes").unchanged == 4


def len_of(digest: object) -> int:
    return int(digest.rows)  # type: ignore[attr-defined]


def test_another_library_and_this_one_are_refused_on_a_server_and_not_changed(
    postgres: PostgresServer, server: DatabaseServer, tmp_path: Path
) -> None:
    make_library(tmp_path / "0", tmp_path / "docs")
    back_up(tmp_path / "0", tmp_path / "0.zip")
    restore(tmp_path / "0.zip", tmp_path / "1", server)
    other = postgres.new_library()
    with open_at(tmp_path / "2", other) as library:
        library.store.tools.put(Tool("theirs"))
    for folder, taken in ((tmp_path / "1", server), (tmp_path / "2", other)):
        with open_at(folder, taken) as library:
            before = library.store.rows.values()
            with pytest.raises(LibraryError, match=rf"\(schema {taken.schema}\) holds a library"):
                restore(tmp_path / "0.zip", tmp_path / "3", taken)
            assert library.store.rows.values() == before


def texts(database: Path) -> dict[str, str]:
    with closing(sqlite3.connect(database)) as connection:
        return dict(connection.execute("SELECT uri, text FROM documents").fetchall())


def test_backups_of_a_server_are_one_state_while_another_machine_imports(
    server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    environ = environment(server) | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    corpus.write(docs, DOCS)
    assert corpus.run("add", docs, "-n", "docs", "--library", tmp_path / "a", **environ).returncode == 0
    number, seen = 0, set()
    for texts_of_import in (CHANGED, DOCS):
        corpus.write(docs, texts_of_import)
        with corpus.start(
            "import", "-n", "docs", "--mode", "update", "--library", tmp_path / "a", **environ
        ) as importer:
            while importer.poll() is None:
                number += 1
                back_up(tmp_path / "b", tmp_path / f"{number}.zip", server)
            out, err = importer.communicate()
            assert importer.returncode == 0, out + err
    for each in range(1, number + 1):
        folder = tmp_path / f"restored {each}"
        restore(tmp_path / f"{each}.zip", folder)
        with open_at(folder) as library:
            assert library.store.check() == ""
            generation = library.store.generation()
            tool = library.resolve_tool("docs")
            assert library.stats.totals(tool.id).documents == len(DOCS)
            for hit in library.search("K0007", mode="bm25", refresh=False, top_k=20).hits:
                assert hit.chunk.text.strip() in texts(folder / "library.db")[hit.uri]
        found = texts(folder / "library.db")
        assert found.keys() == DOCS.keys()
        assert all(text in (DOCS[uri], CHANGED[uri]) for uri, text in found.items())
        with closing(sqlite3.connect(folder / "library.db")) as connection:
            assert connection.execute("SELECT max(generation) FROM documents").fetchone()[0] <= generation
        seen.add(generation)
    assert len(seen) >= 3, "no import was under way while a backup was made, so this proves little"


@pytest.mark.parametrize("failpoint", ["store.commit", "store.committed"])
def test_a_restore_killed_at_any_commit_is_not_opened_and_the_next_one_finishes(
    postgres: PostgresServer, tmp_path: Path, failpoint: str
) -> None:
    make_library(tmp_path / "0", tmp_path / "docs")
    with open_at(tmp_path / "0") as library:
        expected = digests(library.store)
    back_up(tmp_path / "0", tmp_path / "0.zip")
    for visit in range(1, 40, 3):
        server = postgres.new_library()
        environ = environment(server) | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
        arguments = ("restore", tmp_path / "0.zip", "--library", tmp_path / f"{visit}")
        killed = corpus.run(*arguments, BUNKO_FAILPOINT=f"{failpoint}:{visit}", **environ)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        used = corpus.run("status", "--library", tmp_path / f"{visit}", "--json", **environ)
        if used.returncode == 0:  # nothing was copied, or everything
            with open_at(tmp_path / f"{visit}", server) as library:
                assert digests(library.store) in ({}, expected)
                if digests(library.store):
                    continue
        else:
            assert "is an unfinished copy of a library" in used.stderr
        finished = corpus.run(*arguments, **environ)
        assert finished.returncode == 0, finished.stderr
        with open_at(tmp_path / f"{visit}", server) as library:
            assert digests(library.store) == expected
    assert visit > 9


def test_a_backup_of_a_server_killed_at_any_commit_leaves_no_file(server: DatabaseServer, tmp_path: Path) -> None:
    make_library(tmp_path / "0", tmp_path / "docs")
    back_up(tmp_path / "0", tmp_path / "0.zip")
    restore(tmp_path / "0.zip", tmp_path / "1", server)
    environ = environment(server) | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    arguments = ("backup", tmp_path / "backup.zip", "--library", tmp_path / "1")
    for failpoint in ("store.commit:1", "store.committed:5", "store.commit:9", "backup.copied", "backup.written"):
        killed = corpus.run(*arguments, BUNKO_FAILPOINT=failpoint, **environ)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not (tmp_path / "backup.zip").exists()
    assert corpus.run(*arguments, **environ).returncode == 0
    assert zipfile.ZipFile(tmp_path / "backup.zip").testzip() is None
    assert not list((tmp_path / "1").glob(".bunko-backup-*")), "what killed backups left is removed by the next one"
