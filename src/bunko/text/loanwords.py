"""Correct the dictionary's loanwords: their English origins, and words that it takes for several.

The corrections were learned from translated texts (`training/loanwords.py`): レンダー is render, not lender, and
スニペット is one word, not スニ and ペット.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

CORRECTIONS_PATH = Path(__file__).with_name("loanwords.tsv")


class Corrections(NamedTuple):
    """The English origins of katakana words, and the words among them that the dictionary splits."""

    origins: dict[str, str]
    joined: frozenset[str]


@cache
def corrections() -> Corrections:
    """Return all corrections."""
    rows = [line.split("\t") for line in CORRECTIONS_PATH.read_text(encoding="utf-8").splitlines()]
    return Corrections({row[0]: row[1] for row in rows}, frozenset(row[0] for row in rows if len(row) > 2))
