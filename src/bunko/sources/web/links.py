"""Links of pages in, those that a crawl takes out: on its site, of its pattern, each once, and not too many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bunko.errors import BunkoError, QueryError
from bunko.sources.web.ssrf_guard import DEFAULT_PORTS, Guard, Target

_MAX_PATTERN_LENGTH = 500
# What a pattern is tried on, by how many times it says .* or .+: each multiplies the time by the length, and no real
# address is so long. A fourth is not tried at all.
_MAX_MATCHED_CHARS = (2000, 2000, 1000, 500)
_PATTERN_PART = re.compile(
    r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\(\?P=\w+\)"  # one character or class
    r"|(?P<open>\((?:\?(?:P?<\w+>|<[=!]|[:=!>]|[a-zA-Z-]+:?))?)|(?P<close>\))|(?P<choice>\|)"
    r"|(?P<times>[*+?]|\{\d*,?\d*\})|(?P<any>\.)|.",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """Where a crawl begins and which links it follows."""

    root: str
    pattern: str = ""  # what the address of a page must hold, as a regular expression
    depth: int = 1  # links away from the root
    max_pages: int = 50
    sitemap: bool = False  # also what the site's sitemaps and its llms.txt name


class LinkFilter:
    """Which links one crawl takes."""

    def __init__(self, guard: Guard, rules: CrawlRules) -> None:
        self.rules, self.site = rules, site_of(guard.target(rules.root))
        self.seen_urls: set[str] = set()
        self.taken_count = self.omitted_count = 0  # how many were, and how many there was no room for
        self._guard, self.matches = guard, matcher(rules.pattern)
        self._seen_links: set[str] = set()

    def take_new_links(self, links: Iterable[str]) -> list[str]:
        """Return the links that are new, on the site and of the pattern, as many as there is room for."""
        found = []
        for link in links:
            if link in self._seen_links:
                continue
            self._seen_links.add(link)
            try:
                target = self._guard.target(link)
            except BunkoError:
                continue  # it cannot be fetched, and a page is not worse for naming it
            url = str(target)
            if site_of(target) != self.site or url in self.seen_urls or not self.matches(url):
                continue
            self.seen_urls.add(url)
            if self.taken_count >= self.rules.max_pages:
                self.omitted_count += 1
                continue
            self.taken_count += 1
            found.append(url)
        return found


def site_of(target: Target) -> str:
    """Return what two pages of one site have in common: the host, with or without www., and an unusual port."""
    host = target.host.removeprefix("www.")
    return host if target.port == DEFAULT_PORTS[target.scheme] else f"{host}:{target.port}"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return the test that a pattern makes; one that is wrong or could take for ever is told of."""
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise QueryError(f"The pattern has {len(pattern)} characters", hint=f"Use at most {_MAX_PATTERN_LENGTH}.")
    explosive, wild = _pattern_cost(pattern)
    if explosive:
        raise QueryError(
            f"The pattern {pattern!r} repeats a group that repeats or chooses something, which could take for ever",
            hint="Write it without the outer repetition.",
        )
    if wild >= len(_MAX_MATCHED_CHARS):
        raise QueryError(f"The pattern {pattern!r} says .* too often", hint="Say it three times at most.")
    tried = _MAX_MATCHED_CHARS[wild]
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise QueryError(
            f"The pattern {pattern!r} is not a regular expression: {error}",
            hint=r"Write \.html$ for addresses that end in .html, or put a backslash before . ? * + ( ) [ ].",
        ) from error
    return lambda url: compiled.search(url[:tried]) is not None


def _pattern_cost(pattern: str) -> tuple[bool, int]:
    """Say whether a group that repeats has more than one way to take the same text, and how often .* is said."""
    ways = [False]  # of each group that is open: whether it holds a repetition or a choice
    closed, wild, last = False, 0, ""  # of the group that just ended; what came last
    for part in _PATTERN_PART.finditer(pattern):
        kind, said = part.lastgroup or "", part[0]
        if kind == "open":
            ways.append(False)
        elif kind == "close" and len(ways) > 1:
            closed = ways.pop()
            ways[-1] = ways[-1] or closed
        elif kind == "choice":
            ways[-1] = True
        elif kind == "times":
            if last == "close" and closed and said not in ("?", "{0,1}", "{1}"):
                return True, wild
            wild += last == "any" and said != "?"
            ways[-1] = ways[-1] or re.fullmatch(r"\{\d+\}", said) is None
        last = kind
    return False, wild
