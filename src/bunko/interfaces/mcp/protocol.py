"""Answer the requests of one client in the era of the protocol that it speaks.

Until 2025-11-25, a client shakes hands with `initialize`, and what was agreed holds for the connection. From 2026-07-28
on, each request says who asks in which version, and nothing is remembered between two of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bunko.errors import BunkoError
from bunko.interfaces.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Message,
    Notification,
    ProtocolError,
    Request,
    RequestId,
    Response,
    error_message,
    notification_message,
    optional_object_param,
    result_message,
    text_param,
)
from bunko.interfaces.tools.registry import error_text
from bunko.types.access import Caller

_log = logging.getLogger("bunko.mcp")

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
UNSUPPORTED_VERSION = -32022  # from 2026-07-28 on

_KEY_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY = f"{_KEY_PREFIX}protocolVersion", f"{_KEY_PREFIX}clientCapabilities"
_CLIENT_KEY, _SERVER_KEY = f"{_KEY_PREFIX}clientInfo", f"{_KEY_PREFIX}serverInfo"
SUBSCRIPTION_KEY = f"{_KEY_PREFIX}subscriptionId"

LISTEN_METHOD = "subscriptions/listen"
_STATELESS_METHODS = frozenset({"server/discover", LISTEN_METHOD})
_HANDSHAKE_METHODS = frozenset({"ping"})
# For how long a client of the newer era may keep a result, in milliseconds.
_FRESH_MILLISECONDS = {
    "server/discover": 0, "tools/list": 5_000, "prompts/list": 0, "resources/list": 0, "resources/templates/list": 0,
    "resources/read": 0,
}  # fmt: skip
_MAX_QUOTED_CHARS = 100

SendMessage = Callable[[Message], Awaitable[None]]


@dataclass(slots=True)
class ClientCall:
    """A request that may be answered: who sent it in which version of the protocol, and the way back to them."""

    request: Request
    version: str
    caller: Caller
    send: SendMessage  # a message to the client as part of this request

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        return self.request.params

    @property
    def is_stateless(self) -> bool:
        """Whether it is of the newer era."""
        return self.version in STATELESS_VERSIONS

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification as part of this request."""
        await self.send(notification_message(method, params))


Handler = Callable[[ClientCall], Awaitable[dict[str, Any]]]


class RequestServer(Protocol):
    """What answers requests, in either era."""

    handlers: dict[str, Handler]  # by method
    info: dict[str, str]  # its name and version
    instructions: str

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return what clients of a version of the protocol may ask for."""

    def receive_response(self, message: Message) -> None:
        """Take a client's reply to a request of the server."""


