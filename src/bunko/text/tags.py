"""A tag, or a line or list of them, as somebody wrote it in, the tags it is kept as out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bunko.text.normalise import normalise

_COMMAS = re.compile(r"[,，、;；\n]")


def tag(text: str) -> str:
    """Return a tag in one width and case, without the mark some people put before it."""
    return " ".join(normalise(text).strip().lstrip("#").casefold().split())


def tags(written: str | Iterable[str]) -> tuple[str, ...]:
    """Return each tag once; a line is parted at its commas, else at its blanks."""
    if isinstance(written, str):
        written = _COMMAS.split(written) if _COMMAS.search(written) else written.split()
    return tuple(dict.fromkeys(kept for one in written if (kept := tag(one))))
