"""Remember robots.txt, Safe Browsing answers and the pace of each host in the library, across calls and processes."""

from __future__ import annotations

import logging
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
