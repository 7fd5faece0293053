"""Remember for a moment which services failed, so that the next search does not wait for them again."""

from __future__ import annotations

import time
from contextlib import suppress
from hashlib import blake2b

from bunko.embedders.embed import as_remote
from bunko.errors import BunkoError
from bunko.protocols import Embedder, Store

# How long a service that failed is left alone by searches; imports that a person starts try it at once.
PAUSE_SECONDS = 30.0
_CACHE_KIND = "outage"
_MAX_CACHED = 20


class Outages:
    """The embedding services that failed a moment ago, in this process or in another one with the same library."""

    def __init__(self, store: Store, *, read_only: bool) -> None:
        self._store, self._read_only = store, read_only
        self._reasons: dict[bytes, tuple[float, str]] = {}  # when each pause ends, and why

    def reason(self, embedder: Embedder) -> str:
        """Return why an embedder is left alone for now, or an empty string."""
        if not embedder.is_remote:
            return ""
        now = time.time()
        until, reason = self._reasons.get(_key(embedder), (0.0, ""))
        if now < until <= now + PAUSE_SECONDS:
            return reason
        return self._store.cache.cached_answer(_CACHE_KIND, _key(embedder), now) or ""

    def begin(self, embedder: Embedder, reason: str) -> None:
        """Record that an embedder failed."""
        if embedder.is_remote:
            self._reasons[_key(embedder)] = time.time() + PAUSE_SECONDS, reason
            self._share(embedder, reason, PAUSE_SECONDS)

    def end(self, embedder: Embedder) -> None:
        """Record that an embedder works."""
        if self._reasons.pop(_key(embedder), None) or self.reason(embedder):
            self._share(embedder, "", 0.0)

    def _share(self, embedder: Embedder, reason: str, seconds: float) -> None:
        """Tell other processes; one that does not hear of it tries the service itself."""
        if self._read_only:
            return
        now = time.time()
        with suppress(BunkoError):
            self._store.cache.cache_answer(
                _CACHE_KIND, _key(embedder), reason, now=now, expires_at=now + seconds, limit=_MAX_CACHED
            )


def _key(embedder: Embedder) -> bytes:
    # With another address or key it is another service.
    remote = as_remote(embedder)
    identity = remote.identity if remote else embedder.label
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).digest()
