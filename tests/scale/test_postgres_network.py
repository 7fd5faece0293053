"""A network that goes silent, and processes that stop in the middle: nothing hangs, and nothing is lost."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bunko import stores
from bunko.errors import LibraryError, LibraryUnreachable
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.protocols import Store
from bunko.stores.postgres import connection
from bunko.stores.postgres import connection as connections
from bunko.stores.postgres import database as databases
from bunko.types import Tool
from bunko.types.records import DatabaseServer
from tests.contracts.documents import prepared
from tests.scale.postgres_server import PASSWORD, PostgresServer, environment
from tests.scale.test_postgres_connections import DROP_CONNECTIONS, NOTE, OnceWhenRead
from tests.slow import corpus

pytestmark = pytest.mark.scale


class Proxy:
    """Forwards to a server until it is told to swallow everything, or to drop its clients and not tell the server."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.is_silent = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            pair = (client, socket.create_connection(self._target))
            self._pairs.append(pair)
            threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, ValueError):
            while True:
                for side in select.select([client, server], [], [])[0]:
                    data = side.recv(65536)
                    if not data:
                        raise OSError("one side has closed")
                    if not self.is_silent.is_set():
                        (server if side is client else client).sendall(data)
        client.close()  # not that of the server, which may wait for a client that is gone

    def drop_clients(self) -> None:
        """Close the connections of all clients; the server does not notice."""
        for client, _ in self._pairs:
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        for pair in self._pairs:
            for side in pair:
                side.close()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(postgres.port)
    yield proxy
    proxy.close()


@pytest.fixture
def server(postgres: PostgresServer, proxy: Proxy) -> DatabaseServer:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
    return replace(postgres.new_library(), url=url, password=PASSWORD)


@pytest.fixture
def store(server: DatabaseServer, tmp_path: Path) -> Iterator[Store]:
    opened = stores.build("postgres", tmp_path / "library.db", server)
    yield opened
    opened.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(databases, "READ_RETRY_SECONDS", 0.1)
    monkeypatch.setitem(connections.TIMEOUTS, "connect_timeout", "2")  # libpq knows no shorter time


@pytest.mark.usefixtures("impatient")
def test_a_network_that_goes_silent_is_one_sentence_and_not_a_hang(store: Store, proxy: Proxy) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    proxy.is_silent.set()
    with pytest.raises(LibraryUnreachable, match=r"has not answered|timeout|timed out") as raised:
        store.documents.uris(tool.id)
    assert "postgresql://127.0.0.1" in raised.value.message
    assert "\n" not in raised.value.message
    with pytest.raises(LibraryUnreachable):
        store.documents.write(tool.id, upsert=[prepared("b.md", "text")])
    proxy.is_silent.clear()

    def has_answered() -> bool:
        with suppress(LibraryUnreachable):  # the failure is remembered for a moment
            return store.documents.uris(tool.id) == ["a.md"]
        return False

    corpus.wait_until(has_answered, "the server answers again")


@pytest.mark.usefixtures("impatient")
def test_a_statement_that_takes_long_is_waited_for(
    store: Store, postgres: PostgresServer, server: DatabaseServer
) -> None:
    tool = store.tools.put(Tool("docs"))
    postgres.execute(
        f"CREATE FUNCTION {server.schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS"
        f" 'BEGIN PERFORM pg_sleep(1); RETURN NEW; END';"
        f" CREATE TRIGGER dawdle BEFORE INSERT ON {server.schema}.documents FOR EACH ROW"
        f" EXECUTE FUNCTION {server.schema}.dawdle()"
    )
    assert store.documents.write(tool.id, upsert=[prepared("a.md", "text")]) == 1


def test_an_import_ends_what_the_server_still_does_for_its_lost_connection(store: Store, proxy: Proxy) -> None:
    """The server notices a lost client late; until then, its locks and its transaction would keep the import out."""
    tool = store.tools.put(Tool("docs"))
    lock = store.lock(tools=["docs"])
    assert lock.acquire(0)
    documents = OnceWhenRead([prepared("a.md", "text")], proxy.drop_clients)
    assert store.documents.write(tool.id, upsert=documents) > 0
    assert store.documents.uris(tool.id) == ["a.md"]
    lock.release()
    assert store.lock(tools=["docs"]).acquire(1)


