"""A tag, or a line or list of them, as somebody wrote it in, the tags it is kept as out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bunko.text.normalise import normalise

_TAG_SEPARATORS = re.compile(r"[,，、;；\n]")


def normalise_tag(text: str) -> str:
    """Return a tag in one width and case, without the mark some people put before it."""
    return " ".join(normalise(text).strip().lstrip("#").casefold().split())


def parse_tags(raw_tags: str | Iterable[str]) -> tuple[str, ...]:
    """Return each tag once; a line is parted at its commas, else at its blanks."""
    if isinstance(raw_tags, str):
        raw_tags = _TAG_SEPARATORS.split(raw_tags) if _TAG_SEPARATORS.search(raw_tags) else raw_tags.split()
    return tuple(dict.fromkeys(kept for one in raw_tags if (kept := normalise_tag(one))))
