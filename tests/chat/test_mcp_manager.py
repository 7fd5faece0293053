"""The tools of several servers: commands that work, misbehave, end and change."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.server_config import ServerConfig
from bunko.interfaces.chat.server_connection import connect_servers
from bunko.interfaces.chat.servers import MCPServerError, MCPToolNotFoundError

pytestmark = pytest.mark.slow  # each test starts a process that takes a second

SCRIPT = Path(__file__).with_name("scripted_server.py")


def scripted(behaviour: str = "works", name: str = "scripted") -> ServerConfig:
    """Return a server that behaves like this."""
    return ServerConfig(name, command=sys.executable, args=(str(SCRIPT), behaviour), env={"TOLD": "1"})


@asynccontextmanager
async def managed(
    *configs: ServerConfig,
    start_timeout: float = 30.0,
    call_timeout: float = 30.0,
    max_output_chars: int = 1000,
    digests_path: Path | None = None,
) -> AsyncIterator[MCPManager]:
    """Start some servers."""
    async with connect_servers(configs, start_timeout=start_timeout) as connections:
        yield MCPManager(
            connections, call_timeout=call_timeout, max_output_chars=max_output_chars, digests_path=digests_path
        )


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test as a coroutine."""
    anyio.run(test)


def test_a_tool_of_a_command_is_called_by_its_name() -> None:
    async def test() -> None:
        async with managed(scripted()) as manager:
            assert "echo" in [tool.name for tool in await manager.tools()]
            assert (await manager.call_tool("echo", {"text": "日本語 & more"})).text == "日本語 & more"
            assert (await manager.call_tool("fail")).is_error
            flood = await manager.call_tool("flood")
            assert flood.text.endswith("[499,000 more characters were left out]")
            assert len(flood.text) < 1100

    run(test)


def test_a_command_gets_no_more_of_the_environment_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    async def test() -> None:
        async with managed(scripted()) as manager:
            names = (await manager.call_tool("environment")).text.split()
            assert {"PATH", "TOLD"} <= set(names)
            assert "OPENAI_API_KEY" not in names

    run(test)


def test_a_tool_that_no_server_has_is_an_error_of_its_own() -> None:
    async def test() -> None:
        async with managed() as manager:
            with pytest.raises(MCPToolNotFoundError, match="No MCP server offers the tool rag_add"):
                await manager.call_tool("rag_add", {"url": "https://example.com"})

    run(test)


def test_servers_that_do_not_start_are_named_and_the_others_go_on() -> None:
    async def test() -> None:
        missing = ServerConfig("missing", command="no-such-command-anywhere")
        async with managed(
            scripted("refuses", "refuses"), scripted("hangs", "hangs"), missing, scripted(), start_timeout=6.0
        ) as manager:
            assert (await manager.call_tool("weather", {"city": "Kyoto"})).text == "sunny in Kyoto"
            assert sorted(manager.problems) == ["hangs", "missing", "refuses"]
            assert "the key of the weather service is missing" in manager.problems["refuses"]
            assert "did not start within 6 s" in manager.problems["hangs"]
            assert "the command no-such-command-anywhere was not found" in manager.problems["missing"]

    run(test)


def test_lines_that_are_not_messages_are_skipped(capfd: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with managed(scripted("chatters")) as manager:
            assert (await manager.call_tool("echo", {"text": "heard"})).text == "heard"

    run(test)
    assert capfd.readouterr().err == ""


def test_a_server_that_writes_without_end_costs_its_own_tools_only() -> None:
    async def test() -> None:
        async with managed(scripted("floods", "floods"), scripted(), start_timeout=4.0) as manager:
            assert (await manager.call_tool("echo", {"text": "heard"})).text == "heard"
            assert list(manager.problems) == ["floods"]

    run(test)


def test_a_server_that_writes_without_end_while_it_runs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bunko.interfaces.chat.mcp_client.MAX_MESSAGE_BYTES", 3_000_000)

    async def test() -> None:
        async with managed(scripted()) as manager:
            await manager.tools()
            with pytest.raises(MCPServerError, match="it wrote a message of more than 3 MB"):
                await manager.call_tool("write_without_end")

    run(test)


def test_tools_that_no_model_could_be_told_about_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with managed(scripted("bloats")) as manager:
            names = [tool.name for tool in await manager.tools()]
            assert "bloated" not in names
            assert len(names) == 199
            assert (await manager.call_tool("echo_1", {"text": "heard"})).text == "heard"

    run(test)
    assert "has too many tools: the first 200 are used" in caplog.text
    assert "The tool bloated of the MCP server scripted is not used: its description is too long" in caplog.text


def test_a_call_that_takes_too_long_is_given_up() -> None:
    async def test() -> None:
        async with managed(scripted(), call_timeout=0.5) as manager:
            await manager.tools()
            with pytest.raises(MCPServerError, match=r"sleep of the MCP server scripted did not answer within 0\.5 s"):
                await manager.call_tool("sleep")

    run(test)


def test_a_server_that_ends_is_started_again_and_a_reading_call_repeated(tmp_path: Path) -> None:
    async def test() -> None:
        async with managed(scripted()) as manager:
            output = await manager.call_tool("crash_once", {"marker": str(tmp_path / "crashed")})
            assert output.text == "alive"

    run(test)


def test_a_call_that_may_have_changed_something_is_not_repeated() -> None:
    async def test() -> None:
        async with managed(scripted()) as manager:
            with pytest.raises(MCPServerError, match="ended during crash_while_writing") as raised:
                await manager.call_tool("crash_while_writing")
            assert "Check whether the call had an effect" in raised.value.hint

    run(test)


def test_a_server_that_has_just_ended_is_waited_for_and_its_tools_do_not_vanish() -> None:
    async def test() -> None:
        async with managed(scripted()) as manager:
            with pytest.raises(MCPServerError, match="ended during crash_while_writing"):
                await manager.call_tool("crash_while_writing")
            assert (await manager.call_tool("write", {"text": "a"})).text == "wrote a"
            with pytest.raises(MCPServerError, match="ended during crash_while_writing"):
                await manager.call_tool("crash_while_writing")
            with pytest.raises(MCPServerError, match="is not available: it ended unexpectedly"):
                await manager.call_tool("write", {"text": "b"})

    run(test)


def test_a_tool_that_changed_is_announced_before_it_is_used_again(tmp_path: Path) -> None:
    digests_path = tmp_path / "digests.json"

    async def first_time() -> None:
        async with managed(scripted(), digests_path=digests_path) as manager:
            await manager.tools()
            assert manager.announcements() == []

    async def after_the_change() -> None:
        async with managed(scripted("changed"), digests_path=digests_path) as manager:
            arguments = {"city": "Kyoto", "password": "x"}
            with pytest.raises(MCPServerError, match="has changed since it was last offered"):
                await manager.call_tool("weather", arguments)
            (sentence,) = manager.announcements()
            assert sentence.startswith("The tool weather of the MCP server scripted has another description")
            assert (await manager.call_tool("weather", arguments)).text == "Kyotox"

    run(first_time)
    run(after_the_change)


def test_tools_of_the_same_name_are_told_apart_by_their_server() -> None:
    async def test() -> None:
        async with managed(scripted(name="one"), scripted(name="two")) as manager:
            names = [tool.name for tool in await manager.tools()]
            assert {"weather", "two__weather"} <= set(names)
            assert len(names) == len(set(names))
            assert (await manager.call_tool("two__weather", {"city": "Nara"})).text == "sunny in Nara"

    run(test)
