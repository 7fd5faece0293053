"""Name the entries of a file by what they say, never by where they stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from bunko.readers.memo import Memo
from bunko.text.normalise import normalise

_MAX_NAME_LENGTH = 60
_UNSAFE_CHARS = re.compile(r"\W+")


def entry_name(memo: Memo) -> str:
    """Return a name made from the key or the date and title of an entry."""
    label = memo.key or memo.title or memo.text[memo.body :].lstrip()[:_MAX_NAME_LENGTH]
    name = _UNSAFE_CHARS.sub("-", normalise(label)).strip("-_")[:_MAX_NAME_LENGTH].strip("-_")
    return "-".join(part for part in ("" if memo.key else memo.date[:10], name) if part) or "entry"


def rename_copies(names: Sequence[str | None], digest_of: Callable[[int], str], used_names: set[str]) -> dict[int, str]:
    """Return the names of the entries that cannot have their own within their file, by position.

    Entries of the same date and title are distinguished by their hash, so that moving one does not rename another.
    An entry without a name is the whole file.
    """
    name_counts, copies = Counter(names), Counter[str]()
    new_names: dict[int, str] = {}
    for index, name in enumerate(names):
        if name is None:
            continue
        unique_name = name
        if name_counts[name] > 1 or name in used_names:
            unique_name = new_name = f"{name}-{digest_of(index)[:8]}"
            while unique_name in used_names:  # entries with identical text
                copies[new_name] += 1
                unique_name = f"{new_name}-{copies[new_name] + 1}"
            new_names[index] = unique_name
        used_names.add(unique_name)
    return new_names