class ClientConnection:
    """A client that sends one message after another: which era it speaks, and which of its requests run."""

    def __init__(self, server: RequestServer, *, version: str = "", may_be_stateless: bool = False) -> None:
        """With a version, the client has shaken hands before; else its first request may decide about its era."""
        self._server, self._may_be_stateless = server, may_be_stateless
        self.version = version  # what the client and we agreed on, empty before that
        self._is_stateless: bool | None = None if may_be_stateless else False
        self._running: dict[RequestId, asyncio.Task[Message]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether requests are being answered."""
        return bool(self._running)

    def receive(self, message: Notification | Response) -> None:
        """Take a message that gets no reply."""
        if isinstance(message, Response):
            self._server.receive_response(message.message)
        elif message.method == "notifications/cancelled":
            request_id = message.params.get("requestId")
            if isinstance(request_id, int | str) and (task := self._running.get(request_id)):
                task.cancel()

    def start(self, request: Request, caller: Caller, send: SendMessage) -> asyncio.Task[Message] | Message:
        """Begin to answer a request, or return the reply if it is known at once, as that to a handshake.

        The task is cancelled when the client cancels its request: then there is no reply. The caller is given with each
        request, because the rights of a token may change meanwhile.
        """
        if request.method == "initialize":
            return self.shake_hands(request)
        try:
            if request.id in self._running:
                raise ProtocolError(INVALID_REQUEST, "A request with this id is still running")
            call = ClientCall(request, self._find_version(request), caller, send)
        except ProtocolError as error:
            return error_message(request.id, error)
        # Known from now on: the next message may cancel it.
        task = self._running[request.id] = asyncio.create_task(answer(self._server, call))
        task.add_done_callback(lambda _: self._running.pop(request.id))
        return task

    def shake_hands(self, request: Request) -> Message:
        """Return the reply to a handshake; if it succeeds, the connection has a version from now on."""
        try:
            return result_message(request.id, self._agree_on_version(request))
        except ProtocolError as error:
            return error_message(request.id, error)

    def close(self) -> None:
        """Cancel all requests that run."""
        for task in self._running.values():
            task.cancel()

    def _agree_on_version(self, request: Request) -> dict[str, Any]:
        if self._is_stateless:
            raise ProtocolError(
                UNSUPPORTED_VERSION,
                "This connection speaks a version of the protocol without initialize",
                {"supported": list(STATELESS_VERSIONS), "requested": request.params.get("protocolVersion")},
            )
        requested = text_param(request.params, "protocolVersion")
        for name in ("capabilities", "clientInfo"):
            optional_object_param(request.params, name)
        self._is_stateless = False
        self.version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self.version,
            "capabilities": self._server.capabilities(self.version),
            "serverInfo": dict(self._server.info),
            "instructions": self._server.instructions,
        }

    def _find_version(self, request: Request) -> str:
        """Return the version of the protocol in which to answer a request."""
        meta = request.params.get("_meta")
        has_envelope = isinstance(meta, dict) and VERSION_KEY in meta
        if self._is_stateless is None:
            self._is_stateless = has_envelope
        if self._is_stateless:
            return check_version(read_envelope(request)[VERSION_KEY])
        if has_envelope and self._may_be_stateless:
            raise ProtocolError(
                INVALID_REQUEST, f"This connection began with a handshake: leave out {VERSION_KEY}, or open another one"
            )
        if not self.version and request.method != "ping":
            check_method(self._server, request.method, is_stateless=False)
            raise ProtocolError(INVALID_PARAMS, f"initialize must come before {request.method}")
        return self.version or HANDSHAKE_VERSIONS[-1]


def read_envelope(request: Request) -> dict[str, Any]:
    """Return what a request of the newer era says about itself, with a version that is still to be checked."""
    meta = request.params.get("_meta")
    if not isinstance(meta, dict):
        raise ProtocolError(INVALID_PARAMS, f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}")
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise ProtocolError(INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    optional_object_param(meta, _CLIENT_KEY)
    return meta


def check_version(version: object) -> str:
    """Return a version of the newer era if we speak it."""
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{VERSION_KEY} must be a string")
    if version not in STATELESS_VERSIONS:
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"supported": list(STATELESS_VERSIONS), "requested": version},
        )
    return version


def check_method(server: RequestServer, method: str, *, is_stateless: bool) -> Handler:
    """Return what answers a method in an era."""
    handler = server.handlers.get(method)
    if handler is None or method in (_HANDSHAKE_METHODS if is_stateless else _STATELESS_METHODS):
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method[:_MAX_QUOTED_CHARS])
    return handler


async def answer(server: RequestServer, call: ClientCall) -> Message:
    """Return the reply to a request: a result, or an error that says what is wrong."""
    request = call.request
    try:
        handler = check_method(server, request.method, is_stateless=call.is_stateless)
        progress_token(call)  # a wrong one is refused, also where no progress is reported
        result = await handler(call)
    except ProtocolError as error:
        return error_message(request.id, error)
    except BunkoError as error:
        return error_message(request.id, ProtocolError(INTERNAL_ERROR, error_text(error)))
    except Exception as error:
        _log.exception("%s failed", request.method)
        return error_message(
            request.id, ProtocolError(INTERNAL_ERROR, f"Internal error ({type(error).__name__}). See the server's log.")
        )
    return result_message(request.id, _describe_result(server, call, result) if call.is_stateless else result)


def _describe_result(server: RequestServer, call: ClientCall, result: dict[str, Any]) -> dict[str, Any]:
    """Add what the newer era says with each result."""
    described: dict[str, Any] = {"resultType": "complete", **result}
    if described["resultType"] == "complete" and call.request.method in _FRESH_MILLISECONDS:
        described |= {"ttlMs": _FRESH_MILLISECONDS[call.request.method], "cacheScope": "private"}
    described["_meta"] = {**result.get("_meta", {}), _SERVER_KEY: dict(server.info)}
    return described


def progress_token(call: ClientCall) -> RequestId | None:
    """Return the token by which a client recognizes the progress of its request, None if it did not ask for it."""
    token = optional_object_param(call.params, "_meta").get("progressToken")
    if token is not None and (not isinstance(token, int | str) or isinstance(token, bool)):
        raise ProtocolError(INVALID_PARAMS, "progressToken must be a string or an integer")
    return token
