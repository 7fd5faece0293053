"""Connect to servers so that a whole request ends in time, also if a server answers byte by byte."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable
from time import monotonic
from typing import Any

from httpcore2 import (
    SOCKET_OPTION,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
    WriteTimeout,
)


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


class DeadlineBackend(NetworkBackend):
    """Opens connections whose reads and writes end by the deadline of the current request."""

    def __init__(self, state: RequestState) -> None:
        self._state, self._backend = state, SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> NetworkStream:
        """Return a stream to a server."""
        seconds = self._state.remaining_seconds(ConnectTimeout)
        seconds = seconds if timeout is None else min(seconds, timeout)
        stream = self._backend.connect_tcp(host, port, seconds, local_address, socket_options)
        return DeadlineStream(stream, self._state)


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
