"""Tokens and the audit log of a library that two servers share."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from bunko.interfaces.http import authorization
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.access import Rights
from tests.mcp.mcp_client import add_tool, error_of, structure_of
from tests.mcp.served_registry import HttpServer, serve_registry
from tests.scale.postgres_server import PostgresServer, environment

pytestmark = pytest.mark.scale

Served = list[tuple[Library, HttpServer]]


@pytest.fixture
def servers(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Two servers, as on two machines, of one library."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(authorization, "FRESH_SECONDS", 0.0)
    environ = environment(postgres.new_library()) | {"BUNKO_EMBEDDING_PROVIDER": "none"}
    served: Served = []
    with ExitStack() as stack:
        for name in ("first", "second"):
            paths = locate_library(library=tmp_path / name / "library", environ={})
            library = stack.enter_context(open_library(paths, environ=environ))
            if not served:
                add_tool(library, "recipes", "Recipes of the house.", "蜜柑を剝いてから食べる。")
                add_tool(library, "secret", "Plans.", "葡萄の計画は部外秘である。")
                library.reindex()
            registry = ToolRegistry(lambda library=library: library)  # type: ignore[misc]
            served.append((library, stack.enter_context(serve_registry(registry))))
        yield served


def test_a_token_and_its_end_hold_for_all_servers_of_a_library(servers: Served) -> None:
    (library, first), (other_library, second) = servers
    token = library.tokens.add("alice", Rights(("recipes",)))
    for server in (first, second):
        assert server.ask(f"Bearer {token}").status == 200
        found = structure_of(server.call(token, "search", query="葡萄の計画", response_format="detailed"))
        assert "部外秘" not in str(found)
        assert "secret" not in server.tool_names(token)
        assert "may not call reindex" in error_of(server.call(token, "reindex"))
    other_library.tokens.revoke("alice")
    assert [server.ask(f"Bearer {token}").status for server in (first, second)] == [401, 401]


def test_all_servers_write_one_audit_log(servers: Served) -> None:
    (library, first), (other_library, second) = servers
    token = library.tokens.add("ci", Rights(write=("recipes",)))
    assert not first.call(token, "reindex").is_error
    assert structure_of(second.call(token, "reindex"))["unchanged"] == 0  # its folder is on the first machine
    entries = other_library.store.audit.entries()
    assert [(entry.who, entry.via, entry.tools, entry.result) for entry in entries] == [
        ("ci", "http", ("recipes",), "done"), ("ci", "http", (), "done"),
    ]  # fmt: skip


def test_forty_searches_of_a_library_that_went_away_are_told_so_and_then_answered_again(
    servers: Served, postgres: PostgresServer
) -> None:
    (library, server), _ = servers
    token = library.tokens.add("alice", Rights(("recipes",)))
    search = partial(ask_api, server.port, token, "/api/v1/search?q=蜜柑")
    assert search() == 200
    postgres.stop()
    with ThreadPoolExecutor(40) as clients:
        assert [reply.result() for reply in [clients.submit(search) for _ in range(40)]] == [503] * 40
    postgres.start()
    assert library.store.files.still_exist()
    assert search() == 200


def ask_api(port: int, token: str, path: str) -> int:
    """Ask for a path of the API, and return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with closing(connection):
        connection.request("GET", quote(path, safe="/?="), headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
