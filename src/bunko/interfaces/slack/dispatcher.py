"""Hand the entries of the outbox to a handler: in order within a thread, side by side across threads."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Protocol

import anyio
import anyio.to_thread

from bunko.errors import BunkoError
from bunko.interfaces.slack.web_api import SlackAway, SlackTokenRejected
from bunko.protocols import OutboxStore
from bunko.types.records import OutboxEntry

_log = logging.getLogger("bunko.slack")

_MAX_LOADED = 1000
POLL_SECONDS = 1.0  # another process of the same bot may add entries, too
FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS = 2.0, 300.0  # before a reply is tried again
_GIVE_UP_SECONDS = 86_400.0  # an answer that comes a day later helps nobody
_PRUNE_SECONDS = 3600.0


class EntryHandler(Protocol):
    """Handles entries of the outbox."""

    async def handle(self, entry: OutboxEntry, *, is_new: bool) -> None:
        """Bring an entry to its end; raise SlackAway if that must be tried again."""


class Dispatcher:
    """Works on the outbox of one bot until it is cancelled."""

    def __init__(self, outbox: OutboxStore, bot: str, handler: EntryHandler, *, keep_seconds: float) -> None:
        self._outbox, self._bot, self._handler, self._keep_seconds = outbox, bot, handler, keep_seconds
        self._wake_event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._busy_threads: set[str] = set()
        self._changed_threads: set[str] = set()  # since the outbox was read, so that what was read of them is outdated
        self._tried: set[str] = set()  # keys; what they say may have been posted
        self._delays: dict[str, tuple[float, float]] = {}  # by thread: the last delay, and when to go on

    def wake(self) -> None:
        """Look at the outbox now; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._wake_event.set)

    async def run(self) -> None:
        """Handle entries as they come; raise SlackTokenRejected if nothing can be posted any more."""
        is_first, next_prune = True, 0.0
        async with anyio.create_task_group() as tasks:
            while True:
                self._wake_event.clear()
                self._changed_threads.clear()
                try:
                    entries = await anyio.to_thread.run_sync(
                        lambda: self._outbox.unfinished(self._bot, limit=_MAX_LOADED)
                    )
                    if time.monotonic() >= next_prune:
                        next_prune = time.monotonic() + _PRUNE_SECONDS
                        await anyio.to_thread.run_sync(self._outbox.prune, time.time() - self._keep_seconds)
                except BunkoError as error:
                    _log.warning("The outbox cannot be read: %s. %s", error.message, error.hint)
                    entries = []
                else:
                    # These may be from before a crash.
                    self._tried |= {entry.key for entry in entries} if is_first else set()
                    is_first = False
                for entry in entries:
                    is_free = entry.thread not in self._busy_threads and entry.thread not in self._changed_threads
                    if is_free and self._is_due(entry.thread):
                        self._busy_threads.add(entry.thread)
                        tasks.start_soon(self._handle, entry)
                with anyio.move_on_after(POLL_SECONDS):
                    await self._wake_event.wait()

    def _is_due(self, thread: str) -> bool:
        return thread not in self._delays or time.monotonic() >= self._delays[thread][1]

    async def _handle(self, entry: OutboxEntry) -> None:
        is_new = entry.key not in self._tried
        self._tried.add(entry.key)
        try:
            await self._handler.handle(entry, is_new=is_new)
            self._delays.pop(entry.thread, None)
            self._tried.discard(entry.key)
        except SlackTokenRejected:
            raise
        except SlackAway as problem:
            await self._postpone(entry, str(problem))
        except BunkoError as error:  # of the library
            await self._postpone(entry, error.message)
        except Exception as error:
            _log.exception("An entry of the outbox was not handled")
            await self._postpone(entry, type(error).__name__)
        finally:
            self._busy_threads.discard(entry.thread)
            self._changed_threads.add(entry.thread)
            self._wake_event.set()

    async def _postpone(self, entry: OutboxEntry, problem: str) -> None:
        last_delay, _ = self._delays.get(entry.thread, (FIRST_DELAY_SECONDS / 2, 0.0))
        delay = min(last_delay * 2, MAX_DELAY_SECONDS)
        self._delays[entry.thread] = delay, time.monotonic() + delay
        if time.time() - entry.created_at < _GIVE_UP_SECONDS:
            _log.warning("A reply is tried again in %g s: %s", delay, problem)
            return
        _log.error("A reply was given up after a day: %s", problem)
        try:
            stored = await anyio.to_thread.run_sync(self._outbox.get, entry.key)
            await anyio.to_thread.run_sync(self._outbox.update, replace(stored or entry, state="failed"))
        except BunkoError as error:
            _log.warning("%s. %s", error.message, error.hint)
