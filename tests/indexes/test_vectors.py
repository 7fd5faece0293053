"""The vector scan: exact where rows are few, rescored where they are many."""

from __future__ import annotations

import numpy as np
import pytest

from bunko.indexes.embedded import segment
from bunko.indexes.embedded.snapshot import SegmentView, Snapshot
from bunko.indexes.embedded.vectors import cosines, nearest
from bunko.records import StoredChunk


def built(vectors: np.ndarray) -> segment.Segment:
    nothing = np.empty(0, np.uint64), np.empty(0, np.uint16)
    rows = [StoredChunk(n, n, n, "", *nothing, vector) for n, vector in enumerate(vectors)]
    return segment.build(rows, vectors.shape[1], {})


def unit(rows: int, size: int = 64) -> np.ndarray:
    vectors = np.random.default_rng(rows).normal(size=(rows, size)).astype(np.float32)
    units: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


@pytest.mark.parametrize("rows", [5, 700, 3000])
def test_the_nearest_rows_are_those_of_the_bare_product(rows: int) -> None:
    vectors = unit(rows)
    state = Snapshot([SegmentView(built(vectors))], 1)
    query = vectors[3] + 0.3 * unit(1)[0]
    found = nearest(state, query, 10, masks=[None])
    expected = np.argsort(-(vectors @ query))[:10]
    assert list(found.ranking.rows) == expected.tolist()
    assert list(found.ranking.scores) == pytest.approx((vectors @ query)[expected].tolist())
    assert found.mean == pytest.approx(float((vectors @ query).mean()), abs=1e-4)
    assert found.spread == pytest.approx(float((vectors @ query).std()), abs=1e-4)
    assert cosines(state, query, [4, 0]) == pytest.approx((vectors @ query)[[4, 0]].tolist())


def test_a_large_segment_is_scanned_coarsely_and_scored_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(5000)
    exact = Snapshot([SegmentView(built(vectors))], 1)
    monkeypatch.setattr(segment, "COARSE_ROWS", 1000)
    coarse = Snapshot([SegmentView(built(vectors))], 1)
    assert len(coarse.views[0].segment.coarse) == 5000
    mask = np.arange(5000) % 3 == 0
    for number in range(50):
        query = vectors[number] + 0.5 * unit(1)[0]
        for masks in ([None], [mask]):
            one, other = nearest(exact, query, 10, masks=masks), nearest(coarse, query, 10, masks=masks)
            assert list(one.ranking.rows) == list(other.ranking.rows)
            assert list(one.ranking.scores) == pytest.approx(list(other.ranking.scores))
            assert (one.mean, one.spread) == pytest.approx((other.mean, other.spread), abs=2e-3)


def test_only_rows_that_are_allowed_are_returned() -> None:
    state = Snapshot([SegmentView(built(unit(100)))], 1)
    mask = np.zeros(100, np.bool_)
    mask[[7, 8]] = True
    assert sorted(nearest(state, unit(100)[7], 10, masks=[mask]).ranking.rows) == [7, 8]
