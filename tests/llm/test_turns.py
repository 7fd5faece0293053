"""Turns of a chat model that streams over HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from bunko.llm.client import ChatConnection, describe_failure
from bunko.llm.turns import ChatServer, Message, RequestedCall, Turn, rejects_tools
from bunko.runtime.remote import RemoteFailure
from tests.chat.chat_service import ChatService, Reply, chat_service

SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
QUESTION: list[Message] = [{"role": "user", "content": "保存期間は？"}]


def take_turn(
    service: ChatService, *, tools: Sequence[Any] = (), timeout: float = 10.0, pieces: list[str] | None = None
) -> Turn:
    """Ask the service once."""

    async def ask() -> Turn:
        connection = ChatConnection("ollama", "m", service.address, "sk-1")
        server = ChatServer(connection, request_options={"model": "m"}, timeout=timeout)
        try:
            return await server.turn(QUESTION, tools, (pieces if pieces is not None else []).append)
        finally:
            await server.close()

    return anyio.run(ask)


def test_words_arrive_as_they_are_written() -> None:
    pieces: list[str] = []
    with chat_service(Reply("保存期間は30日です。[1]")) as service:
        turn = take_turn(service, pieces=pieces)
    assert turn.text == "".join(pieces) == "保存期間は30日です。[1]"
    assert len(pieces) > 1
    assert (turn.input_tokens, turn.output_tokens) == (100, 20)
    assert service.keys == ["Bearer sk-1"]


def test_calls_of_tools_are_put_together_from_their_pieces() -> None:
    calls = [("search", json.dumps({"query": "保存期間"})), ("read", '{"path": "a.md"}')]
    with chat_service(Reply(calls=calls)) as service:
        turn = take_turn(service, tools=[SEARCH])
    assert [(call.name, call.parse_arguments()) for call in turn.calls] == [
        ("search", {"query": "保存期間"}),
        ("read", {"path": "a.md"}),
    ]
    assert service.requests[0]["tools"] == [SEARCH]
    assert [call["id"] for call in turn.message()["tool_calls"]] == ["call-0", "call-1"]


def test_calls_that_all_have_the_same_index_are_told_apart_by_their_ids() -> None:
    def piece(number: int) -> bytes:
        call = {
            "index": 0,
            "id": f"id{number}",
            "type": "function",
            "function": {"name": f"t{number}", "arguments": "{}"},
        }
        choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return f"data: {json.dumps(event)}\n\n".encode()

    with chat_service(Reply(raw=piece(1) + piece(2) + b"data: [DONE]\n\n")) as service:
        turn = take_turn(service, tools=[SEARCH])
    assert [(call.id, call.name) for call in turn.calls] == [("id1", "t1"), ("id2", "t2")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<think>Let me see, 30?</think>It is 30 days.", "It is 30 days."),
        ("<thinking>\n秘密\n</thinking>\n\n30日です。", "30日です。"),
        ("<table> is an HTML tag.", "<table> is an HTML tag."),
        ("<th", "<th"),
        ("Use <think> to think.", "Use <think> to think."),
        ("a\u200bb\u202ec", "abc"),
    ],
)
def test_thoughts_and_hidden_characters_are_left_out(said: str, shown: str) -> None:
    pieces: list[str] = []
    with chat_service(Reply(said)) as service:
        assert take_turn(service, pieces=pieces).text == shown
    assert "".join(pieces) == shown


@pytest.mark.parametrize("arguments", ['{"query": ', "[1]", "null", '"text"'])
def test_arguments_that_are_no_object_are_told_apart(arguments: str) -> None:
    assert RequestedCall("1", "search", arguments).parse_arguments() is None


def test_a_call_without_arguments_has_none() -> None:
    assert RequestedCall("1", "search", "").parse_arguments() == {}


def test_tokens_are_estimated_if_the_server_does_not_count() -> None:
    with chat_service(Reply("It is 30 days.", usage=None)) as service:
        turn = take_turn(service)
    assert turn.input_tokens > 5
    assert 3 <= turn.output_tokens <= 12


def test_an_answer_that_reached_its_limit_is_marked() -> None:
    with chat_service(Reply("It is", finish_reason="length")) as service:
        assert take_turn(service).is_cut


def test_a_server_that_falls_silent_fails_in_time() -> None:
    with chat_service(Reply("It is 30 days.", hang_after=2)) as service, pytest.raises(RemoteFailure) as raised:
        take_turn(service, timeout=0.3)
    assert raised.value.message


def test_an_error_keeps_its_status_and_waiting_time() -> None:
    reply = Reply(status=429, error="slow down", headers={"retry-after": "7"})
    with chat_service(reply) as service, pytest.raises(RemoteFailure) as raised:
        take_turn(service)
    assert (raised.value.status, raised.value.retry_after) == (429, 7.0)
    assert "slow down" in raised.value.message


def test_a_server_that_is_not_running_is_an_error_that_says_so() -> None:
    with chat_service() as service:
        pass  # ended
    with pytest.raises(RemoteFailure) as failed:
        take_turn(service)
    assert (failed.value.message, failed.value.status) == ("Connection refused", 0)


def test_an_error_in_the_middle_of_a_stream_is_an_error() -> None:
    raw = b'data: {"error": {"code": 502, "message": "provider is down"}}\n\n'
    with chat_service(Reply(raw=raw)) as service, pytest.raises(RemoteFailure, match="provider is down"):
        take_turn(service)


@pytest.mark.parametrize(
    "raw",
    [
        b"<html><h1>Log in</h1></html>",
        b'{"choices": [{"message": {"content": "not streamed"}}]}',
        b"".join(f"data: {event}\n\n".encode() for event in ("[1]", "null", '"x"', "{}", '{"choices": [{}]}')),
        b'data: {"choices": 5}\n\ndata: [DONE]\n\n',
    ],
)
def test_what_is_no_stream_of_an_answer_is_a_failure(raw: bytes) -> None:
    with chat_service(Reply(raw=raw)) as service, pytest.raises(RemoteFailure, match="no stream of chat completions"):
        take_turn(service)


def test_pieces_of_a_wrong_type_are_left_out() -> None:
    deltas = [{"content": 5}, {"content": "It is 30 days."}, {"tool_calls": "x"}, {"tool_calls": [7, {"id": 1}]}]
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events += [{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": "x"}}, [1]]
    raw = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    with chat_service(Reply(raw=raw)) as service:
        turn = take_turn(service)
    assert (turn.text, turn.input_tokens, turn.output_tokens) == ("It is 30 days.", 7, 0)


def test_a_stream_that_ends_early_is_told_apart_from_one_that_is_complete() -> None:
    choice = {"index": 0, "delta": {"content": "It is"}, "finish_reason": None}
    raw = f"data: {json.dumps({'choices': [choice]})}\n\n".encode()
    with chat_service(Reply(raw=raw), Reply("It is")) as service:
        assert [take_turn(service).is_lost, take_turn(service).is_lost] == [True, False]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_once_more(status: int) -> None:
    busy = Reply(status=status, error="busy", headers={"retry-after": "0"})
    with chat_service(busy, Reply("It is 30 days."), busy, busy) as service:
        assert take_turn(service).text == "It is 30 days."
        with pytest.raises(RemoteFailure, match="busy"):
            take_turn(service)
    assert len(service.requests) == 4


def test_a_server_is_not_asked_again_after_its_first_words() -> None:
    choice = {"index": 0, "delta": {"content": "It is"}}
    events = [{"choices": [choice]}, {"error": {"code": 502, "message": "provider is down"}}]
    raw = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    with chat_service(Reply(raw=raw)) as service, pytest.raises(RemoteFailure, match="provider is down"):
        take_turn(service)
    assert len(service.requests) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999/v1", "localhost:1234", "ftp://127.0.0.1", "http://[bad"])
def test_an_address_that_is_none_is_a_failure(address: str) -> None:
    server = ChatServer(ChatConnection("ollama", "m", address), request_options={"model": "m"}, timeout=1.0)
    with pytest.raises(RemoteFailure, match=r"chat\.base_url"):
        anyio.run(server.turn, QUESTION)


def test_a_request_that_is_too_long_does_not_mean_that_a_model_cannot_call_tools() -> None:
    message = "This model's maximum context length is 8192 tokens. You requested 9000 tokens (500 in the functions)."
    failure = RemoteFailure(message, status=400)
    assert not rejects_tools(failure)
    connection = ChatConnection("ollama", "m", "http://127.0.0.1:9/v1")
    server = ChatServer(connection, request_options={"model": "m"}, timeout=1.0)
    assert describe_failure(server, failure).endswith("Give the model a longer context, or use another one.")


def test_a_model_without_tools_is_recognised() -> None:
    reply = Reply(status=400, error="registry.ollama.ai/library/gemma does not support tools")
    with chat_service(reply) as service, pytest.raises(RemoteFailure) as raised:
        take_turn(service, tools=[SEARCH])
    assert rejects_tools(raised.value)
    assert not rejects_tools(RemoteFailure("the key is wrong", status=401))


@pytest.mark.slow
def test_endless_arguments_are_refused() -> None:
    with (
        chat_service(Reply(calls=[("search", "x" * 200_000)])) as service,
        pytest.raises(RemoteFailure, match="too long"),
    ):
        take_turn(service, tools=[SEARCH])


def test_an_event_that_is_nested_too_deeply_is_a_failure_of_the_server() -> None:
    raw = b"data: " + b"[" * 200_000 + b"\n\n"
    with chat_service(Reply(raw=raw)) as service, pytest.raises(RemoteFailure, match="cannot be parsed"):
        take_turn(service)


def test_a_line_without_end_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bunko.llm.turns.MAX_BYTES", 100_000)
    with (
        chat_service(Reply(raw=b"data: " + b"x" * 1_000_000)) as service,
        pytest.raises(RemoteFailure, match="too long"),
    ):
        take_turn(service)


def test_a_redirect_takes_the_question_to_nobody_else() -> None:
    with chat_service(Reply("mine")) as other:
        redirect = Reply(status=307, headers={"location": f"{other.address}/chat/completions"})
        with chat_service(redirect) as service, pytest.raises(RemoteFailure) as raised:
            take_turn(service)
        assert raised.value.status == 307
        assert other.requests == []
