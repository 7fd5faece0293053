"""Remember robots.txt, Safe Browsing answers and the pace of each host in the library, across calls and processes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import Literal, Self

from bunko.errors import BunkoError
from bunko.protocols import CacheStore

_log = logging.getLogger("bunko.web")

Kind = Literal["robots", "pace", "threat"]
_LIMITS: dict[Kind, int] = {"robots": 1_000, "pace": 1_000, "threat": 20_000}


class SiteCache:
    """Cached texts by kind and key, in memory and in a store; without one, only in memory.

    Thread-safe. `put` keeps a text in memory and `save` writes it, so that the threads that fetch pages neither wait
    for the disk nor use a store that was closed in the meantime.
    """

    def __init__(self, store: CacheStore | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.now = now  # in seconds since 1970: other processes read it
        self._store = store
        self._lock = Lock()
        self._cached: dict[Kind, dict[bytes, tuple[str, float]]] = {kind: {} for kind in _LIMITS}
        self._unsaved: dict[Kind, dict[bytes, tuple[str, float]]] = {kind: {} for kind in _LIMITS}

    def get(self, kind: Kind, key: bytes) -> str | None:
        """Return a text that has not expired, or None."""
        return self.get_many(kind, [key]).get(key)

    def get_many(self, kind: Kind, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the texts that have not expired, by key."""
        with self._lock:
            now, cached = self.now(), self._cached[kind]
            unknown = [key for key in keys if key not in cached]
            stored = self._store.cached_answers(kind, unknown, now) if self._store is not None and unknown else {}
            known = {key: cached[key][0] for key in keys if key in cached and cached[key][1] > now}
            return known | stored

    def put(self, kind: Kind, texts: Mapping[bytes, str], *, expires_at: float) -> None:
        """Cache texts until a time, in seconds since 1970."""
        with self._lock:
            cached, unsaved = self._cached[kind], self._unsaved[kind]
            for key, text in texts.items():
                cached.pop(key, None)
                cached[key] = unsaved[key] = (text, expires_at)
            while len(cached) > _LIMITS[kind]:
                oldest = next(iter(cached))
                del cached[oldest]
                unsaved.pop(oldest, None)

    def save(self) -> None:
        """Write to the store what is not in it yet; a failure is logged, because a cache may be lost."""
        with self._lock:
            if self._store is None:
                return
            for kind, unsaved in self._unsaved.items():
                if not unsaved:
                    continue
                try:
                    self._store.cache_answers(kind, unsaved, now=self.now(), limit=_LIMITS[kind])
                except BunkoError as error:
                    _log.warning("What was learned about sites was not cached: %s", error.message)
                unsaved.clear()

    def close(self) -> None:
        """Save, and use the store no more."""
        self.save()
        with self._lock:
            self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# A server that asks for a longer pause is not retried.
MAX_PAUSE_SECONDS = 60.0


class CrawlStopped(Exception):
    """The crawl was stopped."""


class HostPacer:
    """Lets threads wait for their turn to send a request to a host; `stop` wakes them all."""

    def __init__(self, cache: SiteCache | None = None) -> None:
        self.stop = threading.Event()
        self._cache = cache or SiteCache()
        self._lock = threading.Lock()
        self._next_turn: dict[str, float] = {}  # in the time of this process
        self._saved_turn: dict[str, float] = {}  # in seconds since 1970, for other processes

    def wait_turn(self, host: str, delay: float) -> None:
        """Wait until the next request to a host may start; raise CrawlStopped if the crawl is stopped first."""
        with self._lock:
            if host not in self._next_turn:
                self._next_turn[host] = time.monotonic() + self.saved_pause(host, delay)
            turn = max(time.monotonic(), self._next_turn[host])
            self._next_turn[host] = turn + delay
        if self.stop.wait(max(0.0, turn - time.monotonic())):
            raise CrawlStopped
        self._save_pause(host, delay)

    def pause_host(self, host: str, seconds: float) -> None:
        """Send no request to a host for some seconds."""
        with self._lock:
            self._next_turn[host] = max(self._next_turn.get(host, 0.0), time.monotonic() + seconds)
        self._save_pause(host, seconds)

    def saved_pause(self, host: str, delay: float) -> float:
        """Return the seconds until the turn that an earlier call or another process left."""
        text = self._cache.get("pace", host.encode())
        try:
            pause = float(text) - self._cache.now() if text else 0.0
        except ValueError:
            return 0.0
        # Longer than any pause that is saved: the clock was set back.
        return max(0.0, min(pause, max(delay, MAX_PAUSE_SECONDS)))

    def _save_pause(self, host: str, seconds: float) -> None:
        with self._lock:
            turn = self._cache.now() + seconds
            if seconds and turn > self._saved_turn.get(host, 0.0):
                self._saved_turn[host] = turn
                self._cache.put("pace", {host.encode(): repr(turn)}, expires_at=turn)
