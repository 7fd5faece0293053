"""Connections to what was checked: a host goes in, a stream to an address that the guard let through comes out."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable
from time import monotonic
from typing import Any

import httpcore2
from httpcore2 import (
    SOCKET_OPTION,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
    WriteTimeout,
)

from bunko.sources.web.ssrf_guard import Guard


class RequestState(threading.local):
    """The deadline of the exchange that this thread is in, and whether it had to connect for it."""

    deadline = 0.0
    connected = False

    def remaining_seconds(self, timeout_error: type[Exception]) -> float:
        """Return the seconds that are left, or raise."""
        left = self.deadline - monotonic()
        if left <= 0:
            raise timeout_error("out of time")
        return left


class PinnedBackend(NetworkBackend):
    """Resolves a name once, checks what came and connects to that; the name is still what TLS and Host say."""

    def __init__(self, guard: Guard, state: RequestState, backend: NetworkBackend | None = None) -> None:
        self._guard, self._state = guard, state
        self._backend = backend or SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> NetworkStream:
        """Return a stream to the first checked address that answers."""
        self._state.connected = True
        addresses = self._resolve_addresses(host, port)
        for number, address in enumerate(addresses, start=1):
            # One that swallows packets must leave time for the others.
            patience = self._state.remaining_seconds(ConnectTimeout) / (len(addresses) - number + 1)
            try:
                stream = self._backend.connect_tcp(address, port, patience, local_address, socket_options)
            except (httpcore2.ConnectError, ConnectTimeout):
                if number == len(addresses):
                    raise
            else:
                return DeadlineStream(stream, self._state)
        raise AssertionError("the guard answers at least one address")

    def _resolve_addresses(self, host: str, port: int) -> list[str]:
        # The system's resolver has no timeout of its own, and may try for half a minute.
        found: list[list[str] | BaseException] = []

        def look() -> None:
            try:
                found.append(self._guard.addresses(host, port))
            except BaseException as error:
                found.append(error)

        if host.replace(".", "").isdecimal() or ":" in host:
            return self._guard.addresses(host, port)
        thread = threading.Thread(target=look, name=f"resolve {host}", daemon=True)
        thread.start()
        thread.join(self._state.remaining_seconds(ConnectTimeout))
        if not found:
            raise ConnectTimeout(f"{host} was not resolved in time")
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]


class DeadlineStream(NetworkStream):
    """A stream whose reads and writes all end by the deadline: a server that drips is not waited for."""

    def __init__(self, stream: NetworkStream, state: RequestState) -> None:
        self._stream, self._state = stream, state

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come."""
        return self._stream.read(max_bytes, self._state.remaining_seconds(ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        self._stream.write(buffer, self._state.remaining_seconds(WriteTimeout))

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        """Return the same stream, encrypted, once the server has proved its name."""
        stream = self._stream.start_tls(ssl_context, server_hostname, self._state.remaining_seconds(ConnectTimeout))
        return DeadlineStream(stream, self._state)

    def get_extra_info(self, info: str) -> Any:
        """Return what the stream underneath knows."""
        return self._stream.get_extra_info(info)
