"""Open a library on a PostgreSQL server: who may, with which password, and what is refused in one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import bunko
from bunko import stores
from bunko.errors import (
    BunkoError,
    DiskFull,
    LibraryDamaged,
    LibraryError,
    LibraryMismatch,
    LibraryReadOnly,
    LibraryTooNew,
    SettingsError,
)
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library, paths_for_folder
from bunko.stores import postgres as postgres_kind
from bunko.stores.postgres import connection as connections
from bunko.stores.postgres import schema
from bunko.types import Tool
from bunko.types.access import AuditEntry, Rights, Token
from bunko.types.records import DatabaseServer, ToolStatistics, Totals
from tests.conftest import Run
from tests.contracts.documents import prepared
from tests.scale.postgres_server import PASSWORD, PostgresServer, environment

pytestmark = pytest.mark.scale

NOTE = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。"


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch, run: Run) -> pytest.MonkeyPatch:
    """Return what changes the environment of the command line, which has no password yet."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    return monkeypatch


def name_library(monkeypatch: pytest.MonkeyPatch, server: DatabaseServer) -> None:
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)


def tables(postgres: PostgresServer, schema_name: str) -> list[str]:
    query = f"SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{schema_name}') AND relkind = 'r'"
    return sorted(str(row[0]) for row in postgres.execute(query))


def fails_in_one_sentence(server: DatabaseServer, folder: Path, kind: type[BunkoError], *words: str) -> BunkoError:
    """Open a library that cannot be opened; the error names what to do and no password."""
    with pytest.raises(kind) as raised:
        stores.build("postgres", folder / "library.db", server)
    error = raised.value
    assert "\n" not in error.message
    assert not error.message.endswith(".")
    assert error.hint.endswith((".", ";"))
    assert PASSWORD not in str(error)
    assert "wrong-horse" not in str(error)
    for word in words:
        assert word in str(error)
    return error


def test_a_wrong_password_is_one_clear_sentence_that_does_not_show_it(
    postgres: PostgresServer, tmp_path: Path, run: Run, set_up: pytest.MonkeyPatch
) -> None:
    server = DatabaseServer(postgres.tcp_url(), "nobodys", "wrong-horse")
    fails_in_one_sentence(server, tmp_path, LibraryError, "password authentication failed", "BUNKO_STORAGE_PASSWORD")
    name_library(set_up, server)
    failed = run("status", "--library", tmp_path / "library")
    assert failed.code == EXIT_CODES["library"]
    assert failed.err.startswith("Error: Cannot connect to postgresql://127.0.0.1:")
    assert "Traceback" not in failed.err
    assert "wrong-horse" not in failed.err + failed.out
    assert tables(postgres, "nobodys") == []


def test_without_a_password_the_error_says_where_it_belongs(
    postgres: PostgresServer, tmp_path: Path, set_up: pytest.MonkeyPatch
) -> None:
    server = DatabaseServer(postgres.tcp_url(), "nobodys")
    fails_in_one_sentence(server, tmp_path, LibraryError, "no password supplied", "~/.pgpass")


@pytest.mark.parametrize("way", ["BUNKO_STORAGE_PASSWORD", "PGPASSWORD", "file", "pgpass"])
def test_a_password_comes_from_the_environment_a_key_file_or_pgpass(
    way: str, postgres: PostgresServer, tmp_path: Path, set_up: pytest.MonkeyPatch
) -> None:
    server = DatabaseServer(postgres.tcp_url(), "by_password")
    environ = environment(server)
    file = tmp_path / "password"
    file.touch(mode=0o600)
    if way == "pgpass":
        file.write_text(f"127.0.0.1:{postgres.port}:*:postgres:{PASSWORD}\n")
        set_up.setenv("PGPASSFILE", str(file))
    elif way == "file":
        file.write_text(f"{PASSWORD}\n")
        environ["BUNKO_STORAGE_PASSWORD_FILE"] = str(file)
    else:
        environ[way] = PASSWORD
    with open_library(paths_for_folder(tmp_path / "library"), environ=environ) as library:
        assert library.store.kind == "postgres"
        assert PASSWORD not in f"{library.store.address}{library.settings.storage}{library.status()}"


