"""Limit the HTTP connections of a server in time and number, so that silent clients do not keep others out."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bunko.interfaces.http.authorization import only_listens
from bunko.interfaces.http.parts import rpc_error

HEADER_SECONDS = 10.0  # for the head of a request, from the connection or its first byte on
NEW_SECONDS = 1.0  # in which a client sends its request: others that wait longer make room before it
BODY_SECONDS = 30.0  # for the rest of a request, which has at most 4 MiB
REFUSED_SECONDS = 2.0  # for the rest of a request that was already refused
LAST_SECONDS = 0.5  # for a request that is on its way when the server ends
STALLED_SECONDS = 60.0  # for a client to read on, or to answer its network
# One assistant needs two or three. Many systems allow a process 1,024 open files.
MAX_CONNECTIONS = 256
# What is asked for is not read, so every part gets the form that MCP clients show.
_BUSY_BODY = rpc_error("Too many open connections. Try again in 5 s.")
_BUSY_RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BUSY_BODY), _BUSY_BODY)
)


class LimitedConnection(H11Protocol):
    """A connection of uvicorn that ends if its client sends nothing, half a request, or does not read.

    At the limit, the connection that has waited longest without a request makes room for a new one, then the oldest
    whose request is not complete or whose client does not read, then the oldest stream that a client only listens to:
    clients open it again. A new connection has a moment to send its request first.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._idle_since = time.monotonic()
        self._phase: tuple[object, float] = (None, 0.0)  # the state of the request, and how long it may last
        self._phase_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._is_ending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for a new connection, or refuse it."""
        has_room = self._make_room()
        super().connection_made(transport)
        if not has_room:
            transport.write(_BUSY_RESPONSE)
            transport.close()
            return
        # asyncio does this only for sockets of its own. Without it, the second part of a reply waits 40 ms for the
        # client to acknowledge the first.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        detect_vanished_client(transport)
        self._watch_request()

    def data_received(self, data: bytes) -> None:
        """Handle what the client sends."""
        super().data_received(data)
        if self._is_ending:
            self._answer_last()
        self._watch_request()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._idle_since = time.monotonic()
        self._watch_request()

    def shutdown(self) -> None:
        """End with the server; a client that only listens opens its stream again when there is a server.

        A load balancer may send a request in this moment, and cannot know that sending it again would do no harm.
        """
        self._is_ending = True
        if self._is_stream():
            self.transport.close()
        elif self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LAST_SECONDS, super().shutdown)
        else:
            self._answer_last()

    def _answer_last(self) -> None:
        """Close the connection after the answer to this request, and say so in it if it has not begun."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            if not cycle.response_started:
                # uvicorn repeats it in the answer.
                cycle.scope["headers"] = [*cycle.scope["headers"], (b"connection", b"close")]

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._watch_request(is_over=True)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give a client that does not read some time."""
        super().pause_writing()
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read on."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    def _watch_request(self, *, is_over: bool = False) -> None:
        """Limit the time for the current part of a request; uvicorn limits only the time between two requests."""
        state, seconds = self.conn.their_state, 0.0
        if is_over or self.transport.is_closing():
            pass
        elif state is h11.IDLE and self.timeout_keep_alive_task is None:
            seconds = HEADER_SECONDS
        elif state is h11.SEND_BODY:
            seconds = REFUSED_SECONDS if self.cycle.response_complete else BODY_SECONDS
        phase = (state, seconds)
        if phase == self._phase:
            return
        if self._phase_timer is not None:
            self._phase_timer.cancel()
            self._phase_timer = None
        self._phase = phase
        if seconds:
            self._phase_timer = self.loop.call_later(seconds, self.transport.abort)

    def _make_room(self) -> bool:
        open_connections = [
            other
            for other in self.connections
            if isinstance(other, LimitedConnection) and not other.transport.is_closing()
        ]
        if len(open_connections) < MAX_CONNECTIONS:
            return True
        idle = [other for other in open_connections if other.cycle is None or other.cycle.response_complete]
        newest = time.monotonic() - NEW_SECONDS
        waiting = [other for other in idle if other._idle_since < newest]
        candidates = (
            waiting
            or [other for other in open_connections if other._is_stuck()]
            or [other for other in open_connections if other._is_stream()]
            or idle
        )
        if not candidates:
            return False
        min(candidates, key=lambda other: other._idle_since).transport.abort()
        return True

    def _is_stuck(self) -> bool:
        """Return whether the client has sent half a request, or does not read its answer."""
        return self.conn.their_state is h11.SEND_BODY or self._stall_timer is not None

    def _is_stream(self) -> bool:
        """Return whether the client only listens: the answer has begun, and goes on."""
        cycle = self.cycle
        is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
        return is_answering and only_listens(self.scope)


def detect_vanished_client(transport: asyncio.Transport) -> None:
    """Let the system end a connection whose client has gone without a word, where it can."""
    connection = transport.get_extra_info("socket")
    options = {
        "TCP_KEEPIDLE": 30,
        "TCP_KEEPINTVL": 10,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": int(STALLED_SECONDS * 1000),
    }
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
