"""Send the progress of a call to its client, without making the call wait for the client."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

_log = logging.getLogger("bunko.mcp")

_MIN_SECONDS = 0.2  # between two reports
_MAX_WAITING_REPORTS = 16  # more are dropped: the client reads slowly


class ProgressReports:
    """The reports of one call, from its thread to its client."""

    def __init__(self, send: Callable[[float, float, str], Awaitable[None]]) -> None:
        self._send, self._loop, self._last_report, self._last_done = send, asyncio.get_running_loop(), 0.0, -1.0
        self._queue, self._waiting = anyio.create_memory_object_stream[tuple[float, float, str]](_MAX_WAITING_REPORTS)

    def report(self, done: float, total: float, message: str) -> None:
        """Report from the thread of the call; it never waits. MCP allows only numbers that grow."""
        now = time.monotonic()
        if done > self._last_done and (now - self._last_report >= _MIN_SECONDS or done == total):
            self._last_report, self._last_done = now, done
            with suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._put, (done, total, message))

    def _put(self, report: tuple[float, float, str]) -> None:
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._queue.send_nowait(report)

    async def send_all(self) -> None:
        """Send reports until the call ends."""
        with self._waiting:
            async for report in self._waiting:
                try:
                    await self._send(*report)
                except Exception:  # the client has gone; the call ends by itself
                    _log.debug("A progress report was not sent", exc_info=True)

    def close(self) -> None:
        """Take no more reports; those that wait are still sent."""
        self._queue.close()
