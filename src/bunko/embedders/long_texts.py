"""A text that is too long for a model in, parts that it takes out; and the rows of these in, the text's own out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from bunko.types import Vectors

LongTextPolicy = Literal[
    "average", "cut"
]  # what becomes of such a text: the average of its parts, or its beginning alone


def mean_vector(rows: Sequence[Vectors], weights: Sequence[int]) -> Vectors:
    """Return the unit row of a text from the rows of its parts and their lengths."""
    if len(rows) == 1:
        return rows[0]
    total = np.average(np.stack(rows), axis=0, weights=weights)
    length = np.linalg.norm(total)
    # Parts that point in opposite ways cancel out; the first says best what a text is about.
    whole: Vectors = (total / length).astype(np.float32) if length else rows[0]
    return whole


def estimate_tokens(text: str) -> int:
    """Guess high how many tokens a text has: a letter of Latin text is a third of one, any other character is one."""
    plain = len(text.encode("ascii", "ignore"))
    return len(text) - plain + -(-plain // 3)


def split_text(text: str, max_tokens: int) -> list[str]:
    """Return a text in as few parts of about one size as have so many tokens at most."""
    number = -(-estimate_tokens(text) // max_tokens)
    while True:
        pieces = cut_text(text, -(-len(text) // number))
        if all(estimate_tokens(piece) <= max_tokens for piece in pieces) or number >= len(text):
            return pieces
        number += 1


def cut_text(text: str, max_chars: int) -> list[str]:
    """Return the parts of a text, none longer than so many characters; where they can, they end after a sentence."""
    pieces = []
    at = 0
    while len(text) - at > max_chars:
        end = at + max_chars
        low = at + max_chars * 3 // 4
        for ends in ("\n", "。", ". ", " "):
            found = text.rfind(ends, low, end)
            if found >= 0:
                end = found + len(ends)
                break
        pieces.append(text[at:end])
        at = end
    pieces.append(text[at:])
    return [piece for piece in pieces if piece.strip()] or [text]
