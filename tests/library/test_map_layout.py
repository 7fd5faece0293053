"""Vectors in two dimensions: what is near stays near, and the picture does not flip."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from bunko.library.overview.layout import lay_out


def clusters(count: int = 60, dimension: int = 40, seed: int = 1) -> npt.NDArray[np.float32]:
    """Three clouds of vectors, one after the other."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((3, dimension))
    noise = 0.2 * random.standard_normal((count, dimension))
    return (np.repeat(centres, count // 3, axis=0) + noise).astype(np.float32)


def test_documents_of_one_subject_are_together() -> None:
    positions = lay_out(clusters()).positions.reshape(3, 20, 2)
    middles = positions.mean(axis=1)
    spread = max(np.linalg.norm(positions - middles[:, None], axis=2).ravel())
    distances = [np.linalg.norm(middles[a] - middles[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(distances) > spread


def test_another_vector_is_placed_among_those_that_are_like_it() -> None:
    vectors = clusters()
    layout = lay_out(vectors)
    assert layout.place(vectors[0]) == pytest.approx(layout.positions[0].tolist(), abs=0.01)
    assert layout.place(3 * vectors[0]) == pytest.approx(layout.positions[0].tolist(), abs=0.01), "length is nothing"
    x, y = layout.place(vectors[:20].mean(axis=0)) or (0, 0)
    distances = np.linalg.norm(layout.positions - [x, y], axis=1)
    assert distances.argmin() < 20, "between documents of the first cloud"
    assert layout.place(vectors[0][:10]) is None, "it is of another embedder"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_vectors_have_places_too(count: int) -> None:
    layout = lay_out(clusters()[:count])
    assert layout.positions.shape == (count, 2)
    assert np.isfinite(layout.positions).all()


def test_equal_vectors_are_all_in_the_middle() -> None:
    assert lay_out(np.ones((5, 8), np.float32)).positions == pytest.approx(np.zeros((5, 2)), abs=1e-6)
    assert lay_out(np.zeros((5, 8), np.float32)).positions.tolist() == [[0, 0]] * 5


def test_neighbours_stay_neighbours() -> None:
    vectors = clusters(600)
    positions = lay_out(vectors).positions
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = [set(nearest(directions, row)) & set(nearest(positions, row)) for row in range(0, 600, 10)]
    assert np.mean([len(rows) for rows in kept]) > 2, "of ten; chance keeps half of one within a cloud"


def nearest(points: npt.NDArray[np.float32], row: int) -> list[int]:
    distances = np.linalg.norm(points - points[row], axis=1)
    return [int(other) for other in np.argsort(distances)[1:11]]


def test_many_vectors_are_placed_as_few_are() -> None:
    positions = lay_out(clusters(6000, 8)).positions.reshape(3, 2000, 2)
    middles = positions.mean(axis=1)
    assert np.isfinite(positions).all()
    for cloud, middle in zip(positions, middles, strict=True):
        others = [other for other in middles if other is not middle]
        inside = np.linalg.norm(cloud - middle, axis=1)
        assert all(
            (inside < np.linalg.norm(cloud - other, axis=1)).mean() > 0.95
            for other in others
            if (other != middle).any()
        )


def test_copies_of_one_document_are_placed_too() -> None:
    vectors = np.concatenate([np.ones((6000, 8)), np.eye(8)]).astype(np.float32)
    assert np.isfinite(lay_out(vectors).positions).all()


def test_the_same_vectors_always_look_the_same() -> None:
    assert np.array_equal(lay_out(clusters(1500)).positions, lay_out(clusters(1500)).positions)


def test_documents_stay_where_they_are_when_others_come_and_go() -> None:
    vectors = clusters(90)
    rows = np.random.default_rng(2).permutation(90)
    old = lay_out(vectors[rows[:80]]).positions
    earlier = np.concatenate([old[5:], np.full((10, 2), np.nan, np.float32)])
    new = lay_out(vectors[rows[5:]], earlier).positions
    moved = np.linalg.norm(new[:75] - old[5:], axis=1)
    assert np.median(moved) < 0.05 * np.ptp(old, axis=0).max()
    cloud_of = rows[5:] // 30
    for row in range(75, 85):
        beside = np.linalg.norm(new[:75] - new[row], axis=1).argmin()
        assert cloud_of[beside] == cloud_of[row], "new documents are beside those like them"


def test_a_map_of_mostly_new_documents_is_laid_out_anew_but_does_not_flip() -> None:
    vectors = clusters(90)
    old = lay_out(vectors).positions
    turned = old @ np.array([[0, 1], [-1, 0]], np.float32)
    rows = np.arange(0, 90, 3)
    earlier = np.full((90, 2), np.nan, np.float32)
    earlier[rows] = turned[rows]
    new = lay_out(vectors, earlier).positions
    assert np.linalg.norm(new[rows] - turned[rows], axis=1).mean() < 0.1 * np.ptp(old, axis=0).max()
