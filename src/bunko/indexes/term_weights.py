"""Weigh the terms of a query by how rare they are.

The spellings of one meaning share one weight, as if a text had one word for it: else a rare translation would outweigh
the common word that the query has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from bunko.types.records import QueryTerm


def idf(size: int, frequency: float) -> float:
    """Return the inverse document frequency of a key, positive even for a key in every row."""
    return log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def term_idfs(terms: Sequence[QueryTerm], frequencies: Sequence[int], size: int) -> list[float]:
    """Return the inverse document frequency of each term; terms of a group have that of the group."""
    group_frequencies: dict[int, float] = {}
    for (_, weight, _, group), frequency in zip(terms, frequencies, strict=True):
        if group >= 0 and weight * frequency >= group_frequencies.get(group, 0.0):
            group_frequencies[group] = weight * frequency
    return [
        idf(size, frequency if group < 0 else min(group_frequencies[group], size))
        for (_, _, _, group), frequency in zip(terms, frequencies, strict=True)
    ]


def countable_terms(terms: Sequence[QueryTerm], frequencies: Sequence[int]) -> list[bool]:
    """Return which terms count for the highest possible score: not spellings that no row has, if a row has another."""
    found_groups = {term.group for term, frequency in zip(terms, frequencies, strict=True) if frequency}
    return [
        frequency > 0 or term.group < 0 or term.group not in found_groups
        for term, frequency in zip(terms, frequencies, strict=True)
    ]
