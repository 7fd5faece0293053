"""A library on a server that is older than chat bots."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko import stores
from bunko.types.records import DomainRule, OutboxEntry
from tests.scale.postgres_server import PostgresServer

pytestmark = pytest.mark.scale


def test_an_older_library_gets_the_tables_for_chat_bots(postgres: PostgresServer, tmp_path: Path) -> None:
    server = postgres.new_library()
    stores.build("postgres", tmp_path / "library.db", server).close()
    later = ("outbox", "domains", "subwords")
    postgres.execute(";".join(f"DROP TABLE {server.schema}.{table}" for table in later))
    postgres.execute(f"UPDATE {server.schema}.meta SET value = '3' WHERE key = 'schema'")
    store = stores.build("postgres", tmp_path / "library.db", server)
    assert store.outbox.add(OutboxEntry("k", "B", "C/1", "1.0", {}, 1.0))
    store.domains.put(DomainRule("example.com", True, "U1", "2024-05-01"))
    assert store.check() == ""
    store.close()
