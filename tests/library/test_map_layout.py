"""Vectors in two dimensions: what is near stays near, and the picture does not flip."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from bunko.errors import SettingsError
from bunko.library.overview.layout import Layout, align_layout, available_layouts, lay_out


def clusters(count: int = 60, dimension: int = 40, seed: int = 1) -> npt.NDArray[np.float32]:
    """Three clouds of vectors, one after the other."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((3, dimension))
    noise = 0.2 * random.standard_normal((count, dimension))
    return (np.repeat(centres, count // 3, axis=0) + noise).astype(np.float32)


def test_the_axes_are_those_of_a_singular_value_decomposition() -> None:
    vectors = clusters()
    layout = lay_out(vectors, "pca")
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = directions - directions.mean(axis=0)
    expected = centred @ np.linalg.svd(centred)[2][:2].T
    assert np.abs(layout.positions) == pytest.approx(np.abs(expected), abs=1e-4)


def test_documents_of_one_subject_are_together() -> None:
    positions = lay_out(clusters(), "pca").positions.reshape(3, 20, 2)
    middles = positions.mean(axis=1)
    spread = max(np.linalg.norm(positions - middles[:, None], axis=2).ravel())
    distances = [np.linalg.norm(middles[a] - middles[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(distances) > spread


def test_another_vector_is_placed_among_those_that_are_like_it() -> None:
    vectors = clusters()
    layout = lay_out(vectors, "pca")
    assert layout.place(vectors[0]) == pytest.approx(layout.positions[0].tolist(), abs=1e-5)
    assert layout.place(3 * vectors[0]) == pytest.approx(layout.positions[0].tolist(), abs=1e-5), (
        "its length is nothing"
    )
    assert layout.place(vectors[0][:10]) is None, "it is of another embedder"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_vectors_have_places_too(count: int) -> None:
    layout = lay_out(clusters()[:count], "pca")
    assert layout.positions.shape == (count, 2)
    assert np.isfinite(layout.positions).all()


def test_equal_vectors_are_all_in_the_middle() -> None:
    assert lay_out(np.ones((5, 8), np.float32), "pca").positions == pytest.approx(np.zeros((5, 2)), abs=1e-6)
    assert lay_out(np.zeros((5, 8), np.float32), "pca").positions.tolist() == [[0, 0]] * 5


def test_the_picture_does_not_flip_when_documents_come_and_go() -> None:
    vectors = clusters()
    names = [(1, f"{number}.md") for number in range(60)]
    old = lay_out(vectors, "pca")
    turned = old.turned(np.array([[0, 1], [-1, 0]], np.float32))  # whatever chance made of it
    new = lay_out(vectors[5:], "pca")
    aligned = align_layout(new, names[5:], turned, names)
    moved = np.linalg.norm(aligned.positions - turned.positions[5:], axis=1)
    assert moved.max() < 0.1
    assert aligned.place(vectors[7]) == pytest.approx(aligned.positions[2].tolist(), abs=1e-5), "queries turn with it"


def test_a_layout_without_documents_in_common_stays_as_it_is() -> None:
    layout = lay_out(clusters(), "pca")
    names = [(1, f"{number}.md") for number in range(60)]
    assert align_layout(layout, names, layout, [(2, uri) for _, uri in names]) is layout


def test_umap_that_is_not_installed_says_how_to_install_it() -> None:
    if "umap" in available_layouts():
        layout = lay_out(clusters(), "umap")
        assert layout.positions.shape == (60, 2)
        assert layout.place(clusters()[0]) is None
        return
    with pytest.raises(SettingsError, match="umap-learn is not installed") as raised:
        lay_out(clusters(), "umap")
    assert 'pip install "bunko[umap]"' in raised.value.hint
    assert isinstance(lay_out(clusters()[:3], "umap"), Layout)
