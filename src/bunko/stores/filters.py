"""Compute the order of ties, dates, chunk texts and filter matches, on which all stores must agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import blake2b

from bunko.errors import QueryError
from bunko.text.dates import local_date, time_zone
from bunko.types import Chunk, Fingerprint, SourceEntry
from bunko.types.records import Filter

# How many characters of the body a list of documents includes.
BEGINNING_CHARS = 1000
# Chunks of a longer document store their own text, so that showing one does not read the whole document.
_LONG_DOCUMENT_CHARS = 100_000
_MAX_GLOB_CHARS = 4096  # as long as a path may be
_DAY_NS = 24 * 60 * 60 * 10**9


def tiebreak_order(uri: str, index: int) -> int:
    """Return the number that orders chunks of equal score; it depends only on the URI and the chunk index."""
    location = f"{uri}\0{index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(location, digest_size=8).digest(), "little")


def fingerprint(content_hash: str, entry: SourceEntry) -> Fingerprint:
    """Return the fingerprint of an entry; a timestamp too recent to be trusted becomes 0."""
    return Fingerprint(content_hash, entry.size, entry.trusted_modified_ns(), entry.lines.first)


def separate_chunk_text(chunk: Chunk, text: str) -> str | None:
    """Return the chunk text to store, or None if it can be cut from the document text."""
    return chunk.text if len(text) > _LONG_DOCUMENT_CHARS or chunk.text != text[chunk.start : chunk.end] else None


def effective_date(date: str, modified_ns: int, last_line: int = 0) -> str:
    """Return the date of a document, else the modification time of its file in local time.

    An entry of a larger file (`last_line` > 0) gets no file time, which says nothing about a single entry.
    """
    if date or last_line or not modified_ns:
        return date
    try:
        return datetime.fromtimestamp(modified_ns / 1e9).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


def is_redated(date: str, old: SourceEntry, new: SourceEntry) -> bool:
    """Return whether a document with the date of its file gets another day (in UTC) with a new time of the file."""
    is_dated_by_file = not date and not old.lines.last
    return is_dated_by_file and old.modified_ns // _DAY_NS != new.modified_ns // _DAY_NS


def count_tags(tags: Iterable[Iterable[str]]) -> list[tuple[str, int]]:
    """Return each tag with its number of documents, most used first."""
    counts = Counter(tag for document_tags in tags for tag in document_tags)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def newest_first(documents: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Sort pairs of URI and date, newest first, then by URI."""
    return sorted(sorted(documents), key=lambda item: item[1], reverse=True)


def document_matcher(where: Filter, tool_id: int) -> Callable[[str, str, frozenset[str]], bool]:
    """Return a function that tests the URI, date and tags of a document of a tool."""
    if len(where.path) > _MAX_GLOB_CHARS:
        raise QueryError(f"The path has {len(where.path)} characters", hint=f"Use at most {_MAX_GLOB_CHARS}.")
    path = re.compile(glob_to_regex(where.path)) if where.path else None
    tags = frozenset(where.tags)
    zone = time_zone(where.zone)
    selected_uris = (where.selected_uris or {}).get(tool_id, frozenset()) if where.selection else None

    def matches(uri: str, date: str, document_tags: frozenset[str]) -> bool:
        if selected_uris is not None and uri not in selected_uris:
            return False
        if path is not None and path.match(uri) is None:
            return False
        if not tags <= document_tags:
            return False
        if where.since or where.until:
            date = local_date(date, zone)
        if where.since and date < where.since:
            return False
        # An end of 2024-01-15 includes the whole day, 2024-01 the whole month.
        return not (where.until and date > where.until + "\uffff")

    return matches


def glob_to_regex(pattern: str) -> str:
    """Translate a glob: * stays within a folder, ** crosses folders, a pattern without a slash matches at any depth.

    The regex engine must not try every way to split a path among the stars, which takes exponential time. What stands
    between two ** may match at the first place that fits, because the second ** accepts anything after it: an atomic
    group keeps the engine from trying the others.
    """
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    # Repeated stars match no more than one.
    pattern = re.sub(r"\*{3,}", "**", re.sub(r"(?:\*\*/)+", "**/", pattern))
    # Only as a whole folder does ** also match none: a/**/b is a/b, but a**/b is not ab.
    first, *others = re.split(r"(\A\*\*/|(?<=/)\*\*/|\*\*)", pattern)
    if not others:
        return f"(?s:{_block_to_regex(first)})\\Z"
    regex = f"(?>{_block_to_regex(first, lazy=True)})"
    gaps, blocks = others[::2], others[1::2]
    for gap, block in zip(gaps[:-1], blocks[:-1], strict=True):
        regex += f"(?>{'(?:.*?/)??' if gap == '**/' else '.*?'}{_block_to_regex(block, lazy=True)})"
    regex += f"{'(?:.*/)?' if gaps[-1] == '**/' else '.*'}{_block_to_regex(blocks[-1])}"
    return f"(?s:{regex})\\Z"


def _block_to_regex(pattern: str, *, lazy: bool = False) -> str:
    """Translate a glob without **; with `lazy`, its match ends as early as possible."""
    regex, position = "", 0
    while position < len(pattern):
        if pattern[position] == "*":
            segment, position = _segment_to_regex(pattern, position + 1)
            # If another star follows, the first match of this segment is as good as any.
            has_next_star = pattern.startswith("*", position)
            regex += f"(?>[^/]*?{segment})" if has_next_star else f"[^/]*{'?' if lazy else ''}{segment}"
        elif pattern[position] == "/":
            regex, position = regex + "/", position + 1
        else:
            segment, position = _segment_to_regex(pattern, position)
            regex += segment
    return regex


def _segment_to_regex(pattern: str, position: int) -> tuple[str, int]:
    """Translate a glob up to the next star, slash or its end; return the regex and that position."""
    regex = ""
    while position < len(pattern) and pattern[position] not in "*/":
        if pattern[position] == "?":
            regex, position = regex + "[^/]", position + 1
        elif pattern[position] == "[" and (end := _char_class_end(pattern, position)) > 0:
            regex, position = regex + _char_class_to_regex(pattern[position + 1 : end]), end + 1
        else:
            regex, position = regex + re.escape(pattern[position]), position + 1
    return regex, position


def _char_class_end(pattern: str, start: int) -> int:
    # A bracket right after [ or [! is a character of the class, not its end.
    return pattern.find("]", start + (3 if pattern.startswith("[!", start) else 2))


def _char_class_to_regex(inside: str) -> str:
    """Translate the content of brackets; a reversed range matches its characters literally."""

    def translate(match: re.Match[str]) -> str:
        low, high = match[1], match[2]
        return f"{re.escape(low)}-{re.escape(high)}" if low and low <= high else re.escape(match[0])

    negated = "^" if inside.startswith("!") else ""
    return f"[{negated}{re.sub('(?s)(.)-(.)|.', translate, inside.removeprefix('!'))}]"
