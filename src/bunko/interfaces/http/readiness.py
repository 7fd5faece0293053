"""Find out whether a server can answer searches now: its store is reachable and its index is usable."""

from __future__ import annotations

import asyncio
import logging
import time

from bunko.errors import BunkoError, IndexFailure, LibraryUnreachable
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.worker_threads import Workers

_log = logging.getLogger("bunko.mcp")

MAX_SECONDS = 3.0  # for an answer; load balancers wait for five or ten
# Anybody may ask, so that asking often must not cost anything.
CACHE_SECONDS = 1.0


class Readiness:
    """The state of a server, checked by one thread at a time."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._workers = Workers("checks", max_threads=1, max_wait_seconds=MAX_SECONDS)
        self._check: asyncio.Task[str] | None = None
        self._checked_at = 0.0
        self._logged = ""

    async def problem(self) -> str:
        """Return why searches cannot be answered, or an empty string; it takes at most some seconds.

        The sentence names no host, path or tool: whoever asks may have no token. The details are logged.
        """
        check = self._check
        if check is None or (check.done() and time.monotonic() - self._checked_at > CACHE_SECONDS):
            check = self._check = asyncio.create_task(self._run_check())
        done, _ = await asyncio.wait({check}, timeout=MAX_SECONDS)
        return check.result() if done else f"The library has not answered within {MAX_SECONDS:.0f} seconds"

    async def _run_check(self) -> str:
        try:
            problem, details = await self._workers.run(self._find_problem)
        except BunkoError as error:
            problem, details = "The library cannot be opened", error_text(error)
        except Exception as error:
            _log.exception("The check of this server failed")
            problem, details = "The check of this server failed", type(error).__name__
        if details != self._logged:
            self._logged = details
            if details:
                _log.warning("This server is not ready: %s", details)
        self._checked_at = time.monotonic()
        return problem

    def _find_problem(self) -> tuple[str, str]:
        """Do what every search does first; return what is wrong, for everybody and for the log."""
        library = self._registry.library()
        try:
            library.maintenance.check_ready()
        except IndexFailure as error:
            return "The index does not answer", error_text(error)
        except LibraryUnreachable as error:
            return "The library does not answer", error_text(error)
        except BunkoError as error:
            return "The library cannot be searched", error_text(error)
        return "", ""