@pytest.mark.parametrize("part", ["postgres:{}@127.0.0.1/db", "postgres@127.0.0.1/db?password={}"])
def test_a_password_in_the_url_is_refused_and_shown_nowhere(
    part: str, tmp_path: Path, run: Run, set_up: pytest.MonkeyPatch
) -> None:
    set_up.setenv("BUNKO_STORAGE_URL", f"postgresql://{part.format(PASSWORD)}")
    failed = run("status", "--library", tmp_path / "library")
    assert failed.code == EXIT_CODES["settings"]
    assert "storage.url contains a password" in failed.err
    shown = run("config", "show", "storage", "--library", tmp_path / "library")
    assert shown.code == 0
    assert "127.0.0.1" in shown.out
    assert PASSWORD not in failed.err + failed.out + shown.out + shown.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "storage.url is not set"),
        ("mysql://root@127.0.0.1/db", "is not a URL of PostgreSQL"),
        ("postgresql://root@127.0.0.1/db?colour=red", "is not a URL of PostgreSQL"),
        ("postgresql://root@127.0.0.1", "names no database"),
        ("postgresql://root@127.0.0.1/db?schema=Wrong-Name", "storage.schema cannot be 'Wrong-Name'"),
        ("postgresql://[::1/db", "is not a URL of PostgreSQL"),
    ],
)
def test_a_wrong_url_is_one_clear_sentence(url: str, words: str, tmp_path: Path) -> None:
    fails_in_one_sentence(DatabaseServer(url), tmp_path, SettingsError, words)


def test_a_missing_database_user_or_server_is_one_clear_sentence(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.superuser_url("postgres")
    fails_in_one_sentence(DatabaseServer(url.replace("/postgres?", "/nowhere?")), tmp_path, LibraryError, "createdb")
    fails_in_one_sentence(DatabaseServer(url.replace("//postgres@", "//nobody@")), tmp_path, LibraryError, "createuser")
    gone = DatabaseServer("postgresql://postgres@127.0.0.1:1/postgres")
    fails_in_one_sentence(
        gone, tmp_path, LibraryError, "Cannot connect to postgresql://127.0.0.1:1/postgres", "running"
    )
    fails_in_one_sentence(DatabaseServer(f"{postgres.tcp_url()}?sslmode=require"), tmp_path, LibraryError, "sslmode")


def test_a_server_that_is_too_old_is_refused(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgres.new_library()
    monkeypatch.setattr(connections, "MIN_VERSION", 99)
    fails_in_one_sentence(server, tmp_path, LibraryError, "which is too old", "version 99 or newer")
    assert tables(postgres, server.schema) == []


def test_a_database_that_does_not_store_utf8_is_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    fails_in_one_sentence(
        DatabaseServer(postgres.superuser_url("latin")), tmp_path, LibraryDamaged, "LATIN1", "createdb"
    )


def test_tables_of_something_else_are_refused_and_stay_as_they_are(postgres: PostgresServer, tmp_path: Path) -> None:
    for name, columns in (("foreign_one", "id int"), ("meta", "id int"), ("meta", "key text, value text")):
        server = postgres.new_library()
        postgres.execute(f"CREATE SCHEMA {server.schema}; CREATE TABLE {server.schema}.{name} ({columns})")
        fails_in_one_sentence(
            server, tmp_path, LibraryDamaged, "has tables that bunko did not create", "storage.schema"
        )
        assert tables(postgres, server.schema) == [name]


def test_a_library_of_a_newer_bunko_is_refused_and_stays_as_it_is(
    postgres: PostgresServer, tmp_path: Path, run: Run, set_up: pytest.MonkeyPatch
) -> None:
    server = postgres.new_library()
    stores.build("postgres", tmp_path / "library.db", server).close()
    postgres.execute(f"UPDATE {server.schema}.meta SET value = '99' WHERE key = 'schema'")
    fails_in_one_sentence(server, tmp_path, LibraryTooNew, "was made by a newer bunko (schema 99", "Upgrade bunko")
    name_library(set_up, server)
    assert run("search", "x", "--library", tmp_path).code == EXIT_CODES["too-new"]
    assert postgres.execute(f"SELECT value FROM {server.schema}.meta WHERE key = 'schema'") == [("99",)]


def test_several_processes_create_one_library(postgres: PostgresServer, tmp_path: Path) -> None:
    server = postgres.new_library()

    def open_store(_: int) -> str:
        store = stores.build("postgres", tmp_path / "library.db", server)
        store.close()
        return store.id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(open_store, range(8)))) == 1


