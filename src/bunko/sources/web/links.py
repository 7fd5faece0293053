"""Select the links that a crawl follows: on its site, matching its pattern, each once, up to a limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bunko.errors import BunkoError, QueryError
from bunko.sources.web.ssrf_guard import DEFAULT_PORTS, Guard, Target

_MAX_PATTERN_LENGTH = 500
# Characters that a pattern is matched against, by its number of .* and .+: each multiplies the time by the length, and
# real addresses are shorter. A pattern with four is rejected.
_MAX_MATCHED_CHARS = (2000, 2000, 1000, 500)
_PATTERN_PART = re.compile(
    r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\(\?P=\w+\)"  # one character or class
    r"|(?P<open>\((?:\?(?:P?<\w+>|<[=!]|[:=!>]|[a-zA-Z-]+:?))?)|(?P<close>\))|(?P<choice>\|)"
    r"|(?P<times>[*+?]|\{\d*,?\d*\})|(?P<any>\.)|.",
    re.DOTALL,
)


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
        self._seen_links: set[str] = set()

    def take_new_links(self, links: Iterable[str]) -> list[str]:
        """Return the links that are new, on the site and match the pattern, up to the maximum number of pages."""
        urls = []
        for link in links:
            if link in self._seen_links:
                continue
            self._seen_links.add(link)
            try:
                target = self._guard.target(link)
            except BunkoError:
                continue  # a link that cannot be fetched is not a problem of the page
            url = str(target)
            if site_of(target) != self.site or url in self.seen_urls or not self.matches(url):
                continue
            self.seen_urls.add(url)
            if self.taken_count >= self.rules.max_pages:
                self.omitted_count += 1
                continue
            self.taken_count += 1
            urls.append(url)
        return urls


def site_of(target: Target) -> str:
    """Return a key that all pages of a site share: the host without www., and the port if it is not the default."""
    host = target.host.removeprefix("www.")
    return host if target.port == DEFAULT_PORTS[target.scheme] else f"{host}:{target.port}"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches URLs; raise QueryError on a pattern that is invalid or could take forever."""
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise QueryError(f"The pattern has {len(pattern)} characters", hint=f"Use at most {_MAX_PATTERN_LENGTH}.")
    is_explosive, wildcards = _pattern_cost(pattern)
    if is_explosive:
        raise QueryError(
            f"The pattern {pattern!r} repeats a group with a repetition or alternatives, which could take forever",
            hint="Write it without the outer repetition.",
        )
    if wildcards >= len(_MAX_MATCHED_CHARS):
        raise QueryError(f"The pattern {pattern!r} has too many .*", hint="Use .* at most three times.")
    max_chars = _MAX_MATCHED_CHARS[wildcards]
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise QueryError(
            f"The pattern {pattern!r} is not a regular expression: {error}",
            hint=r"Write \.html$ for addresses that end in .html, and put a backslash before . ? * + ( ) [ ].",
        ) from error
    return lambda url: compiled.search(url[:max_chars]) is not None


def _pattern_cost(pattern: str) -> tuple[bool, int]:
    """Return whether a repeated group can match the same text in several ways, and the number of .* in a pattern."""
    ambiguous = [False]  # for each open group: whether it contains a repetition or alternatives
    closed_ambiguous = False  # the same, for the group that was closed last
    wildcards, last_kind = 0, ""
    for part in _PATTERN_PART.finditer(pattern):
        kind, text = part.lastgroup or "", part[0]
        if kind == "open":
            ambiguous.append(False)
        elif kind == "close" and len(ambiguous) > 1:
            closed_ambiguous = ambiguous.pop()
            ambiguous[-1] = ambiguous[-1] or closed_ambiguous
        elif kind == "choice":
            ambiguous[-1] = True
        elif kind == "times":
            if last_kind == "close" and closed_ambiguous and text not in ("?", "{0,1}", "{1}"):
                return True, wildcards
            wildcards += last_kind == "any" and text != "?"
            ambiguous[-1] = ambiguous[-1] or re.fullmatch(r"\{\d+\}", text) is None
        last_kind = kind
    return False, wildcards
