"""Space the requests to each host by its delay, across calls and processes."""

from __future__ import annotations

import threading
import time

from bunko.sources.web.site_cache import SiteCache

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
