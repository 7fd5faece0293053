"""Tell clients what happens: the progress of jobs, and that documents have changed."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bunko.errors import BunkoError, LibraryBusy
from bunko.interfaces.worker_threads import Workers

if TYPE_CHECKING:
    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.types.access import Caller

_log = logging.getLogger("bunko.api")

POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0  # so that proxies and clients see that the stream lives
# A browser shares one stream among all tabs. A client opens it again when it ends.
_MAX_STREAMS, MAX_STREAMS_OF_CALLER, _MAX_STREAM_SECONDS = 100, 30, 3600.0
_RETRY_MILLISECONDS = 3000


@dataclass(slots=True)
class _View:
    """What a caller may know now."""

    jobs: dict[str, str] = field(default_factory=dict)  # as JSON, by id
    state: str = ""
    generation: int = 0


class EventFeed:
    """Looks at the library and its jobs for all streams together, while there are any."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._listeners: Counter[Caller] = Counter()
        self._views: dict[Caller, _View] = {}
        self._looked = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._workers = Workers("looks for events", max_threads=1, max_wait_seconds=10.0)

    def check_room(self, caller: Caller) -> None:
        """Raise an error if there are too many streams."""
        if self._listeners.total() >= _MAX_STREAMS or self._listeners[caller] >= MAX_STREAMS_OF_CALLER:
            raise LibraryBusy("Too many clients listen for events", hint="Close some, or ask for jobs instead.")

    async def stream(self, caller: Caller) -> AsyncIterator[str]:
        """Yield the events that a caller may see, the current state first, until the client goes away."""
        last_view = _View()
        ends_at, sent_at = time.monotonic() + _MAX_STREAM_SECONDS, time.monotonic()
        with self._listening(caller):
            yield f"retry: {_RETRY_MILLISECONDS}\n\n"
            while time.monotonic() < ends_at:
                view = self._views.get(caller)
                events = list(_news(last_view, view)) if view is not None else []
                if view is not None:
                    last_view = view
                if not events and time.monotonic() - sent_at >= HEARTBEAT_SECONDS:
                    events = [": still here\n\n"]
                for event in events:
                    sent_at = time.monotonic()
                    yield event
                await self._looked.wait()

    @contextmanager
    def _listening(self, caller: Caller) -> Iterator[None]:
        self._listeners[caller] += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_again_and_again())
        try:
            yield
        finally:
            self._listeners[caller] -= 1
            if not self._listeners[caller]:
                del self._listeners[caller]
                self._views.pop(caller, None)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look_again_and_again(self) -> None:
        while True:
            try:
                self._views = await self._workers.run(self._look, list(self._listeners))
            except BunkoError as error:  # it may come back
                _log.debug("No events: %s", error.message)
            except Exception:
                _log.exception("Looking for events failed")
            finished_look, self._looked = self._looked, asyncio.Event()
            finished_look.set()
            await asyncio.sleep(POLL_SECONDS)

    def _look(self, callers: list[Caller]) -> dict[Caller, _View]:
        jobs = self._registry.jobs
        views: dict[Caller, _View] = {}
        for caller in callers:
            access = self._registry.access(caller)
            visible = {job.id: _to_json(job.to_dict()) for job in jobs.visible(caller)}
            views[caller] = _View(visible, access.state(), access.generation())
        return views


def _news(last_view: _View, view: _View) -> Iterator[str]:
    if view.state != last_view.state:
        yield _event("generation", _to_json({"generation": view.generation}))
    for job_id, content in view.jobs.items():
        if last_view.jobs.get(job_id) != content:
            yield _event("job", content)


def _event(name: str, content: str) -> str:
    return f"event: {name}\ndata: {content}\n\n"


def _to_json(value: dict[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))  # one line, and ASCII
