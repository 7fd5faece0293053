"""Divide a map into areas where documents lie close together, coarse to fine, and name each by its key phrases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bunko.search.keyphrases import name_groups

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.intp]

_FAR = 0.02  # of the documents of an area may lie outside its box
_GRID = 192  # cells along each side
_AREAS = (10, 40, 160)  # of each level: as many as a person takes in at a glance, and finer ones to zoom in
_MIN_DOCUMENTS = 60  # of a map; the titles of fewer can be read
_DOCUMENTS_OF_AN_AREA = 6  # on average, at least
_FEW = 5  # documents, whose titles say enough
_MOST = 0.8  # of the documents of the coarser area around it, which has a name already
_SPREADS = [_GRID / 6 * 0.87**step for step in range(26)]  # of the weight of a document, in cells of the grid
_READ_OF_AN_AREA = 24  # documents, of each of the finest
LANGUAGES: tuple[Literal["", "ja", "en"], ...] = ("", "ja", "en")
_NAMED: tuple[Literal["ja", "en"], ...] = ("ja", "en")
_MIN_SHARE = 0.15  # of the documents of an area, for a name in their language


@dataclass(frozen=True, slots=True)
class Area:
    """Documents that lie close together; `names` has a language only if enough of the documents are in it."""

    level: int  # 0: the coarsest
    names: dict[str, str]
    x: float  # of the document in their midst
    y: float
    box: list[float]  # least x and y, greatest x and y of nearly all of them
    count: int

    def name(self, language: str) -> str:
        """Return the name for a reader of a language, in another one if there is none in it."""
        return self.names.get(language) or next(iter(self.names.values()), "")


class Text(NamedTuple):
    """What the name of an area is taken from."""

    title: str
    beginning: str
    language: Literal["", "ja", "en"]


def find_areas(positions: npt.NDArray[np.float32], texts: Sequence[Text]) -> tuple[list[Area], Numbers]:
    """Return the areas of all levels, the largest of each first, and the coarsest area of each document or -1."""
    first: Numbers = np.full(len(positions), -1)
    areas: list[Area] = []
    levels = _divide(positions) if len(positions) >= _MIN_DOCUMENTS else []
    for level, (area_of, names) in enumerate(zip(levels, _names(levels, texts), strict=True)):
        counts = np.bincount(area_of)
        for number in np.argsort(-counts, kind="stable").tolist():
            is_inside = area_of == number
            around = int((levels[level - 1] == levels[level - 1][is_inside.argmax()]).sum()) if level else 0
            # Without a name: its documents have nothing in common that others have not.
            if number not in names or (level and (counts[number] < _FEW or counts[number] > _MOST * around)):
                continue
            if level == 0:
                first[is_inside] = len(areas)
            inside = positions[is_inside]
            middle = inside[((inside - np.median(inside, axis=0)) ** 2).sum(axis=1).argmin()]
            low, high = np.quantile(inside, (_FAR, 1 - _FAR), axis=0)
            x, y, *box = (float(value) for value in (*middle, *low, *high))
            areas.append(Area(level, names[number], x, y, box, int(counts[number])))
    return areas, first


def _divide(positions: npt.NDArray[np.float32]) -> list[Numbers]:
    """Return the area of each document at each level, the coarsest first; each lies within one of the level before."""
    most = max(1, len(positions) // _DOCUMENTS_OF_AN_AREA)
    wanted = [number for number in _AREAS if 1.5 * number < most] + [min(most, _AREAS[-1])]
    step = max(float(np.ptp(positions, axis=0).max()) / (_GRID - 1), 1e-9)
    cells = ((positions - positions.min(axis=0)) / step).astype(np.intp)
    flat = cells[:, 0] * _GRID + cells[:, 1]
    weights = np.bincount(flat, minlength=_GRID * _GRID).reshape(_GRID, _GRID).astype(np.float32)
    # The finest areas are hills of density, for which the eye looks; coarser ones are hills beside each other.
    for spread in _SPREADS:
        hills = _without_small(_hill_tops(weights, spread)[flat], len(positions) / wanted[-1] / 6)
        if hills.max() + 1 >= wanted[-1]:
            break
    levels = [hills]
    for number in wanted[::-1]:
        if hills.max() + 1 > number:
            levels.append(_merge(positions, levels[-1], number))
    return levels[: -len(_AREAS) - 1 : -1]


def _hill_tops(weights: npt.NDArray[np.float32], spread: float) -> Numbers:
    """Return for each cell the one at which somebody arrives who always goes uphill."""
    distance = np.arange(_GRID)[:, None] - np.arange(_GRID)[None, :]
    bell = np.exp(-0.5 * (distance / spread) ** 2).astype(np.float32)
    density = np.pad(bell @ weights @ bell.T, 1, constant_values=-1)
    shifts = [(row, column) for row in (0, -1, 1) for column in (0, -1, 1)]  # the cell itself wins a tie
    around = np.stack([np.roll(density, (-row, -column), (0, 1))[1:-1, 1:-1] for row, column in shifts])
    steps = np.array([row * _GRID + column for row, column in shifts])
    uphill: Numbers = (np.arange(_GRID * _GRID).reshape(_GRID, _GRID) + steps[around.argmax(axis=0)]).ravel()
    while not np.array_equal(uphill, farther := uphill[uphill]):
        uphill = farther
    return uphill


def _without_small(top_of: Numbers, least: float) -> Numbers:
    """Number the hills of documents; those of few documents are part of the nearest larger one."""
    tops, hill_of, counts = np.unique(top_of, return_inverse=True, return_counts=True)
    large = np.flatnonzero(counts >= min(least, counts.max()))
    places = np.stack([tops // _GRID, tops % _GRID], axis=1)
    distances = ((places[:, None] - places[None, large]) ** 2).sum(axis=2)
    merged: Numbers = distances.argmin(axis=1)[hill_of]
    return merged


def _merge(positions: npt.NDArray[np.float32], area_of: Numbers, wanted: int) -> Numbers:
    """Unite areas by Ward's method, those first whose documents get the least farther from their middle by it."""
    counts = np.bincount(area_of).astype(np.float64)
    middles = np.stack([np.bincount(area_of, column) for column in positions.T], axis=1) / counts[:, None]
    number_of = np.arange(len(counts))
    while len(counts) > wanted:
        distances = ((middles[:, None] - middles[None]) ** 2).sum(axis=2)
        costs = distances * (counts[:, None] * counts[None] / (counts[:, None] + counts[None]))
        np.fill_diagonal(costs, np.inf)
        kept, gone = sorted(np.unravel_index(costs.argmin(), costs.shape))
        middles[kept] = np.average(middles[[kept, gone]], axis=0, weights=counts[[kept, gone]])
        counts[kept] += counts[gone]
        middles, counts = np.delete(middles, gone, axis=0), np.delete(counts, gone)
        number_of[number_of == gone] = kept
        number_of[number_of > gone] -= 1
    return number_of[area_of]


