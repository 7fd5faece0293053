"""Judged questions in, two halves of them out: one to choose a setting with, one that has never seen it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from bunko.errors import SourceError
from bunko.evaluation.dataset import Query

_FEWEST = 2


def halves(queries: Iterable[Query]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of both halves; languages and kinds are spread evenly, and the order of a file means nothing."""
    groups: dict[tuple[str, str], list[str]] = {}
    for query in queries:
        groups.setdefault((query.language, query.kind), []).append(query.id)
    sides: tuple[list[str], list[str]] = ([], [])
    for name in sorted(groups):
        for one in sorted(groups[name], key=_drawn):
            # The smaller side is next, so that groups of odd size do not all favour the first.
            sides[len(sides[0]) > len(sides[1])].append(one)
    return frozenset(sides[0]), frozenset(sides[1])


def enough(counted: int, held_out: int, measure: str) -> None:
    """Refuse to choose by too few questions."""
    if min(counted, held_out) < _FEWEST:
        raise SourceError(
            f"There are too few questions with {measure} to hold half of them back",
            hint="Add questions, or choose another --measure.",
        )


def _drawn(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
