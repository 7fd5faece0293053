"""Links of pages in, those that a crawl takes out: on its site, of its pattern, each once, and not too many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bunko.errors import BunkoError, QueryError
from bunko.sources.web.ssrf_guard import PORTS, Guard, Target

_LONGEST_PATTERN = 500
# What a pattern is tried on, by how many times it says .* or .+: each multiplies the time by the length, and no real
# address is so long. A fourth is not tried at all.
_LONGEST_TRIED = (2000, 2000, 1000, 500)
_PART = re.compile(
    r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\(\?P=\w+\)"  # one character or class
    r"|(?P<open>\((?:\?(?:P?<\w+>|<[=!]|[:=!>]|[a-zA-Z-]+:?))?)|(?P<close>\))|(?P<choice>\|)"
    r"|(?P<times>[*+?]|\{\d*,?\d*\})|(?P<any>\.)|.",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Where a crawl begins and which links it follows."""

    root: str
    pattern: str = ""  # what the address of a page must hold, as a regular expression
    depth: int = 1  # links away from the root
    max_pages: int = 50
    sitemap: bool = False  # also what the site's sitemaps and its llms.txt name


class Links:
    """Which links one crawl takes."""

    def __init__(self, guard: Guard, rules: Rules) -> None:
        self.rules, self.site = rules, site_of(guard.target(rules.root))
        self.seen: set[str] = set()
        self.taken = self.left = 0  # how many were, and how many there was no room for
        self._guard, self.fits = guard, matcher(rules.pattern)
        self._spellings: set[str] = set()

    def fresh(self, links: Iterable[str]) -> list[str]:
        """Return the links that are new, on the site and of the pattern, as many as there is room for."""
        found = []
        for link in links:
            if link in self._spellings:
                continue
            self._spellings.add(link)
            try:
                target = self._guard.target(link)
            except BunkoError:
                continue  # it cannot be fetched, and a page is not worse for naming it
            url = str(target)
            if site_of(target) != self.site or url in self.seen or not self.fits(url):
                continue
            self.seen.add(url)
            if self.taken >= self.rules.max_pages:
                self.left += 1
                continue
            self.taken += 1
            found.append(url)
        return found


def site_of(target: Target) -> str:
    """Return what two pages of one site have in common: the host, with or without www., and an unusual port."""
    host = target.host.removeprefix("www.")
    return host if target.port == PORTS[target.scheme] else f"{host}:{target.port}"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return the test that a pattern makes; one that is wrong or could take for ever is told of."""
    if len(pattern) > _LONGEST_PATTERN:
        raise QueryError(f"The pattern has {len(pattern)} characters", hint=f"Use at most {_LONGEST_PATTERN}.")
    explosive, wild = _cost(pattern)
    if explosive:
        raise QueryError(
            f"The pattern {pattern!r} repeats a group that repeats or chooses something, which could take for ever",
            hint="Write it without the outer repetition.",
        )
    if wild >= len(_LONGEST_TRIED):
        raise QueryError(f"The pattern {pattern!r} says .* too often", hint="Say it three times at most.")
    tried = _LONGEST_TRIED[wild]
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise QueryError(
            f"The pattern {pattern!r} is not a regular expression: {error}",
            hint=r"Write \.html$ for addresses that end in .html, or put a backslash before . ? * + ( ) [ ].",
        ) from error
    return lambda url: compiled.search(url[:tried]) is not None


def _cost(pattern: str) -> tuple[bool, int]:
    """Say whether a group that repeats has more than one way to take the same text, and how often .* is said."""
    ways = [False]  # of each group that is open: whether it holds a repetition or a choice
    closed, wild, last = False, 0, ""  # of the group that just ended; what came last
    for part in _PART.finditer(pattern):
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
