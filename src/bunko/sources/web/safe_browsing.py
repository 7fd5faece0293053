"""Google Safe Browsing: URLs go in, those known for malware or phishing come out with the kind of threat."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, Self

from bunko.errors import AddressRefused, FetchFailed
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.ssrf_guard import Guard

log = logging.getLogger(__name__)

BASE_URL = "https://safebrowsing.googleapis.com"
_BATCH_SIZE = 500  # the most that one lookup takes
_MAX_CACHED = 20_000
_HINT = "Check the key and its quota, or switch the lookups off with safety.url_check."


class SafeBrowsing:
    """Looks URLs up (v4, threatMatches:find) and remembers the answers, good and bad, for `ttl` seconds.

    The key travels in a header, so that no log of addresses holds it. When the service does not answer, `fail_open`
    takes the URLs for safe, with a warning; otherwise it is FetchFailed.
    """

    def __init__(
        self,
        key: str,
        *,
        ttl: float = 300.0,
        timeout: float = 5.0,
        fail_open: bool = True,
        base_url: str = BASE_URL,
        guard: Guard | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._key, self._ttl, self._fail_open, self._now = key, ttl, fail_open, now
        self._url = f"{base_url.rstrip('/')}/v4/threatMatches:find"
        self._fetcher = Fetcher(guard or Guard(), agent="bunko", timeout=timeout, connections=4)
        self._cache: dict[str, tuple[float, str]] = {}  # URL → until when, and the threat ("": none)
        self._lock = Lock()

    def threats(self, urls: Iterable[str]) -> dict[str, str]:
        """Return the URLs that are a threat, each with its kind, such as MALWARE."""
        asked = list(dict.fromkeys(urls))
        with self._lock:
            now = self._now()
            known = {url: self._cache[url][1] for url in asked if url in self._cache and self._cache[url][0] > now}
        unknown = [url for url in asked if url not in known]
        for start in range(0, len(unknown), _BATCH_SIZE):
            batch = unknown[start : start + _BATCH_SIZE]
            try:
                found = self._fetch_threats(batch)
            except (FetchFailed, AddressRefused) as error:
                if not self._fail_open:
                    raise
                log.warning("%d addresses are taken as safe. %s", len(batch), error.message)
                continue
            known.update(found)
            self._cache_threats(found)
        return {url: known[url] for url in asked if known.get(url)}

    def close(self) -> None:
        """Hang up."""
        self._fetcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cache_threats(self, threats: dict[str, str]) -> None:
        with self._lock:
            until = self._now() + self._ttl
            if len(self._cache) + len(threats) > _MAX_CACHED:
                self._cache.clear()
            self._cache.update((url, (until, threat)) for url, threat in threats.items())

    def _fetch_threats(self, urls: Sequence[str]) -> dict[str, str]:
        question = {
            "client": {"clientId": "bunko", "clientVersion": "1"},
            "threatInfo": {
                "threatTypes": [
                    "MALWARE", "SOCIAL_ENGINEERING", "UNWANTED_SOFTWARE", "POTENTIALLY_HARMFUL_APPLICATION"
                ],
                "platformTypes": ["ANY_PLATFORM"],
                "threatEntryTypes": ["URL"],
                "threatEntries": [{"url": url} for url in urls],
            },
        }  # fmt: skip
        page = self._fetcher.request(
            self._url,
            body=json.dumps(question).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json", "x-goog-api-key": self._key},
        )
        if page.status != 200:
            said = self._without_key(_error_message(page.content))
            raise FetchFailed(
                f"Safe Browsing answered {page.status}{f': {said}' if said else ''}",
                hint=_HINT,
                status=page.status,
                retry_after=page.retry_after,
            )
        found = dict.fromkeys(urls, "")
        try:
            for match in _parse_object(page.content).get("matches", []):
                url, threat = match["threat"]["url"], str(match["threatType"])
                if url not in found:
                    raise ValueError("it is about an address that was not asked for")
                found[url] = threat or "UNKNOWN"
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise FetchFailed(f"The answer of Safe Browsing cannot be read: {error}", hint=_HINT) from None
        return found

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


def _parse_object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def _error_message(content: bytes) -> str:
    """Return what an error of Google's APIs says, "" if it says nothing."""
    try:
        return str(_parse_object(content)["error"]["message"])[:200]
    except (ValueError, LookupError, TypeError):
        return ""
