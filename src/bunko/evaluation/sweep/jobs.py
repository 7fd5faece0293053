"""Points of a grid in, their scores out: in units that one process measures, with the library open to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bunko.evaluation.cached_search import Ask, Desk
from bunko.evaluation.dataset import Query
from bunko.evaluation.run import averages
from bunko.evaluation.sweep.result import Score
from bunko.library.library import Library
from bunko.library.paths import Home
from bunko.settings import Settings
from bunko.stores import sqlite
from bunko.workers import Workers

if TYPE_CHECKING:
    from bunko.types import Vectors

_MOST_IN_UNIT = 64


@dataclass(frozen=True, slots=True)
class Unit:
    """Points that one process measures together: they share a way of cutting and a ranking by words."""

    cut: int
    asks: tuple[tuple[int, Ask], ...]


def units(left: Sequence[int], asks: Sequence[Ask], cuts: Sequence[int]) -> list[Unit]:
    """Return the points that are left in units; `asks` and `cuts` say how each is asked and cut."""
    together: dict[tuple[object, ...], list[int]] = {}
    for at in left:
        together.setdefault((cuts[at], asks[at].lexical), []).append(at)
    return [
        Unit(cuts[some[0]], tuple((at, asks[at]) for at in some[first : first + _MOST_IN_UNIT]))
        for some in together.values()
        for first in range(0, len(some), _MOST_IN_UNIT)
    ]


def spread(units: Sequence[Unit], workers: int, given: tuple[Any, ...]) -> Iterator[tuple[Unit, list[Score]]]:
    """Yield each unit with its scores as it is done: by so many processes, or by this one where there is little to do.

    Every process is prepared with what is `given`, and `let_go` ends that for this one.
    """
    done: set[int] = set()
    if workers > 1 and len(units) > 1:
        try:
            with Workers(min(workers, len(units)), _prepare, given) as pool:
                waiting = {pool.submit(_work, unit): at for at, unit in enumerate(units)}
                for future in as_completed(waiting):
                    at = waiting[future]
                    yield units[at], future.result()
                    done.add(at)
        except BrokenProcessPool:
            # Where memory runs out the system kills a worker; one process needs less of it than several.
            pass
    left = [unit for at, unit in enumerate(units) if at not in done]
    if left:
        _prepare(*given)
    for unit in left:
        yield unit, _work(unit)


class _Desks:
    """What a process needs to measure units: the library open to read, and a desk for each way of cutting."""

    def __init__(
        self, home: Home, cuts: Sequence[tuple[str, Settings]], queries: Sequence[Query], vectors: Vectors | None,
        measure: str, tuning: frozenset[str], held_out: frozenset[str],
    ) -> None:  # fmt: skip
        self._home, self._cuts, self._queries, self._vectors = home, cuts, queries, vectors
        self._measure, self._tuning, self._held_out = measure, tuning, held_out
        self._store = sqlite.build(home.database, read_only=True)
        self._desks: dict[int, Desk] = {}

    def scores(self, unit: Unit) -> list[Score]:
        """Measure the points of a unit."""
        if unit.cut not in self._desks:
            tool, settings = self._cuts[unit.cut]
            library = Library(self._home, settings, self._store, read_only=True)
            self._desks = {unit.cut: Desk(library, tool, self._queries, self._vectors, self._measure)}
        found = self._desks[unit.cut].measured([ask for _, ask in unit.asks])
        return [self._score(values) for values in found]

    def _score(self, values: Sequence[Mapping[str, float]]) -> Score:
        named = list(zip(self._queries, values, strict=True))
        tuning, held_out = (
            averages(of for query, of in named if query.id in side).get(self._measure, 0.0)
            for side in (self._tuning, self._held_out)
        )
        return Score(tuning, held_out, averages(values))

    def close(self) -> None:
        self._store.close()


_prepared: list[_Desks] = []  # one at most: what this process was prepared with


def _prepare(*given: Any) -> None:
    _prepared[:] = [_Desks(*given)]


def _work(unit: Unit) -> list[Score]:
    return _prepared[0].scores(unit)


def let_go() -> None:
    """Close what this process was prepared with."""
    while _prepared:
        _prepared.pop().close()