def _names(levels: Sequence[Numbers], texts: Sequence[Text]) -> list[dict[int, dict[str, str]]]:
    """Return for each level the names of its areas by language."""
    names: list[dict[int, dict[str, str]]] = [defaultdict(dict) for _ in levels]
    if not levels:
        return names
    read = np.concatenate([_some(np.flatnonzero(levels[-1] == area)) for area in range(int(levels[-1].max()) + 1)])
    languages = np.array([texts[row].language for row in read.tolist()])
    for language in _NAMED:
        rows = read[languages == language]
        divisions = [
            (
                area_of[rows].tolist(),
                {area: next(iter(by_language.values())) for area, by_language in level_names.items()},
            )
            for area_of, level_names in zip(levels, names, strict=True)
        ]
        named = name_groups([texts[row][:2] for row in rows.tolist()], divisions, language)
        for area_of, level_names, new_names in zip(levels, names, named, strict=True):
            counts, all_counts = np.bincount(area_of[rows], minlength=len(area_of)), np.bincount(area_of[read])
            for area, name in new_names.items():
                if counts[area] >= _MIN_SHARE * all_counts[area]:
                    level_names[area][language] = name
    return names


def _some(rows: Numbers) -> Numbers:
    return rows[:: -(-len(rows) // _READ_OF_AN_AREA)]
