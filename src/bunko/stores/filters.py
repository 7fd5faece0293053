"""A document's facts in, what every store must make of them out: order, date, own texts, whether a filter passes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import blake2b

from bunko.records import Filter
from bunko.text.dates import local, zone
from bunko.types import Chunk, Entry, Known

# How much of a document's body is read to list it.
BEGINNING = 1000
# Chunks of a longer document keep their own text, so that showing one does not read the whole document.
_LONG_TEXT = 100_000


def order(uri: str, index: int) -> int:
    """Return the number that decides between equal scores: it depends on nothing but the chunk's place."""
    place = f"{uri}\0{index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(place, digest_size=8).digest(), "little")


def known(content_hash: str, entry: Entry) -> Known:
    """Return what to remember of an entry; a timestamp too fresh to be trusted is remembered as 0."""
    return Known(content_hash, entry.size, entry.trusted_ns(), entry.lines.first)


def own_text(chunk: Chunk, text: str) -> str | None:
    """Return what a chunk must keep beside its document's text; None if its range says it all."""
    return chunk.text if len(text) > _LONG_TEXT or chunk.text != text[chunk.start : chunk.end] else None


def dated(date: str, modified_ns: int, last_line: int = 0) -> str:
    """Return the date a document goes by: its own, else when its file changed, in local time.

    Where a file holds many, its time says nothing of one of them.
    """
    if date or last_line or not modified_ns:
        return date
    try:
        return datetime.fromtimestamp(modified_ns / 1e9).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


def counted(tags: Iterable[Iterable[str]]) -> list[tuple[str, int]]:
    """Return each tag of some documents and how many have it, the most used first."""
    number = Counter(tag for own in tags for tag in own)
    return sorted(number.items(), key=lambda item: (-item[1], item[0]))


def latest(documents: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return uris with their dates, the latest first; those of one date stand in the order of their uris."""
    return sorted(sorted(documents), key=lambda item: item[1], reverse=True)


def passes(where: Filter) -> Callable[[str, str, frozenset[str]], bool]:
    """Return a test over a document's uri, date and tags."""
    path = re.compile(glob(where.path)) if where.path else None
    tags = frozenset(where.tags)
    place = zone(where.zone)

    def test(uri: str, date: str, own: frozenset[str]) -> bool:
        if path is not None and path.match(uri) is None:
            return False
        if not tags <= own:
            return False
        if where.since or where.until:
            date = local(date, place)
        if where.since and date < where.since:
            return False
        # 2024-01-15 as an end includes the whole day, 2024-01 the whole month.
        return not (where.until and date > where.until + "\uffff")

    return test


def glob(pattern: str) -> str:
    """Translate a glob: * stays in a folder, ** crosses folders, a pattern without a slash is sought anywhere."""
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    # Stars in a row say no more than one, and would be tried in all ways to share a path between them.
    pattern = re.sub(r"\*{3,}", "**", re.sub(r"(?:\*\*/)+", "**/", pattern))
    out, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("**", at):
            out, at = out + ".*", at + 2
        elif pattern[at] == "*":
            fixed, at = _fixed(pattern, at + 1)
            # With another star to come, the first place where this much fits is as good as any: not to try the others
            # keeps a pattern of many stars from taking for ever.
            out += f"(?>[^/]*?{fixed})" if pattern.startswith("*", at) else f"[^/]*{fixed}"
        else:
            fixed, at = _fixed(pattern, at)
            out += fixed
            if pattern.startswith("/", at):
                out, at = out + "/", at + 1
    return f"(?s:{out})\\Z"


def _fixed(pattern: str, at: int) -> tuple[str, int]:
    """Translate what follows up to a star, a slash or the end; return where that is."""
    out = ""
    while at < len(pattern) and pattern[at] not in "*/":
        if pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + (3 if pattern.startswith("[!", at) else 2))) > 0:
            out, at = out + _one_of(pattern[at + 1 : end]), end + 1
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return out, at


def _one_of(inside: str) -> str:
    """Translate what stands between brackets; a range that is the wrong way round is its characters."""

    def translated(match: re.Match[str]) -> str:
        low, high = match[1], match[2]
        return f"{re.escape(low)}-{re.escape(high)}" if low and low <= high else re.escape(match[0])

    negated = "^" if inside.startswith("!") else ""
    return f"[{negated}{re.sub('(?s)(.)-(.)|.', translated, inside.removeprefix('!'))}]"
