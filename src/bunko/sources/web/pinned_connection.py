"""Connect only to addresses that the guard has checked, which prevents DNS rebinding."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import httpcore2
from httpcore2 import SOCKET_OPTION, ConnectTimeout, NetworkBackend, NetworkStream, SyncBackend

from bunko.runtime.deadlines import DeadlineStream, RequestState
from bunko.sources.web.ssrf_guard import Guard


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
