"""Read the tokens of a library once for all requests that need them, also while the library is away."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence

from bunko.errors import BunkoError, LibraryUnreachable
from bunko.interfaces.worker_threads import Workers
from bunko.types.access import Token

FRESH_SECONDS = 1.0  # how soon a revoked token is refused, and a failure forgotten
_GRACE_SECONDS = 60.0  # how long tokens count that cannot be read again
_MAX_WAIT_SECONDS = 4.5  # for a read; a load balancer waits for five or ten
_KNOWN_WAIT_SECONDS = 1.0  # the same while there are tokens that still count


class TokenLoader:
    """The tokens of a library, as they were at most a second ago while it can be read."""

    def __init__(self, read: Callable[[], list[Token]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._tokens: list[Token] = []
        self._read_at = self._failed_at = -math.inf
        self._error: BunkoError | None = None
        self._reading: asyncio.Task[None] | None = None
        self._workers = Workers("reads of tokens", max_threads=1, max_wait_seconds=_MAX_WAIT_SECONDS)

    async def find(self, find: Callable[[Sequence[Token]], Token | None]) -> Token | None:
        """Return the token that a function finds; raise why tokens cannot be read unless it was known not long ago."""
        if self._clock() - max(self._read_at, self._failed_at) >= FRESH_SECONDS:
            await self._wait_for_read()
        token = find(self._tokens)
        if self._error is not None and (token is None or self._clock() - self._read_at >= _GRACE_SECONDS):
            raise self._error
        return token

    async def _wait_for_read(self) -> None:
        """Wait for the read that is running, or for a new one: a client that goes away does not end it."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_once())
        seconds = _KNOWN_WAIT_SECONDS if self._clock() - self._read_at < _GRACE_SECONDS else _MAX_WAIT_SECONDS
        done, _ = await asyncio.wait({self._reading}, timeout=seconds)
        if done:
            self._reading.result()  # a bug of ours is raised
        else:
            self._note(LibraryUnreachable("The library does not answer", hint="Try again later."))

    async def _read_once(self) -> None:
        started_at = self._clock()
        try:
            self._tokens = await self._workers.run(self._read)
        except BunkoError as error:
            self._note(error)
        else:
            self._error, self._read_at = None, started_at

    def _note(self, error: BunkoError) -> None:
        self._error, self._failed_at = error, self._clock()
