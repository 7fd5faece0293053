"""Messages that no client should send: each gets an error, and the server goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies

from bunko.interfaces.mcp import stdio
from bunko.interfaces.mcp.messages import (
    ProtocolError,
    Request,
    encode_message,
    error_message,
    parse_message,
    result_message,
)
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.mcp.stdio import serve_lines
from bunko.interfaces.tools.registry import ToolRegistry
from tests.mcp.mcp_client import FOLDER_TOOL_NAMES, TIMEOUT_SECONDS

PREFIX = "io.modelcontextprotocol"
CLIENT = {"name": "test", "version": "1"}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
ENVELOPE = {f"{PREFIX}/protocolVersion": "2026-07-28", f"{PREFIX}/clientCapabilities": {}}
Message = dict[str, Any]


class _Client:
    """Sends lines as they are, and hands out the replies by their ids."""

    def __init__(self) -> None:
        self.replies: dict[object, asyncio.Future[Message]] = {}
        self.failure: asyncio.Future[OSError] = asyncio.get_running_loop().create_future()
        self.waiting_bytes = 0
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def write(self, line: bytes) -> None:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        waiting = self._waiting(message.get("id"))
        if not waiting.done():
            waiting.set_result(message)

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        self._lines.put_nowait(None)

    def send(self, line: str | Message) -> None:
        self._lines.put_nowait(line if isinstance(line, str) else json.dumps({"jsonrpc": "2.0"} | line))

    async def answer(self, request_id: object) -> Message:
        """Return the reply with an id, None for those to messages that could not be read."""
        return await self._waiting(request_id)

    def _waiting(self, request_id: object) -> asyncio.Future[Message]:
        return self.replies.setdefault(request_id, asyncio.get_running_loop().create_future())


def exchange(registry: ToolRegistry, lines: Sequence[str | Message], *request_ids: object) -> list[Message]:
    """Send lines to a server, and return its replies with these ids; afterwards the server must still answer."""

    async def run() -> list[Message]:
        client = _Client()
        serving = asyncio.create_task(serve_lines(BunkoServer(registry), client, client))
        for line in lines:
            client.send(line)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            replies = [await client.answer(request_id) for request_id in request_ids]
            client.send({"id": "last", "method": "initialize", "params": HANDSHAKE})
            client.send({"id": "list", "method": "tools/list"})
            listed = await client.answer("list")
            client.close()
            await serving
        if "error" not in await client.answer("last"):  # one of the newer era
            assert [tool["name"] for tool in listed["result"]["tools"]] == FOLDER_TOOL_NAMES
        return replies

    return asyncio.run(run())


@pytest.mark.parametrize(
    "line",
    [
        "{", "nonsense", '{"jsonrpc": "2.0", "id": 1, "method": "ping"', "\x00", '{"id": NaN}', '{"id": -Infinity}',
        '"\\ud800"', '{"jsonrpc": "2.0", "id": "\\uDfff", "method": "ping"}', "1" * 10_000, "[" * 100_000,
        '{"a":' * 100_000, '{"jsonrpc": "2.0", "id": 1, "method": "ping"} {"id": 2}', "\ufeff{}",
    ],
)  # fmt: skip
def test_a_line_that_is_not_json_gets_a_parse_error_without_an_id(line: str, registry: ToolRegistry) -> None:
    [reply] = exchange(registry, [line], None)
    assert reply["id"] is None
    assert reply["error"]["code"] == -32700


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
    max_leaves=5,
)
FIELDS = {"jsonrpc": strategies.just("2.0"), "id": JSON, "method": JSON, "params": JSON, "result": JSON, "error": JSON}


@given(strategies.text() | JSON.map(json.dumps) | strategies.fixed_dictionaries({}, optional=FIELDS).map(json.dumps))
def test_whatever_comes_is_a_message_or_an_error(text: str) -> None:
    try:
        message = parse_message(text)
    except ProtocolError as error:
        encode_message(error_message(error.request_id, error))
    else:
        if isinstance(message, Request):
            encode_message(result_message(message.id, {"params": message.params})).decode()


def test_half_a_character_in_a_reply_is_written_as_an_escape() -> None:
    line = encode_message({"name": "a\udcff京"})
    assert json.loads(line.decode()) == {"name": "a\udcff京"}


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        ("null", None), ("5", None), ('"ping"', None), ("[]", None), ("true", None), ("{}", None),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', None), ('{"id": 1, "method": "ping"}', 1),
        ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', 1), ('{"jsonrpc": 2.0, "id": "a", "method": "ping"}', "a"),
        ('{"jsonrpc": "2.0", "id": 1}', 1), ('{"jsonrpc": "2.0", "id": 1, "method": 5}', 1),
        ('{"jsonrpc": "2.0", "id": 1, "method": null}', 1), ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', None),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None), ('{"jsonrpc": "2.0", "id": []}', None),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None), ('{"jsonrpc": "2.0", "id": {}, "result": {}}', None),
    ],
)  # fmt: skip
def test_json_that_is_no_message_gets_an_error_with_the_id_if_there_is_one(
    line: str, request_id: object, registry: ToolRegistry
) -> None:
    [reply] = exchange(registry, [line], request_id)
    assert reply["error"]["code"] == -32600


@pytest.mark.parametrize("params", [[], [1, 2], "text", 5, True])
def test_parameters_must_be_an_object(params: object, registry: ToolRegistry) -> None:
    [reply] = exchange(registry, [{"id": 1, "method": "ping", "params": params}], 1)
    assert reply["error"]["code"] == -32602


WRONG = [
    ("tools/call", {}), ("tools/call", {"name": 5}), ("tools/call", {"name": None}), ("tools/call", {"name": ["a"]}),
    ("tools/call", {"name": "search", "arguments": "京都"}), ("tools/call", {"name": "search", "arguments": [1]}),
    ("tools/call", {"name": "search", "arguments": 0}), ("tools/list", {"cursor": 5}), ("tools/list", {"cursor": {}}),
    ("resources/list", {"cursor": []}), ("resources/read", {}), ("resources/read", {"uri": 5}),
    ("resources/read", {"uri": {"a": 1}}), ("tools/list", {"_meta": 5}), ("tools/list", {"_meta": []}),
    ("tools/call", {"name": "search", "_meta": {"progressToken": [1]}}),
    ("tools/call", {"name": "search", "_meta": {"progressToken": True}}),
    ("tools/call", {"name": "search", "_meta": {"progressToken": 1.5}}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "params"), WRONG)
def test_parameters_of_a_wrong_type_are_told(method: str, params: Message, registry: ToolRegistry) -> None:
    lines = [{"id": 1, "method": "initialize", "params": HANDSHAKE}, {"id": 2, "method": method, "params": params}]
    [reply] = exchange(registry, lines, 2)
    assert reply["error"]["code"] == -32602
    if isinstance(params.get("_meta", {}), dict):
        meta = {"_meta": params.get("_meta", {}) | ENVELOPE}
        [reply] = exchange(registry, [{"id": 2, "method": method, "params": params | meta}], 2)
        assert reply["error"]["code"] == -32602


@pytest.mark.parametrize(
    "params", [None, {}, {"protocolVersion": 5}, {"protocolVersion": None}, HANDSHAKE | {"clientInfo": 5}]
)
def test_a_wrong_handshake_is_told_and_may_be_repeated(params: Message | None, registry: ToolRegistry) -> None:
    again = {"id": 2, "method": "initialize", "params": HANDSHAKE}
    wrong, right = exchange(registry, [{"id": 1, "method": "initialize", "params": params}, again], 1, 2)
    assert wrong["error"]["code"] == -32602
    assert right["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({f"{PREFIX}/protocolVersion": "2026-07-28"}, -32602),
        (ENVELOPE | {f"{PREFIX}/clientCapabilities": []}, -32602),
        (ENVELOPE | {f"{PREFIX}/clientInfo": "me"}, -32602),
        (ENVELOPE | {f"{PREFIX}/protocolVersion": 20260728}, -32602),
        (ENVELOPE | {f"{PREFIX}/protocolVersion": "2099-01-01"}, -32022),
    ],
)
def test_a_request_that_says_too_little_about_itself_is_told(meta: Message, code: int, registry: ToolRegistry) -> None:
    [reply] = exchange(registry, [{"id": 1, "method": "tools/list", "params": {"_meta": meta}}], 1)
    assert reply["error"]["code"] == code


def test_what_comes_before_the_handshake_is_told_so(registry: ToolRegistry) -> None:
    lines: list[str | Message] = [
        {"method": "notifications/initialized"},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"id": 1, "method": "tools/list"},
        {"id": 2, "method": "no/such/method"},
        {"id": 3, "method": "ping"},
        {"id": 4, "method": "server/discover"},
    ]
    early, unknown, ping, newer = exchange(registry, lines, 1, 2, 3, 4)
    assert early["error"] == {"code": -32602, "message": "initialize must come before tools/list"}
    assert unknown["error"]["code"] == newer["error"]["code"] == -32601
    assert ping["result"] == {}


def test_a_name_of_a_method_that_is_far_too_long_is_not_sent_back(registry: ToolRegistry) -> None:
    [reply] = exchange(registry, [{"id": 1, "method": "x" * 1_000_000}], 1)
    assert reply["error"]["code"] == -32601
    assert len(json.dumps(reply)) < 500


def test_notifications_and_responses_that_nobody_asked_for_get_no_reply(registry: ToolRegistry) -> None:
    lines: list[str | Message] = [
        "", "  \t", {"method": "no/such/notification"}, {"method": "notifications/progress", "params": {"x": 1}},
        {"id": 7, "result": {}}, {"id": "x", "error": {"code": 1, "message": "x"}}, {"id": None, "error": {}},
        {"method": "notifications/cancelled", "params": {"requestId": 99}},
        {"method": "notifications/cancelled"}, {"id": 1, "method": "ping"},
    ]  # fmt: skip

    async def run() -> set[object]:
        client = _Client()
        serving = asyncio.create_task(serve_lines(BunkoServer(registry), client, client))
        for line in lines:
            client.send(line)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await client.answer(1)
            client.close()
            await serving
        return set(client.replies)

    assert asyncio.run(run()) == {1}


def test_an_id_that_is_in_use_is_refused_and_the_first_request_goes_on(registry: ToolRegistry) -> None:
    async def run() -> list[Message]:
        client, replies = _Client(), asyncio.Queue[Message]()
        client.write = lambda line: replies.put_nowait(json.loads(line))  # type: ignore[method-assign]
        serving = asyncio.create_task(serve_lines(BunkoServer(registry), client, client))
        client.send({"id": 0, "method": "initialize", "params": HANDSHAKE})
        for _ in range(2):
            client.send({"id": 1, "method": "tools/list"})
        async with asyncio.timeout(TIMEOUT_SECONDS):
            received = [await replies.get() for _ in range(3)]
            client.send({"id": 1, "method": "ping"})  # free again
            received.append(await replies.get())
            client.close()
            await serving
        return received[1:]

    refused, listed, ping = asyncio.run(run())
    assert [refused["id"], listed["id"], ping["id"]] == [1, 1, 1]
    assert refused["error"]["code"] == -32600
    assert listed["result"]["tools"]
    assert ping["result"] == {}


def test_a_request_is_cancelled_also_if_that_comes_with_it(registry: ToolRegistry) -> None:
    async def run() -> set[object]:
        client = _Client()
        serving = asyncio.create_task(serve_lines(BunkoServer(registry), client, client))
        client.send({"id": 0, "method": "initialize", "params": HANDSHAKE})
        client.send({"id": 1, "method": "tools/list"})
        client.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
        client.send({"id": 2, "method": "tools/list"})
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await client.answer(2)
            client.close()
            await serving
        return set(client.replies)

    assert asyncio.run(run()) == {0, 2}


def test_a_client_that_does_not_read_is_not_read_either(
    registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_WAITING_BYTES", 100)

    async def run() -> int:
        client, blocked, reads = _Client(), asyncio.Event(), asyncio.Event()

        def keep(line: bytes) -> None:
            client.waiting_bytes += len(line)

        async def drain() -> None:
            blocked.set()
            await reads.wait()
            client.waiting_bytes = 0

        client.write, client.drain = keep, drain  # type: ignore[method-assign]
        serving = asyncio.create_task(serve_lines(BunkoServer(registry), client, client))
        for number in range(1000):
            client.send({"id": number, "method": "no/such/method"})
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await blocked.wait()
            waiting = client.waiting_bytes
            reads.set()
            client.close()
            await serving
        return waiting

    assert asyncio.run(run()) < 1000
