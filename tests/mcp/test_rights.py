"""What a token of a library sees and finds over HTTP, and what stays hidden from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError

from tests.mcp.mcp_client import structure_of
from tests.mcp.served_registry import SERVER_TOKEN
from tests.mcp.team import READABLE, Team, ask, hidden_words, questions, serve_team


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with serve_team(tmp_path_factory.mktemp("team")) as served:
        yield served


def test_every_tool_that_assistants_can_call_is_asked_for_what_is_hidden(team: Team) -> None:
    """A new tool needs questions here that try to get at the documents of others."""
    offered = set(team.server.tool_names(SERVER_TOKEN))
    assert offered == set(questions(team.site))


READING = (
    "search", "read", "list", "verify", "query_memos", "list_tags", "get_recent_memos", "rag_search", "rag_stats",
)  # fmt: skip


@pytest.mark.parametrize("name", READING)
def test_a_token_finds_and_names_nothing_of_a_tool_that_it_may_not_read(team: Team, name: str) -> None:
    limited, everything = team.token("alice", read=READABLE), team.token("boss")
    is_hidden_from_nobody = []
    for arguments in questions(team.site)[name]:
        reply = ask(team.server, limited, name, arguments)
        assert hidden_words(reply, arguments) == [], arguments
        is_hidden_from_nobody.append(ask(team.server, everything, name, arguments) == reply)
    assert not all(is_hidden_from_nobody)  # the same questions of somebody who may read everything do reach it


@pytest.mark.parametrize("name", ["search", "read", "list", "verify", "secret"])
def test_a_hidden_tool_answers_like_one_that_does_not_exist(team: Team, name: str) -> None:
    limited = team.token("alice", read=READABLE)
    for arguments in questions(team.site)[name]:
        if name == "secret" or "secret" in json.dumps(arguments):
            twin = {key: str(value).replace("secret", "absent") for key, value in arguments.items()}
            hidden = ask(team.server, limited, name, arguments)
            absent = ask(team.server, limited, name.replace("secret", "absent"), twin)
            assert hidden.replace("secret", "absent") == absent


def test_tools_and_resources_that_a_token_may_not_read_are_not_listed(team: Team) -> None:
    limited, everything = team.token("alice", read=READABLE), team.token("boss")

    async def listings(client: Any) -> str:
        resources, templates = await client.list_resources(), await client.list_resource_templates()
        tools = await client.list_tools()
        return str(tools.model_dump_json() + resources.model_dump_json() + templates.model_dump_json())

    assert hidden_words(team.server.talk(limited, listings)) == []
    assert "蜜柑" in team.server.call(limited, "search", query="蜜柑").model_dump_json()
    assert "secret" in team.server.talk(everything, listings)
    assert "secret" not in team.server.tool_names(limited)
    assert "recipes" in team.server.tool_names(limited)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_hidden_document_answers_like_one_that_does_not_exist(team: Team, mode: str) -> None:
    limited = team.token("alice", read=READABLE)

    async def read(client: Any) -> list[str]:
        messages = []
        for address in ("bunko://secret/one.md", "bunko://absent/one.md"):
            with pytest.raises(MCPError) as raised:
                await client.read_resource(address)
            messages.append(str(raised.value).replace("secret", "absent"))
        opened = await client.read_resource("bunko://recipes/one.md")
        assert "蜜柑" in opened.contents[0].text
        return messages

    hidden, absent = team.server.talk(limited, read, mode)
    assert hidden == absent


def test_a_search_over_all_tools_counts_only_those_of_the_token(team: Team) -> None:
    limited = team.token("alice", read=("recipes",))
    found = structure_of(team.server.call(limited, "search", query="計画", response_format="detailed"))
    assert {result["tool"] for result in found["results"]} <= {"recipes"}
    assert structure_of(team.server.call(limited, "list"))["total"] == 1
    assert structure_of(team.server.call(limited, "rag_stats"))["source_count"] == 0
    everything = structure_of(team.server.call(team.token("boss"), "rag_stats"))
    assert everything["source_count"] == 2
