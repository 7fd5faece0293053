"""Send the progress of a call to its client, without making the call wait for the client."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

_log = logging.getLogger("bunko.mcp")

MIN_SECONDS = 0.2  # between two reports
_MAX_WAITING_REPORTS = 16  # more are dropped: the client reads slowly


class ProgressReports:
    """The reports of one call, from its thread to its client; most calls have none, so the first starts the sending."""

    def __init__(self, send: Callable[[float, float, str], Awaitable[None]]) -> None:
        self._send, self._loop, self._last_report, self._last_done = send, asyncio.get_running_loop(), 0.0, -1.0
        self._waiting: deque[tuple[float, float, str]] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._is_closed = False

    def report(self, done: float, total: float, message: str) -> None:
        """Report from the thread of the call; it never waits. MCP allows only numbers that grow."""
        now = time.monotonic()
        if done > self._last_done and (now - self._last_report >= MIN_SECONDS or done == total):
            self._last_report, self._last_done = now, done
            with suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._put, (done, total, message))

    def _put(self, report: tuple[float, float, str]) -> None:
        if self._is_closed or len(self._waiting) >= _MAX_WAITING_REPORTS:
            return
        self._waiting.append(report)
        if self._sender is None or self._sender.done():
            self._sender = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        while self._waiting:
            try:
                await self._send(*self._waiting.popleft())
            except Exception:  # the client has gone; the call ends by itself
                _log.debug("A progress report was not sent", exc_info=True)

    async def send_waiting(self) -> None:
        """Take no more reports, and send those that wait."""
        self._is_closed = True
        if self._sender is not None:
            await self._sender

    def stop(self) -> None:
        """Send nothing more: the call was cancelled."""
        self._is_closed = True
        if self._sender is not None:
            self._sender.cancel()
