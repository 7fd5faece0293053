"""Serve MCP over HTTP: each message of a client is a request, answered as JSON or with a stream of events."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bunko.errors import AccessDenied
from bunko.interfaces.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Message,
    Notification,
    ProtocolError,
    Request,
    Response,
    encode_message,
    error_message,
    notification_message,
    parse_message,
)
from bunko.interfaces.mcp.protocol import (
    HANDSHAKE_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    ClientCall,
    ClientConnection,
    SendMessage,
    answer,
    check_version,
    read_envelope,
)
from bunko.interfaces.mcp.server import BunkoServer, Listener
from bunko.interfaces.sender import caller_of
from bunko.interfaces.tools.registry import error_text
from bunko.types.access import Caller

# Clients that went away without ending theirs have some too. A team may share one token.
MAX_OF_CALLER = 200
MAX_SESSIONS = 1000
IDLE_SECONDS = 1800.0


@dataclass(eq=False, slots=True)
class ClientSession:
    """A client that shook hands."""

    owner: str
    connection: ClientConnection
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    is_listening: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    requests: int = 0  # that are being served
    used_at: float = field(default_factory=time.monotonic)

    @contextmanager
    def serve_request(self) -> Iterator[None]:
        """Count a request, so that the session stays while it is served."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.used_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked or listened to; what the client asked before it went may still run."""
        return not self.requests and not self.connection.is_busy

    @property
    def has_expired(self) -> bool:
        """Whether it has been idle for too long."""
        return self.is_idle and time.monotonic() - self.used_at >= IDLE_SECONDS

    @property
    def only_listens(self) -> bool:
        """Whether its only request is the one that waits for changes."""
        return self.is_listening and self.requests == 1 and not self.connection.is_busy


