"""The order of an upgrade: workers that run while a newer bunko changes the tables refuse, and new ones answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import EXIT_CODES
from bunko.stores.postgres import schema
from bunko.types.records import DatabaseServer
from tests.scale.postgres_server import PostgresServer, environment
from tests.slow import corpus
from tests.slow.serving import TOKEN
from tests.slow.test_workers import Workers, expect_refusals_until_replaced

pytestmark = pytest.mark.scale


@pytest.fixture
def workers(server: DatabaseServer, docs: Path, tmp_path: Path) -> Iterator[Workers]:
    """Two workers of one server, with a library on PostgreSQL."""
    place, environ = ("--library", str(tmp_path / "library")), environment(server)
    corpus.write(docs, {"old.md": corpus.document("old")})
    assert corpus.run("add", docs, "-n", "docs", *place, **environ).returncode == 0
    command = [sys.executable, "-m", "bunko", "serve", "--http", "--port", "0", "--workers", "2", *place]
    log = tmp_path / "log"
    with open(log, "wb") as file:
        process = subprocess.Popen(
            command,
            env=corpus.environment(BUNKO_TOKEN=TOKEN, **environ),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        yield Workers(process, log, tmp_path)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(corpus.PATIENCE)
        process.kill()


def test_workers_refuse_changed_tables_until_they_are_replaced(
    workers: Workers, server: DatabaseServer, postgres: PostgresServer
) -> None:
    def change_version(version: int) -> None:
        postgres.execute(f"UPDATE {server.schema}.meta SET value = '{version}' WHERE key = 'schema'")

    expect_refusals_until_replaced(workers, "old", change_version, schema.VERSION)


def test_an_import_that_runs_while_the_tables_change_stops_and_the_next_one_completes_it(
    server: DatabaseServer, postgres: PostgresServer, docs: Path, tmp_path: Path
) -> None:
    environ, place = environment(server), ("--library", tmp_path / "library")
    texts = {f"{number}.md": corpus.document(f"{number}") for number in range(400)}
    corpus.write(docs, {"0.md": texts["0.md"]})
    assert corpus.run("add", docs, "-n", "docs", *place, **environ).returncode == 0
    corpus.write(docs, texts)

    def count() -> int:
        return int(postgres.execute(f"SELECT count(*) FROM {server.schema}.documents")[0][0])

    with corpus.start("import", "-n", "docs", "--mode", "update", *place, **environ) as importer:
        corpus.wait_until(lambda: count() > 1, "the import writes")
        postgres.execute(f"UPDATE {server.schema}.meta SET value = '{schema.VERSION + 1}' WHERE key = 'schema'")
        written = count()
        _, err = importer.communicate(timeout=corpus.PATIENCE)
    assert importer.returncode == EXIT_CODES["too-new"], err
    assert f"was changed by another bunko (schema {schema.VERSION + 1}, this one knows {schema.VERSION})" in err
    assert count() - written <= 100, "at most the transaction that had begun"
    assert count() < len(texts)
    postgres.execute(f"UPDATE {server.schema}.meta SET value = '{schema.VERSION}' WHERE key = 'schema'")
    assert corpus.run("import", "-n", "docs", "--mode", "update", *place, **environ).returncode == 0
    assert dict(postgres.execute(f"SELECT uri, text FROM {server.schema}.documents")) == texts
