"""Check URLs for malware and phishing with Google Safe Browsing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any, Self

from bunko.errors import AddressRefused, FetchFailed, SettingsError
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.site_cache import SiteCache
from bunko.sources.web.ssrf_guard import Guard, InvalidUrl, display_url, parse_url

log = logging.getLogger(__name__)

BASE_URL = "https://safebrowsing.googleapis.com"
_BATCH_SIZE = 500  # the maximum of one lookup
_HINT = "Check the key and its quota, or disable the lookups with safety.url_check."


class SafeBrowsing:
    """Looks URLs up (v4, threatMatches:find) and caches the results, safe or not, for `ttl` seconds.

    The key is sent in a header, so that it appears in no log of URLs. If the service does not answer, `fail_open`
    treats the URLs as safe, with a warning; otherwise FetchFailed is raised.
    """

    def __init__(
        self,
        key: str,
        cache: SiteCache | None = None,
        *,
        ttl: float = 300.0,
        timeout: float = 5.0,
        fail_open: bool = True,
        base_url: str = BASE_URL,
    ) -> None:
        self._key, self._ttl, self._fail_open, self._cache = key, ttl, fail_open, cache or SiteCache()
        self._url = f"{base_url.rstrip('/')}/v4/threatMatches:find"
        # It is no page, and may be on a machine of the operator.
        try:
            target = parse_url(base_url)
        except InvalidUrl as error:
            raise SettingsError(
                f"safety.base_url is {display_url(base_url)!r}: {error}", hint=f"Write it like {BASE_URL}."
            ) from None
        host = f"[{target.host}]" if ":" in target.host else target.host
        self._fetcher = Fetcher(Guard((f"{host}:{target.port}",)), agent="bunko", timeout=timeout, connections=4)

    def threats(self, urls: Iterable[str]) -> dict[str, str]:
        """Return the dangerous URLs, each with its threat type, such as MALWARE."""
        distinct = list(dict.fromkeys(urls))
        cached = self._cache.get_many("threat", [self._cache_key(url) for url in distinct])
        threats = {url: cached[key] for url in distinct if (key := self._cache_key(url)) in cached}  # "": none
        unknown = [url for url in distinct if url not in threats]
        for start in range(0, len(unknown), _BATCH_SIZE):
            batch = unknown[start : start + _BATCH_SIZE]
            try:
                fetched = self._fetch_threats(batch)
            except (FetchFailed, AddressRefused) as error:
                if not self._fail_open:
                    raise
                log.warning("Treating %d addresses as safe: %s", len(batch), error.message)
                continue
            threats.update(fetched)
            answers = {self._cache_key(url): threat for url, threat in fetched.items()}
            self._cache.put("threat", answers, expires_at=self._cache.now() + self._ttl)
        return {url: threats[url] for url in distinct if threats.get(url)}

    def close(self) -> None:
        """Close all connections."""
        self._fetcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cache_key(self, url: str) -> bytes:
        return sha256(f"{self._url} {url}".encode("utf-8", "surrogatepass")).digest()

    def _fetch_threats(self, urls: Sequence[str]) -> dict[str, str]:
        query = {
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
            body=json.dumps(query).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json", "x-goog-api-key": self._key},
        )
        if page.status != 200:
            message = self._without_key(_error_message(page.content))
            raise FetchFailed(
                f"Safe Browsing answered {page.status}{f': {message}' if message else ''}",
                hint=_HINT,
                status=page.status,
                retry_after=page.retry_after,
            )
        threats = dict.fromkeys(urls, "")
        try:
            for match in _parse_object(page.content).get("matches", []):
                url, threat = match["threat"]["url"], str(match["threatType"])
                if url not in threats:
                    raise ValueError("it contains an address that was not requested")
                threats[url] = threat or "UNKNOWN"
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise FetchFailed(f"The response of Safe Browsing cannot be parsed: {error}", hint=_HINT) from None
        return threats

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


def _parse_object(content: bytes) -> dict[str, Any]:
    parsed = json.loads(content)
    if not isinstance(parsed, dict):
        raise ValueError("it is not an object")
    return parsed


def _error_message(content: bytes) -> str:
    """Return the message of a Google API error, or an empty string."""
    try:
        return str(_parse_object(content)["error"]["message"])[:200]
    except (ValueError, LookupError, TypeError):
        return ""