class ClientSessions:
    """The sessions of one server.

    At a limit, the session that has been idle for longest ends: at that of a caller one of its own, at that of the
    server one of the caller with the most sessions. Those that only listen end next, because clients listen again.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, ClientSession] = {}

    def open(self, caller: Caller, connection: ClientConnection) -> ClientSession | None:
        """Return a new session of a caller, None if all others are needed."""
        for session in list(self._sessions.values()):
            if session.has_expired:
                self.end(session)
        counts = Counter(session.owner for session in self._sessions.values())
        if counts[caller.name] >= MAX_OF_CALLER and not self._end_one_of(caller.name):
            return None
        if len(self._sessions) >= MAX_SESSIONS and not any(
            self._end_one_of(owner) for owner, _ in counts.most_common()
        ):
            return None
        session = ClientSession(caller.name, connection)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, caller: Caller) -> ClientSession | None:
        """Return a session of a caller; that of another one does not exist for this one."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != caller.name:
            return None
        if session.has_expired:
            self.end(session)
            return None
        return session

    def end(self, session: ClientSession) -> None:
        """Cancel what runs in a session, and forget it."""
        self._sessions.pop(session.id, None)
        session.connection.close()
        session.ended.set()

    def end_all(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            self.end(session)

    def _end_one_of(self, owner: str) -> bool:
        sessions = [session for session in self._sessions.values() if session.owner == owner]
        idle = [session for session in sessions if session.is_idle]
        candidates = idle or [session for session in sessions if session.only_listens]
        if candidates:
            self.end(min(candidates, key=lambda session: session.used_at))
        return bool(candidates)


MAX_BODY_BYTES = 4 * 1024 * 1024
_DEFAULT_VERSION = "2025-03-26"  # of a client of the older era that names none
_SESSION_HEADER, _VERSION_HEADER = "mcp-session-id", "mcp-protocol-version"
_METHOD_HEADER, _NAME_HEADER = "mcp-method", "mcp-name"
_ENCODED_HEADER = re.compile(r"=\?base64\?(.*)\?=")
# The parameter of a method that is repeated in a header.
_NAME_PARAMS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_CANCELLED = -32800  # of the older era, in which a request that was cancelled has a reply over HTTP
_HEADER_MISMATCH, _MISSING_CAPABILITY = -32020, -32021  # of the newer era
_STATUSES = {  # of errors in the newer era; in the older one, clients expect 200
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, _HEADER_MISMATCH: 400, _MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400, METHOD_NOT_FOUND: 404,
}  # fmt: skip

STREAM_AFTER_SECONDS = 1.0  # a reply that comes sooner, with nothing before it, is plain JSON
_PING_SECONDS = 15.0  # between two signs of life in a stream, so that no proxy ends it
_MAX_WAITING_EVENTS = 16  # for a client that reads slowly: who sends more waits
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_PING = b": ping\r\n\r\n"


def build_mcp(server: BunkoServer, *, stateless: bool) -> Starlette:
    """Return the app that answers at /mcp."""
    transport = StreamableHttp(server, stateless=stateless)
    return Starlette(routes=[Route("/mcp", transport)], lifespan=lambda _: transport.run())


class StreamableHttp:
    """The ASGI endpoint of a server; a stateless one keeps no sessions, so that any of several can answer."""

    def __init__(self, server: BunkoServer, *, stateless: bool) -> None:
        self._server, self._sessions = server, None if stateless else ClientSessions()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve as long as the block runs, then end all sessions."""
        async with self._server.run():
            try:
                yield
            finally:
                if self._sessions is not None:
                    self._sessions.end_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        exchange = _Exchange(self._server, self._sessions, scope, receive, send)
        try:
            await exchange.handle()
        except _Refusal as refusal:
            await exchange.respond(refusal.status, refusal.message, refusal.headers)
        except ClientDisconnect:
            pass


class _Refusal(Exception):
    """An HTTP request that gets this status and an error, and is not handled further."""

    def __init__(
        self,
        status: int,
        error: ProtocolError,
        *,
        request_id: int | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.status, self.message, self.headers = status, error_message(request_id, error), dict(headers or {})


class _Exchange:
    """One HTTP request and its response."""

    def __init__(
        self, server: BunkoServer, sessions: ClientSessions | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._server, self._sessions = server, sessions
        self._scope, self._receive, self._send = scope, receive, send
        self._headers = Headers(scope=scope)
        self._session: ClientSession | None = None

    async def handle(self) -> None:
        """Answer it, or raise why not."""
        request, method = HttpRequest(self._scope, self._receive), self._scope["method"]
        version = self._headers.get(_VERSION_HEADER, _DEFAULT_VERSION)
        is_stateless = version not in HANDSHAKE_VERSIONS
        allowed = ["POST"] if is_stateless or self._sessions is None else ["GET", "POST", "DELETE"]
        if method not in allowed:
            error = ProtocolError(INVALID_REQUEST, f"Method Not Allowed: use {', '.join(allowed)}")
            raise _Refusal(405, error, headers={"Allow": ", ".join(allowed)})
        try:
            caller = caller_of(request)
        except AccessDenied as error:
            raise _Refusal(403, ProtocolError(INTERNAL_ERROR, error_text(error))) from error
        if is_stateless:
            await self._answer_stateless(await self._receive_message(request), caller)
        elif method == "POST":
            await self._answer(await self._receive_message(request), caller, version)
        elif method == "GET":
            self._check_accept("text/event-stream")
            await self._tell_changes(self._find_session(caller))
        elif self._sessions is not None:
            self._sessions.end(self._find_session(caller))
            await self.respond(200)

    async def _receive_message(self, request: HttpRequest) -> Request | Notification | Response:
        """Return the message in the body, or raise what is wrong with it."""
        length, body = self._headers.get("content-length", ""), bytearray()
        announced = int(length) if length.isdecimal() else 0
        if announced <= MAX_BODY_BYTES:
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    break
        if max(announced, len(body)) > MAX_BODY_BYTES:
            error = ProtocolError(INVALID_REQUEST, f"A request may have {MAX_BODY_BYTES:,} bytes at most")
            raise _Refusal(413, error, headers={"Connection": "close"})
        self._check_accept("application/json", "text/event-stream")
        if not self._headers.get("content-type", "").lower().startswith("application/json"):
            raise _Refusal(415, ProtocolError(INVALID_REQUEST, "Content-Type must be application/json"))
        try:
            return parse_message(body.decode())
        except UnicodeDecodeError as error:
            raise _Refusal(400, ProtocolError(PARSE_ERROR, "Parse error: the body is not UTF-8")) from error
        except ProtocolError as error:
            raise _Refusal(400, error, request_id=error.request_id) from error

    def _check_accept(self, *wanted: str) -> None:
        accepted = {part.partition(";")[0].strip().lower() for part in self._headers.get("accept", "").split(",")}
        for media_type in wanted:
            if accepted.isdisjoint({media_type, f"{media_type.partition('/')[0]}/*", "*/*"}):
                raise _Refusal(406, ProtocolError(INVALID_REQUEST, f"Accept must name {' and '.join(wanted)}"))

    # The newer era: each request stands for itself.

    async def _answer_stateless(self, message: Request | Notification | Response, caller: Caller) -> None:
        try:
            if isinstance(message, Request):
                self._check_routing_headers(message)
                version = check_version(read_envelope(message)[VERSION_KEY])
            else:
                check_version(self._headers[_VERSION_HEADER])
        except ProtocolError as error:
            request_id = message.id if isinstance(message, Request) else None
            raise _Refusal(_STATUSES[error.code], error, request_id=request_id) from error
        if isinstance(message, Response):
            raise _Refusal(400, ProtocolError(INVALID_REQUEST, "This server asks its clients nothing"))
        if isinstance(message, Notification):  # clients cancel by closing their stream; others mean nothing here
            await self.respond(202)
            return
        await self._reply(
            message,
            lambda send: asyncio.create_task(answer(self._server, ClientCall(message, version, caller, send))),
            statuses=_STATUSES,
        )

    def _check_routing_headers(self, message: Request) -> None:
        """Refuse a request whose headers, by which a proxy may have chosen this server, say something else."""
        values: dict[str, object] = {_VERSION_HEADER: read_envelope(message)[VERSION_KEY]}
        values[_METHOD_HEADER] = message.method
        if (name := message.params.get(_NAME_PARAMS.get(message.method, ""))) is not None:
            values[_NAME_HEADER] = name
        for header in (_VERSION_HEADER, _METHOD_HEADER, _NAME_HEADER):
            given = self._headers.getlist(header)
            if len(given) > 1:
                raise ProtocolError(_HEADER_MISMATCH, f"The header {header} is there more than once")
            if header in values and (not given or _decode_header(given[0]) != values[header]):
                raise ProtocolError(_HEADER_MISMATCH, f"The header {header} does not say what the request says")

    # The older era: a session begins with a handshake.

    async def _answer(self, message: Request | Notification | Response, caller: Caller, version: str) -> None:
        if self._sessions is None:
            connection = ClientConnection(self._server, version=version)
        elif isinstance(message, Request) and message.method == "initialize" and _SESSION_HEADER not in self._headers:
            await self._open_session(self._sessions, message, caller)
            return
        else:
            self._session = self._find_session(caller)
            connection = self._session.connection
        if not isinstance(message, Request):
            connection.receive(message)
            await self.respond(202)
            return
        await self._reply(message, lambda send: connection.start(message, caller, send))

    async def _open_session(self, sessions: ClientSessions, message: Request, caller: Caller) -> None:
        connection = ClientConnection(self._server)
        reply = connection.shake_hands(message)
        if connection.version:
            self._session = sessions.open(caller, connection)
            if self._session is None:
                raise _Refusal(
                    503, ProtocolError(INTERNAL_ERROR, "Too many open sessions"), headers={"Retry-After": "5"}
                )
        await self.respond(200, reply)

    def _find_session(self, caller: Caller) -> ClientSession:
        session_id = self._headers.get(_SESSION_HEADER)
        if session_id is None:
            raise _Refusal(400, ProtocolError(INVALID_REQUEST, f"The header {_SESSION_HEADER} is missing"))
        session = self._sessions.find(session_id, caller) if self._sessions is not None else None
        if session is None:
            raise _Refusal(404, ProtocolError(INVALID_REQUEST, "Session not found"))
        return session

    async def _tell_changes(self, session: ClientSession) -> None:
        """Notify a client in its session until it goes or the session ends."""
        if session.is_listening:
            raise _Refusal(409, ProtocolError(INVALID_REQUEST, "This session listens already"))
        self._session, session.is_listening = session, True
        try:
            with (
                session.serve_request(),
                self._server.listen_to_all() as listener,
            ):
                await self._begin_stream()
                works = (self._send_changes(listener), self._wait_until_gone(), session.ended.wait())
                tasks = [asyncio.create_task(work) for work in works]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()
            await self._send_part(b"", is_last=True)
        finally:
            session.is_listening = False

    async def _send_changes(self, listener: Listener) -> None:
        while True:
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    event = _encode_event(notification_message(await listener.next()))
            except TimeoutError:
                event = _PING
            await self._send_part(event)

    # Both

    async def _reply(
        self,
        request: Request,
        start: Callable[[SendMessage], asyncio.Task[Message] | Message],
        *,
        statuses: Mapping[int, int] | None = None,
    ) -> None:
        """Send the reply to a request, and before it what is sent as part of this request."""
        events = _Events()
        reply = start(events.put)
        if not isinstance(reply, asyncio.Task):
            await self.respond(200, reply)
            return
        reply.add_done_callback(lambda _: events.finish())
        try:
            with self._session.serve_request() if self._session is not None else nullcontext():
                await self._send_events(request, reply, events, statuses or {})
        finally:
            events.close()
            if self._session is None:  # in a session, what was asked goes on, as the older era wants it
                reply.cancel()

    async def _send_events(
        self, request: Request, reply: asyncio.Task[Message], events: _Events, statuses: Mapping[int, int]
    ) -> None:
        event = await events.next(STREAM_AFTER_SECONDS)
        if event is None:
            message = _reply_of(reply, request)
            await self.respond(statuses.get(message.get("error", {}).get("code"), 200), message)
            return
        watching = asyncio.create_task(self._wait_until_gone())
        watching.add_done_callback(lambda _: events.finish())
        try:
            await self._begin_stream()
            while event is not None:
                await self._send_part(event)
                event = await events.next(_PING_SECONDS)
            if reply.done():
                await self._send_part(_encode_event(_reply_of(reply, request)), is_last=True)
        finally:
            watching.cancel()

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self, status: int, message: Message | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a response that is no stream."""
        all_headers = dict(headers or {}) | {name.decode(): value.decode() for name, value in self._session_header()}
        if message is None:
            response = HttpResponse(None, status, all_headers)
        else:
            response = HttpResponse(encode_message(message), status, all_headers, "application/json")
        await response(self._scope, self._receive, self._send)

    async def _begin_stream(self) -> None:
        headers = [*_STREAM_HEADERS, *self._session_header()]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    def _session_header(self) -> list[tuple[bytes, bytes]]:
        return [(_SESSION_HEADER.encode(), self._session.id.encode())] if self._session is not None else []

    async def _send_part(self, part: bytes, *, is_last: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": not is_last})


class _Events:
    """What is sent to a client as part of a request, at most a few messages ahead of its reading."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()  # None: nothing more is to be sent
        self._room = asyncio.Semaphore(_MAX_WAITING_EVENTS)
        self._is_open = True

    async def put(self, message: Message) -> None:
        """Add a message, and wait for room; after its reader has gone, it is dropped."""
        if self._is_open:
            await self._room.acquire()
            self._queue.put_nowait(message)

    async def next(self, seconds: float) -> bytes | None:
        """Return what to send next, after this time a sign of life, or None at the end."""
        try:
            async with asyncio.timeout(seconds):
                message = await self._queue.get()
        except TimeoutError:
            return _PING
        self._room.release()
        return _encode_event(message) if message is not None else None

    def finish(self) -> None:
        """Let the reader know that nothing more comes, or that its reader has gone."""
        self._queue.put_nowait(None)

    def close(self) -> None:
        """End all waits for room."""
        self._is_open = False
        for _ in range(_MAX_WAITING_EVENTS):
            self._room.release()


def _reply_of(task: asyncio.Task[Message], request: Request) -> Message:
    if task.cancelled():
        return error_message(request.id, ProtocolError(_CANCELLED, "Request cancelled"))
    return task.result()


def _encode_event(message: Message) -> bytes:
    return b"event: message\r\ndata: " + encode_message(message) + b"\r\n\r\n"


def _decode_header(text: str) -> str | None:
    """Return what a header says, which may be encoded because headers are ASCII; None if it is garbled."""
    match = _ENCODED_HEADER.fullmatch(text)
    if match is None:
        return text
    try:
        content = base64.b64decode(match[1], validate=True)
        return content.decode() if base64.b64encode(content).decode() == match[1] else None
    except (binascii.Error, ValueError):
        return None
