"""Tokens and the audit log of a library that two servers share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bunko.interfaces.http import authorization
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.paths import locate_library
from bunko.library.tokens import add_token, revoke_token
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
    monkeypatch.setattr(authorization, "_FRESH_SECONDS", 0.0)
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
    token = add_token(library.store, "alice", Rights(("recipes",)))
    for server in (first, second):
        assert server.ask(f"Bearer {token}").status == 200
        found = structure_of(server.call(token, "search", query="葡萄の計画", response_format="detailed"))
        assert "部外秘" not in str(found)
        assert "secret" not in server.tool_names(token)
        assert "may not call reindex" in error_of(server.call(token, "reindex"))
    revoke_token(other_library.store, "alice")
    assert [server.ask(f"Bearer {token}").status for server in (first, second)] == [401, 401]


def test_all_servers_write_one_audit_log(servers: Served) -> None:
    (library, first), (other_library, second) = servers
    token = add_token(library.store, "ci", Rights(write=("recipes",)))
    assert not first.call(token, "reindex").is_error
    assert structure_of(second.call(token, "reindex"))["unchanged"] == 0  # its folder is on the first machine
    entries = other_library.store.audit.entries()
    assert [(entry.who, entry.via, entry.tools, entry.result) for entry in entries] == [
        ("ci", "http", ("recipes",), "done"), ("ci", "http", (), "done"),
    ]  # fmt: skip
