"""Servers that cannot be used as they are: one clear sentence each, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from bunko import stores
from bunko.errors import DiskFull, LibraryBusy, LibraryError, LibraryReadOnly, LibraryTooNew
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.stores.postgres import schema
from bunko.types import Tool
from bunko.types.records import DatabaseServer
from tests.conftest import Run
from tests.contracts.documents import prepared
from tests.scale.postgres_server import PostgresServer, environment
from tests.scale.test_postgres_connections import NOTE

pytestmark = pytest.mark.scale


def test_a_user_without_rights_on_the_schema_is_told_which_grants_are_missing(
    postgres: PostgresServer, server: DatabaseServer, tmp_path: Path
) -> None:
    stores.build("postgres", tmp_path / "library.db", server).close()
    postgres.execute("CREATE USER stranger")
    stranger = DatabaseServer(server.url.replace("//postgres@", "//stranger@"), server.schema)
    with pytest.raises(LibraryError, match="The user stranger may not read postgresql:") as raised:
        stores.build("postgres", tmp_path / "library.db", stranger)
    for statement in raised.value.hint.partition("run: ")[2].split("; "):
        postgres.execute(statement)
    store = stores.build("postgres", tmp_path / "library.db", stranger)
    with pytest.raises(LibraryReadOnly, match="permission denied"):
        store.tools.put(Tool("docs"))
    store.close()


def test_a_user_who_may_not_use_an_empty_schema_is_told_so(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute("CREATE USER passer; CREATE SCHEMA empty_one")
    passer = DatabaseServer(postgres.superuser_url("postgres").replace("//postgres@", "//passer@"), "empty_one")
    with pytest.raises(LibraryError, match="The user passer may not create tables in") as raised:
        stores.build("postgres", tmp_path / "library.db", passer)
    assert raised.value.code == "library"


def test_an_import_into_a_full_disk_changes_nothing_and_says_so(
    postgres: PostgresServer,
    server: DatabaseServer,
    docs: Path,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    place = ("--library", tmp_path / "library")
    assert run("tool", "add", "-n", "docs", "-d", "notes", "-s", docs, *place).code == 0
    postgres.execute(
        f"CREATE FUNCTION {server.schema}.no_space() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE EXCEPTION USING ERRCODE = ''disk_full'', MESSAGE = ''could not extend file''; END';"
        f" CREATE TRIGGER no_space BEFORE INSERT ON {server.schema}.chunks FOR EACH ROW"
        f" EXECUTE FUNCTION {server.schema}.no_space()"
    )
    failed = run("import", "-n", "docs", *place)
    assert failed.code == EXIT_CODES[DiskFull.code]
    assert "Error: The disk of postgresql:" in failed.err
    assert "Traceback" not in failed.err
    assert postgres.execute(f"SELECT count(*) FROM {server.schema}.documents") == [(0,)]
    postgres.execute(f"DROP TRIGGER no_space ON {server.schema}.chunks")
    assert run("import", "-n", "docs", *place).code == 0


def test_a_standby_is_searched_and_says_why_it_is_not_written(
    postgres: PostgresServer, server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    with open_library(paths_for_folder(tmp_path / "library"), environ=environment(server)) as library:
        library.add(docs, name="docs")
        library.import_("docs")
    with postgres.standby() as standby:
        there = DatabaseServer(standby.superuser_url("postgres"), server.schema)
        with open_library(paths_for_folder(tmp_path / "other"), environ=environment(there)) as library:
            assert [hit.uri for hit in library.search("紅葉").hits] == ["a.md"]
            assert library.store.wait_for_change(0)  # it cannot listen, so it must look
            (docs / "b.md").write_text(NOTE, encoding="utf-8")
            with pytest.raises(LibraryReadOnly, match=r"cannot be written: .*(recovery|read-only)") as raised:
                library.import_("docs")
            assert "standby" in raised.value.hint
        with pytest.raises(LibraryReadOnly, match=r"recovery|read-only"):
            stores.build("postgres", tmp_path / "new.db", DatabaseServer(there.url, "nobodys"))


def test_a_process_of_an_older_bunko_is_told_when_the_tables_are_migrated(
    postgres: PostgresServer, server: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = stores.build("postgres", tmp_path / "library.db", server)
    tool = old.tools.put(Tool("docs"))
    old.documents.write(tool.id, upsert=[prepared("a.md", "text")])

    def rename_column(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        connection.execute("ALTER TABLE documents RENAME COLUMN title TO caption")

    with monkeypatch.context() as newer:
        newer.setattr(schema, "VERSION", schema.VERSION + 1)
        newer.setitem(schema.MIGRATIONS, schema.VERSION - 1, rename_column)
        stores.build("postgres", tmp_path / "library.db", server).close()
    before = postgres.execute(f"SELECT * FROM {server.schema}.documents")

    def search() -> None:
        with old.read_transaction():
            old.documents.uris(tool.id)

    for work in (
        search,
        lambda: old.documents.get(tool.id, "a.md"),
        lambda: old.documents.write(tool.id, upsert=[prepared("b.md", "text")]),
        lambda: old.tools.put(Tool("notes")),
    ):
        with pytest.raises(
            LibraryTooNew, match=f"schema {schema.VERSION + 1}, this one knows {schema.VERSION}"
        ) as raised:
            work()
        assert "Upgrade bunko" in raised.value.hint
    assert postgres.execute(f"SELECT * FROM {server.schema}.documents") == before
    old.close()


def test_a_migration_waits_for_writers_but_not_for_ever(
    postgres: PostgresServer, server: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.build("postgres", tmp_path / "library.db", server).close()
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setitem(schema.MIGRATIONS, schema.VERSION - 1, lambda _: None)
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.2)
    from bunko.stores.postgres.address import parse_address

    key = schema.write_lock_key(parse_address(server))
    with psycopg.connect(server.url) as writer:
        writer.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        with pytest.raises(LibraryBusy):
            stores.build("postgres", tmp_path / "library.db", server)
    stores.build("postgres", tmp_path / "library.db", server).close()
    assert postgres.execute(f"SELECT value FROM {server.schema}.meta WHERE key = 'schema'") == [(str(schema.VERSION),)]