def test_a_library_of_the_first_schema_gets_the_tables_for_tokens_and_changes(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    server = postgres.new_library()
    store = stores.build("postgres", tmp_path / "library.db", server)
    store.tools.put(Tool("notes"))
    store.close()
    complete = tables(postgres, server.schema)
    dropped = ("tokens", "audit", "outbox", "domains", "subwords", "redated", "index_frequencies", "index_statistics")
    postgres.execute(";".join(f"DROP TABLE {server.schema}.{table}" for table in dropped))
    postgres.execute(f"DROP INDEX {server.schema}.chunks_by_vector")
    # As it was: one for each tool, and not for each copy of it.
    postgres.execute(f"CREATE TABLE {server.schema}.index_statistics (tool_id BIGINT PRIMARY KEY, vectors BYTEA)")
    postgres.execute(f"UPDATE {server.schema}.meta SET value = '1' WHERE key = 'schema'")
    store = stores.build("postgres", tmp_path / "library.db", server)
    assert store.tokens.add(Token("alice", "aa" * 32, Rights(), "2024-05-01T00:00:00+00:00"))
    assert store.audit.begin(AuditEntry("2024-05-01T00:00:00+00:00", "alice", "http", "reindex"), limit=10)
    [tool] = store.tools.all()
    assert tool.name == "notes"
    store.index_statistics.replace(tool.id, "copy", ToolStatistics(1, 2, 3), [(4, 5)])
    assert store.index_statistics.frequencies(tool.id, "copy", [4]) == {4: 5}
    assert store.changes.redated_since(tool.id, 0) == []
    assert store.check() == ""
    store.close()
    assert tables(postgres, server.schema) == complete
    query = f"SELECT 1 FROM pg_indexes WHERE schemaname = '{server.schema}' AND indexname = 'chunks_by_vector'"
    assert postgres.execute(query) == [(1,)]


def test_a_tool_of_an_older_library_is_counted_once_and_then_no_row_of_it_is_read(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    server = postgres.new_library()
    store = postgres_kind.build(tmp_path / "library.db", server)
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared(f"{number}.md", "京都の寺", "鹿") for number in range(300)])
    postgres.execute(f"DELETE FROM {server.schema}.meta WHERE key LIKE 'totals %'; ANALYZE {server.schema}.documents")
    query = (
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables"
        " WHERE schemaname = ?"
    )
    read = []
    for _ in range(2):
        with store.read_transaction():
            before = store._database.rows(query, (server.schema,))[0][0]
            assert store.stats.totals(tool.id) == Totals(300, 600, 0, 300 * 6)
            read.append(store._database.rows(query, (server.schema,))[0][0] - before)
    store.close()
    assert read[0] > 600
    assert read[1] < 20


