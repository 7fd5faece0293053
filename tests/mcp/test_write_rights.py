"""What a token of a library changes over HTTP, and what the audit log says about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import Param, ToolDefinition, ToolReply, object_schema
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES
from tests.mcp.mcp_client import FILLER, error_of, structure_of, text_of, write_document
from tests.mcp.served_registry import SERVER_TOKEN
from tests.mcp.team import Team, questions, serve_team


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with serve_team(tmp_path) as served:
        yield served


def test_a_token_that_may_only_read_changes_nothing(team: Team) -> None:
    reader = team.token("reader")
    before = team.library.store.generation()
    names = {"reindex", "rag_add", "rag_crawl", "rag_delete", "job"}
    assert not names & set(team.server.tool_names(reader))
    for name in sorted(names):
        for arguments in questions(team.site)[name]:
            message = error_of(team.server.call(reader, name, **arguments))
            assert message == (
                f"This token may not call {name}, which changes the library."
                " Ask whoever runs this server for a token with more rights."
            )
    assert team.library.store.generation() == before
    assert team.audit() == []


def test_reindex_updates_only_the_tools_that_a_token_may_write(team: Team) -> None:
    writer = team.token("writer", read=("diary",), write=("recipes",))
    for name in ("recipes", "secret"):
        folder = Path(next(tool.source for tool in team.library.tools() if tool.name == name))
        write_document(folder, "two.md", f"# 二\n\n新しい文書。{FILLER}\n")
    reply = structure_of(team.server.call(writer, "reindex"))
    assert (reply["added"], reply["unchanged"]) == (1, 1)
    by_name = {tool.name: tool.id for tool in team.library.tools()}
    assert team.library.store.documents.get(by_name["recipes"], "two.md")
    assert not team.library.store.documents.get(by_name["secret"], "two.md")
    assert team.audit() == [("writer", "reindex", ("recipes",), "done")]
    [entry] = team.library.store.audit.entries()
    assert (entry.via, entry.details) == ("http", {"added": 1, "unchanged": 1})


def test_pages_are_added_and_deleted_only_where_a_token_may_write(team: Team) -> None:
    writer = team.token("writer", read=("recipes", "secret-pages"), write=("pages",))
    added = team.server.call(writer, "rag_add", url=team.site.url("/new"))
    assert structure_of(added)["url"] == team.site.url("/new")
    by_name = {tool.name: tool.id for tool in team.library.tools()}
    assert team.library.store.documents.get(by_name["pages"], team.site.url("/new"))
    assert "許可されていません" in error_of(team.server.call(writer, "rag_delete", url=team.site.url("/confidential")))
    assert team.library.store.documents.get(by_name["secret-pages"], team.site.url("/confidential"))
    assert not team.server.call(writer, "rag_delete", url=team.site.url("/new")).is_error
    other = team.token("other", write=("recipes",))
    assert "許可されていません" in error_of(team.server.call(other, "rag_add", url=team.site.url("/new")))
    assert team.audit() == [
        ("writer", "web add", ("pages",), "done"), ("writer", "web delete", ("pages",), "done"),
    ]  # fmt: skip


def test_a_page_of_a_hidden_tool_is_unknown_to_whoever_wants_to_delete_it(team: Team) -> None:
    writer = team.token("writer", read=("recipes",), write=("pages",))
    hidden = error_of(team.server.call(writer, "rag_delete", url=team.site.url("/confidential")))
    absent = error_of(team.server.call(writer, "rag_delete", url=team.site.url("/absent")))
    assert hidden.replace("/confidential", "/absent") == absent


def test_a_failed_change_is_recorded_without_the_secrets_in_its_arguments(team: Team) -> None:
    url = team.site.url("/gone?api_key=hunter2&page=3").replace("http://", "http://me:hunter2@")
    assert team.server.call(SERVER_TOKEN, "rag_crawl", url=url).is_error
    [entry] = team.library.store.audit.entries()
    assert (entry.who, entry.action, entry.result) == ("server token", "web crawl", "failed")
    assert "page=3" in str(entry.arguments)
    assert "hunter2" not in repr(entry)
    assert entry.details["error"]


@pytest.mark.slow
def test_only_its_owner_sees_a_job_and_whoever_may_change_everything(team: Team) -> None:
    alice, bob = team.token("alice", write=("recipes",)), team.token("bob", write=("diary",))
    job = structure_of(team.server.call(alice, "reindex", background=True))["job"]
    assert structure_of(team.server.call(alice, "job", id=job))["name"] == "reindex"
    assert structure_of(team.server.call(SERVER_TOKEN, "job", id=job))["name"] == "reindex"
    assert error_of(team.server.call(bob, "job", id=job, cancel=True)) == (
        f"Unknown job {job!r}. Jobs of this server: none."
    )

    async def wait(client: Any) -> None:
        with anyio.fail_after(30):
            while structure_of(await client.call_tool("job", {"id": job}))["status"] == "running":
                await anyio.sleep(0.01)

    team.server.talk(alice, wait)
    assert team.audit() == [("alice", "reindex", ("recipes",), "done")]


def test_the_token_of_the_server_may_do_everything(team: Team) -> None:
    assert {"secret", "reindex", "rag_add", "job"} <= set(team.server.tool_names(SERVER_TOKEN))
    assert "葡萄" in text_of(team.server.call(SERVER_TOKEN, "search", query="葡萄の計画", tool="secret"))
    assert not team.server.call(SERVER_TOKEN, "reindex").is_error
    [entry] = team.audit()
    assert (entry[0], entry[1], entry[3]) == ("server token", "reindex", "done")


def test_a_tool_that_declares_no_right_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="right"):
        ToolDefinition("new", "New", "New", (Param("x", "string"),), object_schema({}), lambda _: ToolReply("", {}))  # type: ignore[call-arg]


@pytest.mark.parametrize("name", TOOLSET_NAMES)
def test_every_tool_that_changes_something_declares_that_it_writes(team: Team, name: str) -> None:
    registry = ToolRegistry(lambda: team.library, toolsets=(name,))
    rights = {tool.name: tool.right for tool in registry.tools()}
    writing = {"reindex", "rag_add", "rag_crawl", "rag_delete", "job"}
    assert {tool for tool, right in rights.items() if right == "write"} == writing & set(rights)
    assert set(rights.values()) <= {"read", "write"}
