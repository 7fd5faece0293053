"""A Messages API on loopback: a script is its model, and its answers are streamed as events."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.loopback import Asked, Loopback, Reply, told

Block = dict[str, Any]
# What the model does next, given all that it was sent.
Script = Callable[[dict[str, Any]], Block]


def serve(script: Script) -> Loopback:
    """Start the service; the caller closes it."""
    service = Loopback()
    service.always = lambda asked: _answer(script, asked)
    return service


def say(text: str) -> Block:
    """Return the end of an answer."""
    return {"type": "text", "text": text}


def call(tool: str, **arguments: Any) -> Block:
    """Return a call of a tool."""
    return {"type": "tool_use", "id": f"toolu_{tool}", "name": tool, "input": arguments}


def results(body: dict[str, Any]) -> dict[str, list[str]]:
    """Return the texts that the tools called so far have answered with."""
    found: dict[str, list[str]] = {}
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                content = block["content"] if isinstance(block["content"], list) else [say(block["content"])]
                found[block["tool_use_id"].removeprefix("toolu_")] = [part.get("text", "") for part in content]
    return found


def _answer(script: Script, asked: Asked) -> Reply:
    if not asked.path.startswith("/v1/messages"):
        return told({"type": "error", "error": {"type": "not_found_error", "message": asked.path}}, 404)
    if "count_tokens" in asked.path:
        return told({"input_tokens": 1})
    block = script(asked.body)
    stop = {"stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked.body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    if not asked.body.get("stream"):
        return told(message | stop | {"content": [block]})
    if block["type"] == "text":
        start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        start, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return 200, {"content-type": "text/event-stream"}, stream.encode()