def test_an_older_library_is_migrated_once_however_many_open_it(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgres.new_library()
    stores.build("postgres", tmp_path / "library.db", server).close()

    def add_column(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        connection.execute("ALTER TABLE tools ADD COLUMN colour TEXT")  # fails if it is run twice

    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setitem(schema.MIGRATIONS, schema.VERSION - 1, add_column)
    with pytest.raises(LibraryReadOnly, match="older schema"):
        stores.build("postgres", tmp_path / "library.db", server, read_only=True)

    def open_store(_: int) -> None:
        stores.build("postgres", tmp_path / "library.db", server).close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(open_store, range(6)))
    assert postgres.execute(f"SELECT value FROM {server.schema}.meta WHERE key = 'schema'") == [(str(schema.VERSION),)]


def test_a_user_who_may_not_create_tables_is_told_which_grant_is_missing(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.execute("CREATE USER guest")
    server = DatabaseServer(postgres.superuser_url("postgres").replace("//postgres@", "//guest@"), "guests")
    error = fails_in_one_sentence(server, tmp_path, LibraryError, "The user guest may not create tables")
    postgres.execute(error.hint.partition("run: ")[2].partition("; or:")[0])
    stores.build("postgres", tmp_path / "library.db", server).close()


def test_a_user_who_may_only_read_searches_and_is_told_why_nothing_is_imported(
    postgres: PostgresServer, tmp_path: Path, docs: Path
) -> None:
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    server = postgres.new_library()
    paths = locate_library(docs_dir=docs, environ={})
    with open_library(paths, environ=environment(server)) as library:
        library.reindex()
    postgres.execute(
        f"CREATE USER reader; GRANT USAGE ON SCHEMA {server.schema} TO reader;"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA {server.schema} TO reader"
    )
    (docs / "b.md").write_text(NOTE, encoding="utf-8")
    reader = DatabaseServer(server.url.replace("//postgres@", "//reader@"), server.schema)
    with open_library(paths, environ=environment(reader)) as library:
        answer = library.search("紅葉")
        assert [hit.uri for hit in answer.hits] == ["a.md"]
        assert any("could not be indexed" in notice and "permission denied" in notice for notice in answer.notices)
        with pytest.raises(LibraryReadOnly, match="permission denied"):
            library.reindex()


def test_status_doctor_config_and_init_show_host_database_and_schema(
    postgres: PostgresServer, tmp_path: Path, run: Run, set_up: pytest.MonkeyPatch
) -> None:
    server = DatabaseServer(postgres.tcp_url(), "shown", PASSWORD)
    name_library(set_up, server)
    folder = tmp_path / "library"
    place = f"postgresql://127.0.0.1:{postgres.port}/postgres (schema shown)"
    outputs = [run(*command, "--library", folder) for command in (["init"], ["status"], ["doctor"], ["config", "show"])]
    assert [ran.code for ran in outputs] == [0, 0, 0, 0], [ran.err for ran in outputs]
    for ran in outputs[:3]:
        assert place in ran.out
    assert "PostgreSQL 1" in outputs[2].out
    assert f"storage.url = postgresql://********@127.0.0.1:{postgres.port}/postgres" in outputs[3].out
    assert "storage.schema = shown" in outputs[3].out
    assert "storage.password = ********" in outputs[3].out
    assert all(PASSWORD not in ran.out + ran.err for ran in outputs)
    assert [path.name for path in folder.iterdir() if path.suffix == ".db"] == []


def test_two_schemas_of_a_database_are_two_libraries(postgres: PostgresServer, tmp_path: Path) -> None:
    first = stores.build("postgres", tmp_path / "library.db", postgres.new_library())
    server = postgres.new_library()
    in_url = DatabaseServer(f"{server.url}&schema={server.schema}")
    second = stores.build("postgres", tmp_path / "other" / "library.db", in_url)
    first.tools.put(Tool("docs"))
    assert (len(first.tools.all()), len(second.tools.all())) == (1, 0)
    assert f"(schema {server.schema})" in second.location
    # Nor do their imports keep each other out.
    lock, other = first.lock(tools=["docs"]), second.lock(tools=["docs"])
    assert lock.acquire(0)
    assert other.acquire(0)
    other.release()
    lock.release()
    first.close()
    second.close()


def test_a_config_file_among_the_documents_cannot_name_a_server(docs: Path, postgres: PostgresServer) -> None:
    server = postgres.new_library()
    (docs / "bunko.toml").write_text(f'[storage]\nurl = "{server.url}"\nkind = "postgres"\n', encoding="utf-8")
    with open_library(locate_library(docs_dir=docs, environ={}), environ={}) as library:
        assert library.store.kind == "sqlite"
        assert any("storage.url" in notice for notice in library.notices)


def test_a_folder_of_documents_is_not_taken_for_that_of_another_machine(
    docs: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    environ = environment(postgres.new_library())
    with open_library(locate_library(docs_dir=docs, environ={}), environ=environ) as library:
        assert library.reindex().added == 1
        library.store.tools.put(Tool("notes"))
    shutil.move(docs, tmp_path / "elsewhere")
    with pytest.raises(BunkoError, match=r"documents in postgresql:.* was built from .*, not from") as raised:
        open_library(locate_library(docs_dir=tmp_path / "elsewhere", environ={}), environ=environ)
    assert "storage.schema" in raised.value.hint


def test_a_program_opens_the_folder_of_a_library_on_a_server_by_its_path(
    docs: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    folder, server = tmp_path / "team", postgres.new_library()
    folder.mkdir()
    settings = f'[storage]\nkind = "postgres"\nurl = "{server.url}"\nschema = "{server.schema}"\n'
    (folder / "bunko.toml").write_text(settings, encoding="utf-8")
    environ = {"BUNKO_EMBEDDING_PROVIDER": "none"}
    with open_library(paths_for_folder(folder), environ=environ) as library:
        library.add(docs, name="notes")
        library.import_("notes")
    with bunko.open(folder, environ=environ) as library:
        assert (library.store.kind, [tool.name for tool in library.tools()]) == ("postgres", ["notes"])
    assert not (folder / ".rag-index").exists()


def test_a_folder_of_documents_is_not_added_to_a_library_of_other_tools(docs: Path, postgres: PostgresServer) -> None:
    (docs / "private.md").write_text(NOTE, encoding="utf-8")
    server = postgres.new_library()
    environ = environment(server)
    with open_library(paths_for_folder(docs.parent / "library"), environ=environ) as library:
        library.store.tools.put(Tool("team"))
    with pytest.raises(
        LibraryMismatch, match=r"postgresql:.* has other tools, and would get the documents of"
    ) as raised:
        open_library(locate_library(docs_dir=docs, environ={}), environ=environ)
    assert "storage.schema" in raised.value.hint
    assert postgres.execute(f"SELECT name FROM {server.schema}.tools") == [("team",)]


@pytest.fixture
def small_disk(postgres: PostgresServer) -> Iterator[Path]:
    """Return the folder of the tablespace `small`, which has room for a few megabytes."""
    mount = shutil.which("mount")
    place = postgres.folder / "disk"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=12m,uid=postgres,mode=700", "tmpfs", str(place)]
    if mount is None or os.geteuid() or subprocess.run([mount, *options], capture_output=True, check=False).returncode:
        pytest.skip("a small disk is needed, and mounting one is not permitted")
    postgres.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
    yield place
    postgres.execute("DROP DATABASE IF EXISTS full_one WITH (FORCE)")
    postgres.execute("DROP TABLESPACE small")
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_of_the_server_is_one_clear_sentence_and_changes_nothing(
    postgres: PostgresServer, tmp_path: Path, small_disk: Path
) -> None:
    postgres.execute("CREATE DATABASE full_one TABLESPACE small")
    postgres.execute("CHECKPOINT")  # the new files have holes, and a server that cannot fill them fails everywhere
    store = stores.build("postgres", tmp_path / "library.db", DatabaseServer(postgres.superuser_url("full_one")))
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", NOTE)])
    generation = store.generation()
    too_much = [prepared(f"{number}.md", os.urandom(200_000).hex()) for number in range(40)]
    with pytest.raises(DiskFull, match=r"^The disk of postgresql:.* is full\s") as raised:
        store.documents.write(tool.id, upsert=too_much)
    assert "Free some space on the server" in raised.value.hint
    assert store.generation() == generation
    assert store.documents.uris(tool.id) == ["a.md"]
    assert store.check() == ""
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    assert store.documents.write(tool.id, upsert=too_much) == generation + 1
    assert store.stats.totals(tool.id).documents == 41
    store.close()
