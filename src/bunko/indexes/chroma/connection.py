"""Connect to a server so that a whole request ends in time, also if the server answers byte by byte."""

from __future__ import annotations

from collections.abc import Iterable

from httpcore2 import SOCKET_OPTION, ConnectTimeout, NetworkBackend, NetworkStream, SyncBackend

from bunko.sources.web.pinned_connection import DeadlineStream, RequestState


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
