"""Links of pages in, those that a crawl takes out: on its site, of its pattern, each once, and not too many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bunko.errors import BunkoError, QueryError
from bunko.sources.web.guard import PORTS, Guard, Target

_LONGEST_PATTERN = 500
# What a pattern is tried on: with what follows, a wild one could take for hours, and no real address needs it.
_LONGEST_TRIED = 2000
_REPEATED = r"(?:[*+]|\{\d*,\d*\})"
# A group that repeats and has a repetition inside may take for ever on an address that nearly fits.
_EXPLOSIVE = re.compile(rf"\((?:[^()\\]|\\.)*{_REPEATED}(?:[^()\\]|\\.)*\){_REPEATED}")


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
    if _EXPLOSIVE.search(pattern):
        raise QueryError(
            f"The pattern {pattern!r} repeats a group that repeats something, which could take for ever",
            hint="Write it without one of the two repetitions.",
        )
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise QueryError(
            f"The pattern {pattern!r} is not a regular expression: {error}",
            hint=r"Write \.html$ for addresses that end in .html, or put a backslash before . ? * + ( ) [ ].",
        ) from error
    return lambda url: compiled.search(url[:_LONGEST_TRIED]) is not None
