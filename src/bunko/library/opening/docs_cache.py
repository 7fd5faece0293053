"""Keep cached model answers of a library among documents apart from those that somebody else wrote into it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from functools import cached_property

from bunko.errors import SettingsError
from bunko.library.opening.paths import user_data_folder
from bunko.library.opening.user_secret import load_or_create_secret
from bunko.protocols import CacheStore
from bunko.types.records import LoggedSearch


class DocsCache:
    """A cache whose keys depend on a secret of the user: an answer that came with the documents is never found."""

    def __init__(self, cache: CacheStore) -> None:
        self._cache = cache

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
        return self._cache.log_search(query, tool, searched_at, limit=limit)

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""
        return self._cache.logged_searches()

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""
        return self._cache.clear_searches()

    def rename_tool(self, name: str, new_name: str) -> None:
        """Make the logged searches of a tool those of its new name."""
        self._cache.rename_tool(name, new_name)

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        return self._cache.cached_answer(kind, self._own_key(key), now) if self._secret else None

    def cached_answers(self, kind: str, keys: Sequence[bytes], now: float) -> dict[bytes, str]:
        """Return the cached answers that have not expired, by key."""
        if not self._secret:
            return {}
        own_keys = {self._own_key(key): key for key in keys}
        return {own_keys[key]: text for key, text in self._cache.cached_answers(kind, list(own_keys), now).items()}

    def cache_answers(self, kind: str, answers: Mapping[bytes, tuple[str, float]], *, now: float, limit: int) -> None:
        """Cache answers, each with its expiry time, keeping `limit` per kind; wait for other processes."""
        if self._secret:
            own_answers = {self._own_key(key): answer for key, answer in answers.items()}
            self._cache.cache_answers(kind, own_answers, now=now, limit=limit)

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache a model answer, keeping `limit` per kind; return False if it was not cached."""
        return bool(self._secret) and self._cache.cache_answer(
            kind, self._own_key(key), value, now=now, expires_at=expires_at, limit=limit
        )

    @cached_property
    def _secret(self) -> bytes:
        try:
            return load_or_create_secret(user_data_folder() / "cache-key", hint="").encode()
        except SettingsError:  # without a secret nothing is cached
            return b""

    def _own_key(self, key: bytes) -> bytes:
        return hmac.digest(self._secret, key, "sha256")