def test_a_commit_of_which_nobody_heard_is_repeated_where_that_does_no_harm(
    store: Store, postgres: PostgresServer, server: DatabaseServer
) -> None:
    tool, shadow = store.tools.put(Tool("docs")), store.tools.put(Tool("docs shadow"))
    store.documents.write(shadow.id, upsert=[prepared("a.md", "text")])
    # A deferred trigger runs during the commit, so this loses the connection there; the marker outlives the rollback.
    postgres.execute(
        f"CREATE SEQUENCE {server.schema}.lost;"
        f" CREATE FUNCTION {server.schema}.lose() RETURNS trigger LANGUAGE plpgsql AS"
        f" 'BEGIN IF nextval(''{server.schema}.lost'') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid());"
        f" END IF; RETURN NULL; END';"
        f" CREATE CONSTRAINT TRIGGER lose AFTER INSERT OR UPDATE ON {server.schema}.documents"
        f" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {server.schema}.lose()"
    )
    store.documents.write(tool.id, upsert=[prepared("b.md", "text")])
    assert store.documents.uris(tool.id) == ["b.md"]
    postgres.execute(f"SELECT setval('{server.schema}.lost', 1, false)")
    with pytest.raises(LibraryUnreachable) as raised:
        store.tools.swap(tool, shadow)
    assert raised.value.was_committing
    assert store.documents.uris(tool.id) == ["b.md"]
    assert store.tools.swap(tool, shadow)
    assert store.documents.uris(tool.id) == ["a.md"]


def test_a_search_whose_snapshot_is_lost_is_done_again(
    postgres: PostgresServer, server: DatabaseServer, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    with open_library(paths_for_folder(tmp_path / "library"), environ=environment(server)) as library:
        library.add(docs, name="docs")
        library.import_("docs")
        read_chunks, drops = library.store.documents.chunks, iter([DROP_CONNECTIONS])

        def drop_once(ids: list[int], **options: bool) -> object:
            for statement in drops:
                postgres.execute(statement)
            return read_chunks(ids, **options)

        monkeypatch.setattr(library.store.documents, "chunks", drop_once)
        assert [hit.uri for hit in library.search("紅葉", refresh=False).hits] == ["a.md"]
        assert list(drops) == []


def test_a_process_that_stops_inside_a_transaction_does_not_keep_the_others_out(
    server: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "IDLE_WRITE_SECONDS", 1)
    stopped, other = (stores.build("postgres", tmp_path / name / "library.db", server) for name in "ab")
    tool = other.tools.put(Tool("docs"))
    has_begun, goes_on = threading.Event(), threading.Event()

    def stop() -> None:
        has_begun.set()
        goes_on.wait(corpus.PATIENCE)

    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(
            stopped.documents.write, tool.id, upsert=OnceWhenRead([prepared("a.md", "text")], stop)
        )
        assert has_begun.wait(corpus.PATIENCE)
        assert other.tools.put(Tool("notes")).id
        goes_on.set()
        assert written.result() > 0  # it begins anew when it wakes up
    assert other.documents.uris(tool.id) == ["a.md"]
    stopped.close()
    other.close()


def test_a_server_without_a_free_connection_is_one_sentence(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "READ_RETRY_SECONDS", 0.1)
    postgres.execute("CREATE USER lonely CONNECTION LIMIT 1; CREATE SCHEMA lonely AUTHORIZATION lonely")
    server = DatabaseServer(postgres.superuser_url("postgres").replace("//postgres@", "//lonely@"), "lonely")
    store = stores.build("postgres", tmp_path / "library.db", server)
    with pytest.raises(LibraryError, match="has no connection left: too many connections for role") as raised:
        stores.build("postgres", tmp_path / "other.db", server)
    assert (raised.value.code, raised.value.hint[:10]) == ("unreachable", "Try again,")
    assert store.tools.put(Tool("docs")).id  # who is in stays in
    store.close()
