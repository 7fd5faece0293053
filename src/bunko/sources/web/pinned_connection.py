"""Connect only to addresses that the guard has checked, which prevents DNS rebinding."""

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
    """The deadline of this thread's current request, and whether it opened a new connection."""

    deadline = 0.0
    connected = False

    def remaining_seconds(self, timeout_error: type[Exception]) -> float:
        """Return the seconds until the deadline, or raise `timeout_error`."""
        remaining = self.deadline - monotonic()
        if remaining <= 0:
            raise timeout_error("the deadline has passed")
        return remaining


class PinnedBackend(NetworkBackend):
    """Resolves a name once, checks the addresses and connects to one; TLS and Host still use the name."""

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
        for attempt, address in enumerate(addresses, start=1):
            # An address that drops packets must leave time for the others.
            attempt_timeout = self._state.remaining_seconds(ConnectTimeout) / (len(addresses) - attempt + 1)
            try:
                stream = self._backend.connect_tcp(address, port, attempt_timeout, local_address, socket_options)
            except (httpcore2.ConnectError, ConnectTimeout):
                if attempt == len(addresses):
                    raise
            else:
                return DeadlineStream(stream, self._state)
        raise AssertionError("the guard returns at least one address")

    def _resolve_addresses(self, host: str, port: int) -> list[str]:
        # The system resolver has no timeout and may try for half a minute.
        results: list[list[str] | BaseException] = []

        def resolve() -> None:
            try:
                results.append(self._guard.addresses(host, port))
            except BaseException as error:
                results.append(error)

        if host.replace(".", "").isdecimal() or ":" in host:
            return self._guard.addresses(host, port)
        thread = threading.Thread(target=resolve, name=f"resolve {host}", daemon=True)
        thread.start()
        thread.join(self._state.remaining_seconds(ConnectTimeout))
        if not results:
            raise ConnectTimeout(f"{host} was not resolved in time")
        if isinstance(results[0], BaseException):
            raise results[0]
        return results[0]


class DeadlineStream(NetworkStream):
    """A stream whose reads and writes end by the deadline, also for a server that sends slowly."""

    def __init__(self, stream: NetworkStream, state: RequestState) -> None:
        self._stream, self._state = stream, state

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the bytes received."""
        return self._stream.read(max_bytes, self._state.remaining_seconds(ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes."""
        self._stream.write(buffer, self._state.remaining_seconds(WriteTimeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        """Return the stream with TLS, after the server certificate is verified."""
        stream = self._stream.start_tls(ssl_context, server_hostname, self._state.remaining_seconds(ConnectTimeout))
        return DeadlineStream(stream, self._state)

    def get_extra_info(self, info: str) -> Any:
        """Return extra information of the underlying stream."""
        return self._stream.get_extra_info(info)
