"""Lay vectors out in two dimensions, and turn a layout so that it looks like the one before."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bunko.errors import SettingsError
from bunko.runtime.installation import install_command

if TYPE_CHECKING:
    import numpy.typing as npt

LayoutName = Literal["pca", "umap"]
# Columns of the iteration: more than two, so that it converges although the second and the third axis are much alike.
_COLUMNS = 8
_ROUNDS = 30
_SEED = 20


class Layout(NamedTuple):
    """Positions of vectors, and for the principal axes how any other vector is placed among them."""

    positions: npt.NDArray[np.float32]  # two columns
    mean: npt.NDArray[np.float32]  # empty if other vectors cannot be placed
    axes: npt.NDArray[np.float32]  # two columns

    def place(self, vector: npt.NDArray[np.float32]) -> tuple[float, float] | None:
        """Return the position of another vector, or None if it has none."""
        if len(self.mean) != len(vector):
            return None
        x, y = (_unit_rows(vector[None, :]) - self.mean)[0] @ self.axes
        return float(x), float(y)

    def turned(self, rotation: npt.NDArray[np.float32]) -> Layout:
        """Return the same layout, turned or mirrored."""
        axes = self.axes @ rotation if len(self.axes) else self.axes
        return Layout(self.positions @ rotation, self.mean, axes)


def available_layouts() -> list[LayoutName]:
    """Return the layouts that can be computed here; nothing is imported."""
    return ["pca", "umap"] if find_spec("umap") else ["pca"]


def lay_out(vectors: npt.NDArray[np.float32], layout: LayoutName) -> Layout:
    """Lay out vectors, whose lengths do not matter."""
    directions = _unit_rows(vectors)
    return _umap_layout(directions) if layout == "umap" else _principal_layout(directions)


def align_layout(layout: Layout, names: list[tuple[int, str]], old: Layout, old_names: list[tuple[int, str]]) -> Layout:
    """Return a layout turned and mirrored so that the documents that an earlier one had are near where they were.

    The signs of principal axes are a matter of chance, and so is their order if they are about equally long.
    """
    row_of = {name: row for row, name in enumerate(old_names)}
    pairs = [(row, row_of[name]) for row, name in enumerate(names) if name in row_of]
    if len(pairs) < 2:
        return layout
    rows, old_rows = np.array(pairs).T
    here, there = layout.positions[rows], old.positions[old_rows]
    # The rotation of the orthogonal Procrustes problem.
    left, _, right = np.linalg.svd((here - here.mean(axis=0)).T @ (there - there.mean(axis=0)))
    return layout.turned((left @ right).astype(np.float32))


def _principal_layout(directions: npt.NDArray[np.float32]) -> Layout:
    mean = directions.mean(axis=0) if len(directions) else np.zeros(directions.shape[1], np.float32)
    centred = directions - mean
    axes = _principal_axes(centred)
    return Layout(centred @ axes, mean, axes)


def _principal_axes(centred: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the two directions in which vectors differ most, as columns.

    By orthogonal iteration, which takes as long as a few products with the vectors: a covariance matrix of 3,072
    dimensions would take minutes.
    """
    dimension = centred.shape[1]
    axes = np.zeros((dimension, 2), np.float32)
    columns = min(_COLUMNS, dimension, len(centred))
    if columns == 0 or not centred.any():
        return axes
    basis = np.random.default_rng(_SEED).standard_normal((dimension, columns)).astype(np.float32)
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0].astype(np.float32)
    # Within the space that was found, the axes in the order of their lengths.
    _, _, directions = np.linalg.svd(centred @ basis, full_matrices=False)
    principal_axes = (basis @ directions.T)[:, :2]
    # The largest number of an axis is positive, so that the same vectors always look the same.
    signs = np.sign(principal_axes[np.abs(principal_axes).argmax(axis=0), np.arange(principal_axes.shape[1])])
    axes[:, : principal_axes.shape[1]] = principal_axes * np.where(signs == 0, 1, signs)
    return axes


def _umap_layout(directions: npt.NDArray[np.float32]) -> Layout:
    nothing = np.zeros(0, np.float32)
    if len(directions) < 4:  # UMAP needs neighbours
        principal = _principal_layout(directions)
        return Layout(principal.positions, nothing, nothing)
    try:
        import umap
    except ImportError as error:
        raise SettingsError(
            "The package umap-learn is not installed", hint=f"Install it with: {install_command('umap')}"
        ) from error
    neighbours = min(15, len(directions) - 1)
    initial = _principal_layout(directions).positions  # begins with the picture that people know
    spread = max(float(np.abs(initial).max()), 1e-6)
    reducer = umap.UMAP(
        n_neighbors=neighbours, metric="cosine", init=initial * 10 / spread, random_state=_SEED, n_jobs=1
    )
    positions = np.asarray(reducer.fit_transform(directions), np.float32)
    return Layout(positions - positions.mean(axis=0), nothing, nothing)


def _unit_rows(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
