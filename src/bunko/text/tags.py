"""A tag as somebody wrote it in, the tag it is kept as out."""

from __future__ import annotations

from bunko.text.normalise import normalise


def tag(text: str) -> str:
    """Return a tag in one width and case, without the mark some people put before it."""
    return " ".join(normalise(text).strip().lstrip("#").casefold().split())
