"""Parse robots.txt and match paths against its rules, as RFC 9309 says, in time proportional to their length."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass

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
    """Return what a line says and its value; the first is empty for a line that says nothing to us."""
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
