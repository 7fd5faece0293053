"""Place vectors in a plane so that those that are alike lie together, and stay where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

_SEED = 20
# Principal axes in which documents are compared: nearly as good as all 256 of the bundled embedder, and quicker.
_DIMENSIONS = 50
_ROUNDS_OF_AXES = 8
_NEIGHBOURS = 10
# Up to here each vector is compared with all others, beyond it with those of the nearest cells.
_MAX_COMPARED = 5000
_CELLS_SEARCHED = 8
# At first attraction is stronger, so that what belongs together meets before the others are in the way.
_EARLY_ATTRACTION = 6
_RATE = 1 / 3  # how far a point moves for each unit of force, times the number of points
_EARLY_ROUNDS, _ROUNDS, _ROUNDS_FROM_EARLIER = 100, 250, 40
# The force between two points falls off within a unit, so the grid must be finer than that.
_GRID_STEP = 0.4
_MIN_GRID, _MAX_GRID = 100, 512
_MAX_PAIRED = 600  # points; up to here all pairs are quicker than a grid
_PLACED_BESIDE = 5  # documents


class Layout(NamedTuple):
    """Positions of vectors, and how any other vector is placed among them."""

    positions: Array  # two columns
    mean: Array
    axes: Array  # a column for each principal axis
    reduced: npt.NDArray[np.float16]  # the vectors along these axes

    def place(self, vector: Array) -> tuple[float, float] | None:
        """Return the position of another vector, beside those most like it; None if it is of another embedder."""
        if len(self.mean) != len(vector) or not len(self.positions):
            return None
        reduced = (_unit_rows(vector[None, :]) - self.mean)[0] @ self.axes
        distances = np.linalg.norm(self.reduced.astype(np.float32) - reduced, axis=1)
        nearest = np.argsort(distances, kind="stable")[:_PLACED_BESIDE]
        # One that is twice as far counts a sixteenth: the middle between two subjects is neither.
        weights = (distances[nearest] + 1e-6) ** -4
        x, y = np.average(self.positions[nearest], axis=0, weights=weights)
        return float(x), float(y)


def lay_out(vectors: Array, earlier: Array | None = None) -> Layout:
    """Place vectors, whose lengths do not matter.

    `earlier`: where each was, not-a-number for those that are new. They are placed beside those most like them, and if
    most have a place, all of them only settle.
    """
    directions = _unit_rows(vectors)
    mean = directions.mean(axis=0) if len(directions) else np.zeros(directions.shape[1], np.float32)
    centred = directions - mean
    axes = _principal_axes(centred)
    reduced = centred @ axes
    return Layout(_positions(reduced, earlier), mean, axes, reduced.astype(np.float16))


def _positions(reduced: Array, earlier: Array | None) -> Array:
    count = len(reduced)
    if count < 4 or not reduced.any():
        return np.ascontiguousarray(np.pad(reduced[:, :2], ((0, 0), (0, max(0, 2 - reduced.shape[1])))))
    neighbours = _nearest_neighbours(reduced, min(_NEIGHBOURS, max(2, count // 6)))
    if earlier is None:
        earlier = np.full((count, 2), np.nan, np.float32)
    is_known: npt.NDArray[np.bool_] = np.isfinite(earlier[:, 0])
    if is_known.sum() * 2 < count:
        start = reduced[:, :2] / max(float(reduced[:, 0].std()), 1e-6)
        positions = _lie_flat(_descend(start, neighbours, _EARLY_ROUNDS, _ROUNDS))
    else:
        positions = _descend(_fill_in(earlier, is_known, neighbours), neighbours, 0, _ROUNDS_FROM_EARLIER)
    return _aligned(positions, earlier, is_known)


def _lie_flat(positions: Array) -> Array:
    """Return positions turned so that they are wider than they are high, as a screen is."""
    _, _, axes = np.linalg.svd(positions, full_matrices=False)
    flat: Array = positions @ axes.T.astype(np.float32)
    return flat


def _fill_in(earlier: Array, is_known: npt.NDArray[np.bool_], neighbours: npt.NDArray[np.intp]) -> Array:
    """Place what is new in the midst of its neighbours that have a place."""
    positions = np.where(is_known[:, None], earlier, np.nan)
    nowhere = np.nanmedian(positions, axis=0)
    for _ in range(3):  # the neighbours of new documents may be new themselves
        missing = np.flatnonzero(np.isnan(positions[:, 0]))
        beside = positions[neighbours[missing]]
        has_place = ~np.isnan(beside[:, :, 0]).all(axis=1)
        positions[missing[has_place]] = np.nanmedian(beside[has_place], axis=1)
    return np.where(np.isnan(positions), nowhere, positions).astype(np.float32)


def _aligned(positions: Array, earlier: Array, is_known: npt.NDArray[np.bool_]) -> Array:
    """Return positions moved, turned and mirrored so that what has an earlier place is as near to it as can be."""
    if is_known.sum() < 2:
        return positions
    here, there = positions[is_known], earlier[is_known]
    # The rotation of the orthogonal Procrustes problem.
    left, _, right = np.linalg.svd((here - here.mean(axis=0)).T @ (there - there.mean(axis=0)))
    turned: Array = ((positions - here.mean(axis=0)) @ (left @ right) + there.mean(axis=0)).astype(np.float32)
    return turned


def _descend(start: Array, neighbours: npt.NDArray[np.intp], early_rounds: int, rounds: int) -> Array:
    """Move points until those of neighbours lie together and all others push each other away: t-SNE.

    Every neighbour attracts alike, which is as good as weights by distance. All other points repel, and their sum is a
    convolution, so that a round costs the same for each point however many there are (Linderman et al., 2019).
    """
    count = len(neighbours)
    positions: Array = start.astype(np.float32)
    velocity: Array = np.zeros_like(positions)
    gains = np.ones_like(positions)
    for number in range(early_rounds + rounds):
        is_early = number < early_rounds
        attraction = _EARLY_ATTRACTION if is_early else 1
        pull = _attraction(positions, neighbours) / (2 * neighbours.size)
        gradient = attraction * pull - _repulsion(positions)
        gains = np.where(gradient * velocity < 0, gains + 0.2, np.maximum(gains * 0.8, 0.05))
        velocity *= 0.5 if is_early else 0.8
        velocity -= _RATE * count * gains * gradient
        # No point jumps farther than the others can follow.
        length = np.linalg.norm(velocity, axis=1, keepdims=True)
        velocity *= np.minimum(1, 5 / np.maximum(length, 5))
        positions += velocity
        positions -= positions.mean(axis=0)
    return positions


def _attraction(positions: Array, neighbours: npt.NDArray[np.intp]) -> Array:
    """Return how strongly each point is drawn by its neighbours, and by those whose neighbour it is."""
    x, y = np.ascontiguousarray(positions.T)
    across, along = x[:, None] - x.take(neighbours), y[:, None] - y.take(neighbours)
    weights = 1 / (1 + across**2 + along**2)
    tails, count = neighbours.ravel(), len(neighbours)
    pulls = [part.sum(axis=1) - np.bincount(tails, part.ravel(), count) for part in (weights * across, weights * along)]
    return np.asarray(np.stack(pulls, axis=1), np.float32)


def _repulsion(positions: Array) -> Array:
    """Return how strongly each point is pushed away by all others, the sum of all weights being 1.

    The force is the slope of a potential, 1 / (1 + distance²) from each point. Of many points it is computed on a grid.
    """
    if len(positions) <= _MAX_PAIRED:
        across, along = (column[:, None] - column[None, :] for column in positions.T)
        weights = 1 / (1 + across**2 + along**2)
        total = weights.sum() - len(positions)
        weights *= weights
        force = np.stack([(weights * across).sum(axis=1), (weights * along).sum(axis=1)], axis=1)
        return np.asarray(force / max(total, 1e-9), np.float32)
    low = positions.min(axis=0)
    width = float((positions.max(axis=0) - low).max())
    step = max(min(_GRID_STEP, width / _MIN_GRID), width / _MAX_GRID, 1e-3)
    size = int(width / step) + 6
    places = (positions - low) / step + 2.5
    cells = places.astype(np.int32)
    offsets = places - cells - 0.5
    # Each point is spread over the nine cells around it by quadratic splines.
    splines = [0.5 * (0.5 - offsets) ** 2, 0.75 - offsets**2, 0.5 * (0.5 + offsets) ** 2]
    shares = [splines[row][:, 0] * splines[column][:, 1] for row in range(3) for column in range(3)]
    flat = [(cells[:, 0] + row - 1) * size + cells[:, 1] + column - 1 for row in range(3) for column in range(3)]
    density = np.bincount(np.concatenate(flat), np.concatenate(shares), size * size).reshape(size, size)
    # The next length that a Fourier transform is quick with.
    padded = min(length for factor in (2, 3, 5) for power in range(14) if (length := factor << power) >= 2 * size)
    distance = np.minimum(np.arange(padded), padded - np.arange(padded)) * step
    kernel = 1 / (1 + distance[:, None] ** 2 + distance[None, :] ** 2)
    spectrum = np.fft.rfft2(kernel.astype(np.float32)) * np.fft.rfft2(density.astype(np.float32), (padded, padded))
    potential = np.fft.irfft2(spectrum, (padded, padded))[:size, :size]
    down, right = np.gradient(potential, step)
    total = sum(share * potential.ravel()[at] for share, at in zip(shares, flat, strict=True)).sum() - len(positions)
    slopes = (sum(share * slope.ravel()[at] for share, at in zip(shares, flat, strict=True)) for slope in (down, right))
    force = np.stack([*slopes], axis=1)
    return np.asarray(-0.5 * force / max(total, 1e-9), np.float32)


def _nearest_neighbours(points: Array, count: int) -> npt.NDArray[np.intp]:
    """Return the nearest other points of each; of many points, nearly all of them."""
    if len(points) <= _MAX_COMPARED:
        everything = np.arange(len(points))
        blocks = np.array_split(everything, max(1, len(points) // 500))
        return np.concatenate([_nearest_among(points, block, everything, count) for block in blocks])
    cell_count = int(np.sqrt(len(points)))
    centres, cell_of = _cells(points, cell_count)
    order = np.argsort(cell_of, kind="stable")
    members = np.split(order, np.searchsorted(cell_of[order], np.arange(1, cell_count)))
    near_cells = _nearest_among(centres, np.arange(cell_count), np.arange(cell_count), _CELLS_SEARCHED)
    neighbours = np.empty((len(points), count), np.intp)
    for cell, rows in enumerate(members):
        others = np.concatenate([members[other] for other in near_cells[cell]])
        if len(rows) + len(others) <= count:  # the cells near one that is far off may have a document each
            others = np.setdiff1d(order[:_MAX_COMPARED], rows)
        for start in range(0, len(rows), _MAX_COMPARED // 2):
            # Of a cell with half of all documents, as when they are copies of each other, any neighbours will do.
            block = rows[start : start + _MAX_COMPARED // 2]
            neighbours[block] = _nearest_among(points, block, np.concatenate([block, others])[:_MAX_COMPARED], count)
    return neighbours


def _nearest_among(
    points: Array, rows: npt.NDArray[np.int64], among: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.intp]:
    others = points[among]
    distances = np.einsum("ij,ij->i", others, others)[None, :] - 2 * (points[rows] @ others.T)
    distances[rows[:, None] == among[None, :]] = np.inf
    return among[np.argpartition(distances, count - 1, axis=1)[:, :count]]


def _cells(points: Array, count: int) -> tuple[Array, npt.NDArray[np.int64]]:
    """Divide points by k-means, a few rounds of it; return the middles, and the number of the cell of each point."""
    centres = points[np.random.default_rng(_SEED).choice(len(points), count, replace=False)]
    for _ in range(6):
        cell_of = (np.einsum("ij,ij->i", centres, centres) - 2 * (points @ centres.T)).argmin(axis=1)
        order = np.argsort(cell_of, kind="stable")
        cells, starts = np.unique(cell_of[order], return_index=True)
        sums = np.add.reduceat(points[order], starts, axis=0)
        centres[cells] = sums / np.bincount(cell_of, minlength=count)[cells, None]
    return centres, cell_of


def _principal_axes(centred: Array) -> Array:
    """Return the directions in which vectors differ most, as columns.

    By orthogonal iteration, which takes as long as a few products with the vectors: a covariance matrix of 3,072
    dimensions would take minutes.
    """
    dimension = centred.shape[1]
    columns = min(_DIMENSIONS, dimension, len(centred))
    if columns == 0 or not centred.any():
        return np.zeros((dimension, min(2, dimension)), np.float32)
    basis = np.random.default_rng(_SEED).standard_normal((dimension, columns)).astype(np.float32)
    for _ in range(_ROUNDS_OF_AXES):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0].astype(np.float32)
    # Within the space that was found, the axes in the order of their lengths.
    _, axes = np.linalg.eigh((projected := centred @ basis).T @ projected)
    principal_axes: Array = (basis @ axes[:, ::-1]).astype(np.float32)
    # The largest number of an axis is positive, so that the same vectors always look the same.
    signs = np.sign(principal_axes[np.abs(principal_axes).argmax(axis=0), np.arange(columns)])
    return principal_axes * np.where(signs == 0, 1, signs)


def _unit_rows(vectors: Array) -> Array:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Array = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit
