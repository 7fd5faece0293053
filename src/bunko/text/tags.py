"""Parse and normalise tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bunko.text.normalise import normalise

_TAG_SEPARATORS = re.compile(r"[,，、;；\n]")


def normalise_tag(text: str) -> str:
    """Return a tag in normal width and lower case, without a leading #."""
    return " ".join(normalise(text).strip().lstrip("#").casefold().split())


def parse_tags(raw_tags: str | Iterable[str]) -> tuple[str, ...]:
    """Return the distinct tags; a string is split at commas, or at spaces if it has none."""
    if isinstance(raw_tags, str):
        raw_tags = _TAG_SEPARATORS.split(raw_tags) if _TAG_SEPARATORS.search(raw_tags) else raw_tags.split()
    return tuple(dict.fromkeys(tag for raw_tag in raw_tags if (tag := normalise_tag(raw_tag))))
