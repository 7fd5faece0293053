"""Ask robots.txt which pages may be fetched, how fast, and where the sitemaps are."""

from __future__ import annotations

import json
import logging
import math
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Literal

from bunko.errors import AddressRefused, FailureReason, FetchFailed, SourceError
from bunko.sources.web.fetch import FetchedPage, Fetcher
from bunko.sources.web.site_cache import SiteCache
from bunko.sources.web.ssrf_guard import Target, display_url

_MAX_SITEMAPS = 1_000
_LINE_END = re.compile("\r\n?|\n")
_AGENT_TOKEN = re.compile(r"\*(?!\S)|[A-Za-z0-9_-]*")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NEEDS_ESCAPE = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+")  # as in the URLs that the guard returns
# Other crawlers accept these misspellings too: the author of the file meant to forbid something.
_KEYS = {
    "useragent": "agent", "allow": "allow", "disallow": "disallow", "crawldelay": "delay", "sitemap": "sitemap",
    "dissallow": "disallow", "dissalow": "disallow", "disalow": "disallow", "diasllow": "disallow",
    "disallaw": "disallow",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What a robots.txt says to one crawler."""

    rules: tuple[tuple[str, bool], ...] = ()  # pattern and whether it allows, in the order in which they are tried
    delay: float = 0.0  # seconds between two requests
    sitemaps: tuple[str, ...] = ()

    def allows(self, path: str) -> bool:
        """Return whether a path, with its query, may be fetched."""
        if path == "/robots.txt":
            return True
        path = _normalise(path).replace("*", "%2A").replace("$", "%24")
        return next((is_allowed for pattern, is_allowed in self.rules if _matches(pattern, path)), True)

    def to_json(self) -> str:
        """Return the rules as text for `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RobotsRules:
        """Return the rules in a text; raise ValueError if it was not written by `to_json`."""
        try:
            fields = json.loads(text)
            rules = tuple((str(pattern), bool(is_allowed)) for pattern, is_allowed in fields["rules"])
            return cls(rules, float(fields["delay"]), tuple(map(str, fields["sitemaps"])))
        except (TypeError, LookupError) as error:
            raise ValueError("it does not contain the rules of a robots.txt") from error


def product_token(agent: str) -> str:
    """Return the name of a crawler that rules are matched by: bunkobot for BunkoBot/1.0 (+https://…)."""
    match = _AGENT_TOKEN.match(agent.strip())
    return match[0].lower() if match else ""


def parse_robots(content: bytes, agent: str, *, max_bytes: int) -> RobotsRules:
    """Return the rules for a crawler: those of the groups that name it, else of the groups for all.

    Of a longer file the first `max_bytes` count, without the line that they cut.
    """
    text = content[:max_bytes].decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines = _LINE_END.split(text)
    if len(content) >= max_bytes:
        lines.pop()  # "Disallow: /a" may be the beginning of "Disallow: /archive"
    own_name = product_token(agent)
    groups = {name: _Group() for name in (own_name, "*") if name}
    sitemaps: dict[str, None] = {}
    named: set[str] = set()  # which of the two the current group is for
    delayed: set[str] = set()  # those of them that a delay is for: it is no rule, but ends a list of names for delays
    has_rules = has_delay = False  # of the current group: only a rule ends its list of names
    for line in lines:
        key, value = _parse_line(line)
        if key == "agent":
            named = set() if has_rules else named
            delayed = set() if has_rules or has_delay else delayed
            has_rules = has_delay = False
            if (name := product_token(value)) in groups:
                named.add(name)
                delayed.add(name)
                groups[name].is_named = True
        elif key in ("allow", "disallow"):
            has_rules = True
            if value:
                for name in named:
                    groups[name].rules[_normalise(value), key == "allow"] = None
        elif key == "delay":
            has_delay = True
            for name in delayed:
                groups[name].delay = max(groups[name].delay, _parse_delay(value))
        elif key == "sitemap" and len(sitemaps) < _MAX_SITEMAPS:
            sitemaps[value] = None
    group = groups[own_name] if own_name and groups[own_name].is_named else groups["*"]
    # The longest pattern decides, and one that allows wins a tie.
    rules = sorted(group.rules, key=lambda rule: (len(rule[0]), rule[1]), reverse=True)
    return RobotsRules(tuple(rules), group.delay, tuple(sitemaps))


class _Group:
    """The rules for one name, of all groups that have it."""

    def __init__(self) -> None:
        self.rules: dict[tuple[str, bool], None] = {}
        self.delay = 0.0
        self.is_named = False


def _parse_line(line: str) -> tuple[str, str]:
    """Return the field of a line and its value; the field is empty for a line without a meaning to us."""
    line = line.partition("#")[0].strip()
    key, colon, value = line.partition(":")
    if not colon or not _find_key(key):
        words = line.split()  # many files lack the colon
        key, value = " ".join(words[:-1]), "".join(words[-1:])
    return _find_key(key), value.strip()


def _find_key(text: str) -> str:
    # "User-agent", "user  agent" and "useragent" are the same; a long text is none of them.
    return _KEYS.get("".join(text[:100].lower().replace("-", " ").split()), "")


def _parse_delay(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _normalise(path: str) -> str:
    """Return a path or pattern in which each character is written in one way: escaped unless it is plain ASCII."""

    def normalise_escape(match: re.Match[str]) -> str:
        if match[1] is None:
            return "%25"
        char = chr(int(match[1], 16))
        return char if char in _UNRESERVED else match[0].upper()

    def escape(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))

    return _NEEDS_ESCAPE.sub(escape, _ESCAPE.sub(normalise_escape, path) if "%" in path else path)


def _matches(pattern: str, path: str) -> bool:
    """Return whether a path begins as a pattern says; * is any text, and $ at the end is the end of the path."""
    if "*" not in pattern and "$" not in pattern:
        return path.startswith(pattern)
    to_end = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").replace("$", "%24").split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    if not others:
        return not to_end or position == len(path)
    *middle, last = others
    for part in middle:
        # The first place is as good as any later one, because a star follows.
        start = path.find(part, position)
        if start < 0:
            return False
        position = start + len(part)
    if to_end:
        return path.endswith(last) and len(path) - len(last) >= position
    return path.find(last, position) >= 0


log = logging.getLogger(__name__)

_MAX_BYTES = 500 << 10  # RFC 9309, 2.5: the minimum that a crawler must read
_MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_MAX_ORIGINS = 1_000
_RETRY_SECONDS = 60.0  # until a robots.txt that could not be read is requested again
_MAX_AGE = 30 * 86_400.0  # RFC 9309, 2.3.1.4: how long an old copy may stand in for a file that cannot be read
_LONG_DELAY = 30.0  # seconds; longer delays are logged
_ALLOW_ALL = RobotsRules()
_UNREADABLE_HINT = (
    "Until it can be read, nothing of the site is fetched. Try again in a minute, or set web.robots_unreachable to"
    " allow."
)


@dataclass(slots=True)
class _Origin:
    """What is known about the robots.txt of an origin."""

    lock: Lock = field(default_factory=Lock)
    is_loaded: bool = False  # from the cache
    rules: RobotsRules | None = None  # None: it was never read
    fetched_at: float = 0.0
    failed_at: float = 0.0  # the last attempt failed at this time; 0: it succeeded
    warned_at: float = 0.0  # the time of the failed attempt that was warned of last
    problem: str = ""  # why it failed
    hint: str = ""
    reason: FailureReason = "robots"
    refusal: AddressRefused | None = None  # the guard refuses the host itself


class Robots:
    """Fetches the robots.txt of each origin once in `ttl` seconds, across processes with the same cache; thread-safe.

    Without a robots.txt (4xx) everything is allowed. If it cannot be read (5xx, no answer), an older copy counts;
    without one, everything is allowed with a warning, or nothing for the moment if `unreachable` is "refuse", as
    RFC 9309 says. With `respect` off, robots.txt is fetched for sitemaps only.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        cache: SiteCache | None = None,
        *,
        agent: str = "BunkoBot",
        ttl: float = 3600.0,
        respect: bool = True,
        unreachable: Literal["allow", "refuse"] = "allow",
        max_delay: float = 60.0,
    ) -> None:
        self._fetcher, self._cache, self._agent = fetcher, cache or SiteCache(), product_token(agent)
        self._ttl, self._respect, self._unreachable, self._max_delay = ttl, respect, unreachable, max_delay
        self._origins: dict[str, _Origin] = {}
        self._lock = Lock()

    def allows(self, url: str) -> bool:
        """Return whether robots.txt allows fetching a page; raise FetchFailed if it cannot be read now."""
        if not self._respect:
            return True
        target = self._fetcher.guard.target(url)
        return self._origin_rules(target).allows(target.path)

    def delay(self, url: str) -> float:
        """Return the crawl delay of the site in seconds, 0 if it has none; raise AddressRefused if it is too long."""
        if not self._respect:
            return 0.0
        delay = self._origin_rules(self._fetcher.guard.target(url)).delay
        if delay > self._max_delay:
            raise AddressRefused(
                f"{display_url(url)} is not fetched: its robots.txt asks for {delay:g} seconds between two requests,"
                f" more than crawl.max_crawl_delay ({self._max_delay:g})",
                hint="To wait that long for each page, raise crawl.max_crawl_delay.",
                reason="crawl-delay",
            )
        return delay

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the URLs of the site's sitemaps, except those that the guard refuses."""
        try:
            rules = self._origin_rules(self._fetcher.guard.target(url))
        except SourceError:
            return ()  # reported when a page is visited
        urls: dict[str, None] = {}
        for address in rules.sitemaps:
            try:
                urls[self._fetcher.guard.canonical_url(address)] = None
            except AddressRefused as error:
                log.warning("Skipping a sitemap of %s: %s", url, error.message)
        return tuple(urls)

    def _origin_rules(self, target: Target) -> RobotsRules:
        with self._lock:
            origin = self._origins.get(target.origin)
            if origin is None:
                if len(self._origins) >= _MAX_ORIGINS:
                    del self._origins[next(iter(self._origins))]
                origin = self._origins[target.origin] = _Origin()
        with origin.lock:  # threads with pages of one site wait for the one that fetches
            if not origin.is_loaded:
                self._load(target.origin, origin)
            if not self._is_current(origin):
                self._refresh(target.origin, origin)
            if origin.refusal is not None:
                raise AddressRefused(origin.refusal.message, hint=origin.refusal.hint, reason=origin.refusal.reason)
            if origin.rules is not None:
                return origin.rules
            if self._unreachable == "refuse":
                raise FetchFailed(
                    f"{display_url(str(target))} is not fetched: its robots.txt cannot be read now ({origin.problem})",
                    hint=origin.hint or _UNREADABLE_HINT,
                    reason=origin.reason,
                )
            if self._respect and origin.warned_at != origin.failed_at:
                log.warning(
                    "Fetching pages of %s, although its robots.txt cannot be read now: %s",
                    target.origin,
                    origin.problem,
                )
                origin.warned_at = origin.failed_at
            return _ALLOW_ALL

    def _is_current(self, origin: _Origin) -> bool:
        if origin.failed_at:
            return 0 <= self._cache.now() - origin.failed_at < min(self._ttl, _RETRY_SECONDS)
        return origin.rules is not None and 0 <= self._cache.now() - origin.fetched_at < self._ttl

    def _refresh(self, name: str, origin: _Origin) -> None:
        """Fetch the robots.txt of an origin; if that fails, keep the rules that were read before, for some time."""
        origin.problem, origin.hint, origin.refusal, origin.failed_at = "", "", None, 0.0
        origin.reason = "robots"
        try:
            origin.rules, origin.fetched_at = self._fetch_rules(name), self._cache.now()
        except AddressRefused as error:
            origin.refusal, origin.failed_at = error, self._cache.now()
            return
        except FetchFailed as error:
            origin.failed_at, origin.hint = self._cache.now(), error.hint
            origin.problem = error.message.partition(" was not fetched: ")[2] or error.message
            origin.reason = "unresolved" if error.reason == "unresolved" else "robots"
            if origin.rules is not None and origin.failed_at - origin.fetched_at < _MAX_AGE:
                date = datetime.fromtimestamp(origin.fetched_at, UTC).date()
                log.warning("Obeying the robots.txt of %s from %s: %s", name, date, error.message)
            else:
                origin.rules = None
            if not error.status and error.reason != "timeout":
                return  # waiting would spare no server
        self._save(name, origin)
        if self._respect and origin.rules and _LONG_DELAY < origin.rules.delay <= self._max_delay:
            log.warning("%s sets a crawl delay of %g seconds, which is respected.", name, origin.rules.delay)

    def _cache_key(self, name: str) -> bytes:
        return f"{name} {self._agent}".encode()

    def _load(self, name: str, origin: _Origin) -> None:
        origin.is_loaded = True
        text = self._cache.get("robots", self._cache_key(name))
        if text is None:
            return
        try:
            fields = json.loads(text)
            rules = RobotsRules.from_json(fields["rules"]) if fields["rules"] else None
            times = float(fields["fetched_at"]), float(fields["failed_at"])
        except (ValueError, TypeError, LookupError):
            return  # of another version of bunko
        origin.rules, origin.problem, (origin.fetched_at, origin.failed_at) = rules, str(fields.get("problem")), times

    def _save(self, name: str, origin: _Origin) -> None:
        fields = {
            "rules": origin.rules.to_json() if origin.rules else "",
            "fetched_at": origin.fetched_at,
            "failed_at": origin.failed_at,
            "problem": origin.problem,
        }
        expires_at = (origin.fetched_at + _MAX_AGE) if origin.rules else origin.failed_at + _RETRY_SECONDS
        self._cache.put("robots", {self._cache_key(name): json.dumps(fields)}, expires_at=expires_at)

    def _fetch_rules(self, name: str) -> RobotsRules:
        page = self._fetcher.request(f"{name}/robots.txt", truncate_at=_MAX_BYTES)
        for _ in range(_MAX_REDIRECTS):
            if not _is_redirect(page):
                break
            page = self._follow_redirect(page)
        if 200 <= page.status < 300:
            return parse_robots(page.content, self._agent, max_bytes=_MAX_BYTES)
        if _is_redirect(page):
            log.warning("%s/robots.txt redirects too often and is ignored.", name)
            return _ALLOW_ALL
        # "Too many requests" says nothing about the file; to go on fetching pages would be rude.
        if 400 <= page.status < 500 and page.status != 429:
            return _ALLOW_ALL
        raise FetchFailed(f"{page.url} was not fetched: the server answered {page.status}", status=page.status)

    def _follow_redirect(self, page: FetchedPage) -> FetchedPage:
        guard = self._fetcher.guard
        try:
            target = guard.redirect_target(guard.target(page.url), page.location)
            return self._fetcher.request(str(target), truncate_at=_MAX_BYTES)
        except SourceError as error:
            # Of the target, which may be another host, not of the site itself.
            message = f"{page.url} was not fetched: it redirects to {display_url(page.location)}: {error.message}"
            raise FetchFailed(message, hint=error.hint, status=page.status) from error


def _is_redirect(page: FetchedPage) -> bool:
    return 300 <= page.status < 400 and bool(page.location)
