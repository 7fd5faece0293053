"""Split texts that are too long for a model, and average the vectors of the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from bunko.types import Vectors

# What to do with a text that is too long: average the vectors of its parts, or embed only its beginning.
LongTextPolicy = Literal["average", "cut"]


def mean_vector(rows: Sequence[Vectors], weights: Sequence[int]) -> Vectors:
    """Return the unit row of a text: the mean of the rows of its parts, weighted by their lengths."""
    if len(rows) == 1:
        return rows[0]
    total = np.average(np.stack(rows), axis=0, weights=weights)
    length = np.linalg.norm(total)
    # Opposite vectors cancel out; the first part says best what a text is about.
    unit: Vectors = (total / length).astype(np.float32) if length else rows[0]
    return unit


def join_parts(rows: Vectors, parts_by_text: Sequence[Sequence[str]]) -> Vectors:
    """Return one row per text from the rows of the parts of all texts."""
    if len(rows) == len(parts_by_text):
        return rows
    vectors, start = [], 0
    for parts in parts_by_text:
        vectors.append(mean_vector(list(rows[start : start + len(parts)]), [len(part) for part in parts]))
        start += len(parts)
    return np.stack(vectors)


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of a text's tokens: a third for each ASCII character, one for any other."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return len(text) - ascii_count + -(-ascii_count // 3)


def split_text(text: str, max_tokens: int) -> list[str]:
    """Split a text into as few parts of similar size as possible, each of at most `max_tokens`."""
    part_count = -(-estimate_tokens(text) // max_tokens)
    while True:
        parts = cut_text(text, -(-len(text) // part_count))
        if all(estimate_tokens(part) <= max_tokens for part in parts) or part_count >= len(text):
            return parts
        part_count += 1


def cut_text(text: str, max_chars: int) -> list[str]:
    """Split a text into parts of at most `max_chars` characters, at the end of a sentence where possible."""
    parts = []
    start = 0
    while len(text) - start > max_chars:
        end = start + max_chars
        earliest = start + max_chars * 3 // 4
        for separator in ("\n", "。", ". ", " "):
            position = text.rfind(separator, earliest, end)
            if position >= 0:
                end = position + len(separator)
                break
        parts.append(text[start:end])
        start = end
    parts.append(text[start:])
    return [part for part in parts if part.strip()] or [text]


def split_to_fit(
    text: str, token_count: int, max_tokens: int, count_tokens: Callable[[Sequence[str]], Sequence[int]]
) -> list[str]:
    """Split a text into parts of at most `max_tokens`; parts that cannot be cut further are kept."""
    if token_count <= max_tokens:
        return [text]
    pieces = cut_text(text, max(-(-len(text) // max(-(-token_count // max_tokens), 2)), 1))
    if pieces == [text]:
        return pieces
    counts = zip(pieces, count_tokens(pieces), strict=True)
    return [part for piece, count in counts for part in split_to_fit(piece, count, max_tokens, count_tokens)]
