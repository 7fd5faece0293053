"""JSON-RPC 2.0: read messages from anybody, write our own, and tell what is wrong with a message."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Message = dict[str, Any]
RequestId = int | str


class ProtocolError(Exception):
    """A message that cannot be answered; its sender gets this error, with the id of the request if it has one."""

    def __init__(self, code: int, message: str, data: Any = None, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.request_id = code, message, data, request_id


@dataclass(frozen=True, slots=True)
class Request:
    """A message that wants a reply."""

    id: RequestId
    method: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notification:
    """A message without a reply."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """The reply of a client to a request of the server."""

    message: Message


def parse_message(text: str) -> Request | Notification | Response:
    """Return the message of a client, or raise ProtocolError."""
    try:
        message = _DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text:  # half a character could not be written, neither back nor to a database
            json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, "Parse error: a message must be JSON in UTF-8") from error
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "A message must be a single JSON object")
    request_id = message.get("id")
    has_id = isinstance(request_id, int | str) and not isinstance(request_id, bool)

    def refuse(code: int, text: str) -> NoReturn:
        raise ProtocolError(code, text, request_id=request_id if has_id else None)

    if message.get("jsonrpc") != "2.0":
        refuse(INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if "id" in message and not has_id and "error" not in message:  # an error about an unreadable message has none
        refuse(INVALID_REQUEST, "id must be a string or an integer")
    if "method" not in message:
        if "result" in message or "error" in message:
            return Response(message)
        refuse(INVALID_REQUEST, "method is missing")
    method, params = message["method"], message.get("params")
    if not isinstance(method, str):
        refuse(INVALID_REQUEST, "method must be a string")
    if params is None:
        params = {}
    elif not isinstance(params, dict):
        refuse(INVALID_PARAMS, "params must be an object")
    return Request(message["id"], method, params) if "id" in message else Notification(method, params)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode_message(message: Message) -> bytes:
    """Return a message as JSON in one line."""
    # Half a character, which a name of a file can contain, is written as an escape of JSON.
    return _ENCODER.encode(message).encode("utf-8", "backslashreplace")


def result_message(request_id: RequestId, result: dict[str, Any]) -> Message:
    """Return the reply to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(request_id: RequestId | None, error: ProtocolError) -> Message:
    """Return the reply to a request that failed; without an id, to a message that could not be read."""
    content: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        content["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": content}


def notification_message(method: str, params: dict[str, Any] | None = None) -> Message:
    """Return a message without a reply."""
    return {"jsonrpc": "2.0", "method": method} | ({"params": params} if params is not None else {})


def text_param(params: dict[str, Any], name: str) -> str:
    """Return a parameter that must be a string."""
    value = params.get(name)
    if not isinstance(value, str):
        raise ProtocolError(INVALID_PARAMS, f"{name} must be a string")
    return value


def optional_text_param(params: dict[str, Any], name: str) -> str | None:
    """Return a parameter that must be a string if it is given."""
    return None if params.get(name) is None else text_param(params, name)


def object_param(params: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a parameter that must be an object."""
    value = params.get(name)
    if not isinstance(value, dict):
        raise ProtocolError(INVALID_PARAMS, f"{name} must be an object")
    return value


def optional_object_param(params: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a parameter that must be an object if it is given, else an empty one."""
    return {} if params.get(name) is None else object_param(params, name)
