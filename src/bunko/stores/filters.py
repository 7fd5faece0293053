"""A document's facts in, what every store must make of them out: order, date, own texts, whether a filter passes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import blake2b

from bunko.records import Filter
from bunko.text.dates import local_date, time_zone
from bunko.types import Chunk, Fingerprint, SourceEntry

# How much of a document's body is read to list it.
BEGINNING_CHARS = 1000
# Chunks of a longer document keep their own text, so that showing one does not read the whole document.
_LONG_DOCUMENT_CHARS = 100_000


def tiebreak_order(uri: str, index: int) -> int:
    """Return the number that decides between equal scores: it depends on nothing but the chunk's place."""
    place = f"{uri}\0{index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(place, digest_size=8).digest(), "little")


def fingerprint(content_hash: str, entry: SourceEntry) -> Fingerprint:
    """Return what to remember of an entry; a timestamp too fresh to be trusted is remembered as 0."""
    return Fingerprint(content_hash, entry.size, entry.trusted_modified_ns(), entry.lines.first)


def separate_chunk_text(chunk: Chunk, text: str) -> str | None:
    """Return what a chunk must keep beside its document's text; None if its range says it all."""
    return chunk.text if len(text) > _LONG_DOCUMENT_CHARS or chunk.text != text[chunk.start : chunk.end] else None


def effective_date(date: str, modified_ns: int, last_line: int = 0) -> str:
    """Return the date a document goes by: its own, else when its file changed, in local time.

    Where a file holds many, its time says nothing of one of them.
    """
    if date or last_line or not modified_ns:
        return date
    try:
        return datetime.fromtimestamp(modified_ns / 1e9).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


def count_tags(tags: Iterable[Iterable[str]]) -> list[tuple[str, int]]:
    """Return each tag of some documents and how many have it, the most used first."""
    number = Counter(tag for own in tags for tag in own)
    return sorted(number.items(), key=lambda item: (-item[1], item[0]))


def newest_first(documents: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return uris with their dates, the latest first; those of one date stand in the order of their uris."""
    return sorted(sorted(documents), key=lambda item: item[1], reverse=True)


def document_matcher(where: Filter) -> Callable[[str, str, frozenset[str]], bool]:
    """Return a test over a document's uri, date and tags."""
    path = re.compile(glob_to_regex(where.path)) if where.path else None
    tags = frozenset(where.tags)
    place = time_zone(where.zone)

    def test(uri: str, date: str, own: frozenset[str]) -> bool:
        if path is not None and path.match(uri) is None:
            return False
        if not tags <= own:
            return False
        if where.since or where.until:
            date = local_date(date, place)
        if where.since and date < where.since:
            return False
        # 2024-01-15 as an end includes the whole day, 2024-01 the whole month.
        return not (where.until and date > where.until + "\uffff")

    return test


def glob_to_regex(pattern: str) -> str:
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
            fixed, at = _segment_to_regex(pattern, at + 1)
            # With another star to come, the first place where this much fits is as good as any: not to try the others
            # keeps a pattern of many stars from taking for ever.
            out += f"(?>[^/]*?{fixed})" if pattern.startswith("*", at) else f"[^/]*{fixed}"
        else:
            fixed, at = _segment_to_regex(pattern, at)
            out += fixed
            if pattern.startswith("/", at):
                out, at = out + "/", at + 1
    return f"(?s:{out})\\Z"


def _segment_to_regex(pattern: str, at: int) -> tuple[str, int]:
    """Translate what follows up to a star, a slash or the end; return where that is."""
    out = ""
    while at < len(pattern) and pattern[at] not in "*/":
        if pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + (3 if pattern.startswith("[!", at) else 2))) > 0:
            out, at = out + _char_class_to_regex(pattern[at + 1 : end]), end + 1
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return out, at


def _char_class_to_regex(inside: str) -> str:
    """Translate what stands between brackets; a range that is the wrong way round is its characters."""

    def translated(match: re.Match[str]) -> str:
        low, high = match[1], match[2]
        return f"{re.escape(low)}-{re.escape(high)}" if low and low <= high else re.escape(match[0])

    negated = "^" if inside.startswith("!") else ""
    return f"[{negated}{re.sub('(?s)(.)-(.)|.', translated, inside.removeprefix('!'))}]"
