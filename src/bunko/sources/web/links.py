"""Select the links that a crawl follows: on its site, matching its pattern, each once, up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from threading import Event

from bunko.errors import BunkoError, QueryError
from bunko.runtime.package_errors import package_errors
from bunko.sources.web.pace import CrawlStopped
from bunko.sources.web.ssrf_guard import DEFAULT_PORTS, Guard, Target

_MAX_PATTERN_LENGTH = 500
_MAX_PATTERN_MEMORY = 1 << 20  # bytes; bounds how large a pattern becomes when its repetitions are written out
_MAX_MATCHED_CHARS = 2000  # the slowest patterns take 50 ms for an address of this length; real ones are shorter
_SYNTAX_URL = "https://github.com/google/re2/wiki/Syntax"


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """Where a crawl starts and which links it follows."""

    root: str
    pattern: str = ""  # regular expression that the address of a page must match
    depth: int = 1  # links away from the root
    max_pages: int = 50
    sitemap: bool = False  # also follow the links in the site's sitemaps and llms.txt


class LinkFilter:
    """Selects the links of one crawl."""

    def __init__(self, guard: Guard, rules: CrawlRules) -> None:
        self.rules, self.site = rules, site_of(guard.target(rules.root))
        self.seen_urls: set[str] = set()
        self.taken_count = self.omitted_count = 0  # links followed, and links dropped because of max_pages
        self._guard, self.matches = guard, matcher(rules.pattern)
        self._urls: dict[str, str] = {}  # link → its URL, or "" if it is not followed

    def matching_urls(self, links: Iterable[str], stop: Event) -> list[str]:
        """Return the URLs of the links that are on the site and match the pattern; thread-safe.

        A page may have many links and a pattern may be slow: raise CrawlStopped if `stop` is set meanwhile.
        """
        urls: dict[str, None] = {}
        for link in links:
            if stop.is_set():
                raise CrawlStopped
            if (url := self._urls.get(link)) is None:
                url = self._urls[link] = self._matching_url(link)
            if url:
                urls[url] = None
        return list(urls)

    def unseen_urls(self, urls: Iterable[str]) -> list[str]:
        """Return the URLs that `take_new_urls` would return now."""
        room = max(0, self.rules.max_pages - self.taken_count)
        return list(islice((url for url in urls if url not in self.seen_urls), room))

    def take_new_urls(self, urls: Iterable[str]) -> list[str]:
        """Return the URLs that are new, up to the maximum number of pages."""
        new_urls = []
        for url in urls:
            if url in self.seen_urls:
                continue
            self.seen_urls.add(url)
            if self.taken_count >= self.rules.max_pages:
                self.omitted_count += 1
                continue
            self.taken_count += 1
            new_urls.append(url)
        return new_urls

    def _matching_url(self, link: str) -> str:
        try:
            target = self._guard.target(link)
        except BunkoError:
            return ""  # a link that cannot be fetched is not a problem of the page
        url = str(target)
        return url if site_of(target) == self.site and self.matches(url) else ""


def site_of(target: Target) -> str:
    """Return a key that all pages of a site share: the host without www., and the port if it is not the default."""
    host = target.host.removeprefix("www.")
    return host if target.port == DEFAULT_PORTS[target.scheme] else f"{host}:{target.port}"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches URLs; raise QueryError on a pattern that is invalid or not supported.

    RE2 matches in time proportional to the length of the URL, for any pattern, and lets other threads run.
    """
    if not pattern:
        return lambda url: True
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise QueryError(f"The pattern has {len(pattern)} characters", hint=f"Use at most {_MAX_PATTERN_LENGTH}.")
    with package_errors("google-re2"):
        import re2

        options = re2.Options()
        options.log_errors, options.never_capture, options.max_mem = False, True, _MAX_PATTERN_MEMORY
        try:
            compiled = re2.compile(pattern, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise _pattern_error(pattern, error) from error
        compiled.search("")  # what cannot work fails here
    return lambda url: compiled.search(url[:_MAX_MATCHED_CHARS]) is not None


def _pattern_error(pattern: str, error: Exception) -> QueryError:
    reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
    if reason.startswith(("invalid perl operator", "invalid escape sequence", "bad repetition operator")):
        part = reason.partition(": ")[2]
        return QueryError(
            f"The pattern {pattern!r} contains {part}, which is not supported",
            hint="Look-ahead, look-behind and back-references can take forever. Write the pattern without them:"
            f" {_SYNTAX_URL}",
        )
    if reason.startswith(("pattern too large", "invalid repetition size")):
        return QueryError(
            f"The pattern {pattern!r} repeats too much", hint="Use smaller numbers in braces, or * and +."
        )
    return QueryError(
        f"The pattern {pattern!r} is not a regular expression: {reason}",
        hint=r"Write \.html$ for addresses that end in .html, and put a backslash before . ? * + ( ) [ ].",
    )
