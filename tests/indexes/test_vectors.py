"""The vector scan: over floats where rows are few, over codes and rescored where they are many."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bunko.indexes.embedded import bit_planes, candidates, codes, segment
from bunko.indexes.embedded.snapshot import SegmentView, Snapshot
from bunko.indexes.embedded.vectors import cosines, nearest, sampled_recall
from bunko.types.records import StoredChunk


def built(vectors: np.ndarray) -> segment.Segment:
    nothing = np.empty(0, np.uint64), np.empty(0, np.uint16)
    rows = [StoredChunk(n, n, n, "", *nothing, vector) for n, vector in enumerate(vectors)]
    return segment.build(rows, vectors.shape[1], {})


def exact_and_coded(vectors: np.ndarray) -> tuple[Snapshot, Snapshot]:
    """Return an index without codes, and one with all of them over the same rows."""
    plain = replace(built(vectors), codes=codes.no_codes(vectors.shape[1]))
    coded = replace(plain, codes=codes.encode(vectors))
    return Snapshot([SegmentView(plain)], 1), Snapshot([SegmentView(coded)], 1)


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


def test_a_scan_of_bytes_finds_what_a_scan_of_floats_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Half of the rows differ by less than a byte can tell.
    vectors = unit(5000)
    vectors[::2] = vectors[0] + 1e-3 * unit(2500)
    mask = np.arange(5000) % 3 == 0
    exact = Snapshot([SegmentView(built(vectors), alive) for alive in (None, ~mask)], 1)
    monkeypatch.setattr(codes, "BYTE_ROWS", 1000)
    coarse = Snapshot([SegmentView(built(vectors), alive) for alive in (None, ~mask)], 1)
    assert len(coarse.views[0].segment.codes.coarse) == 5000
    few = np.arange(5000) % 100 == 0
    for number in range(50):
        query = vectors[number] + 0.5 * unit(1)[0]
        for masks in ([None, ~mask], [mask, few], [few, few & mask]):
            one, other = nearest(exact, query, 10, masks=masks), nearest(coarse, query, 10, masks=masks)
            assert list(one.ranking.scores) == pytest.approx(list(other.ranking.scores), abs=1e-6)
            assert cosines(exact, query, other.ranking.rows) == pytest.approx(list(other.ranking.scores), abs=1e-6)
            assert (one.mean, one.spread) == pytest.approx((other.mean, other.spread), abs=1e-4)


def test_vectors_of_any_length_are_found_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(3000) * np.random.default_rng(1).uniform(0, 40, size=(3000, 1)).astype(np.float32)
    vectors[:100] = 0
    exact = Snapshot([SegmentView(built(vectors))], 1)
    monkeypatch.setattr(codes, "BYTE_ROWS", 1000)
    coarse = Snapshot([SegmentView(built(vectors))], 1)
    for query in (unit(1)[0], 30 * unit(1)[0], np.zeros(64, np.float32)):
        one, other = nearest(exact, query, 10, masks=[None]), nearest(coarse, query, 10, masks=[None])
        assert list(one.ranking.rows) == list(other.ranking.rows)
        assert list(one.ranking.scores) == pytest.approx(list(other.ranking.scores), rel=1e-5)


def test_the_nearest_of_many_equal_vectors_are_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(3000)
    vectors[500:2500] = vectors[7]
    monkeypatch.setattr(codes, "BYTE_ROWS", 1000)
    state = Snapshot([SegmentView(built(vectors))], 1)
    assert list(nearest(state, vectors[7], 10, masks=[None]).ranking.rows) == [7, *range(500, 509)]


def topics(rows: int, size: int = 64) -> np.ndarray:
    """Return vectors with a common direction, of many topics, as those of real texts are."""
    centres = unit(200, size)[np.random.default_rng(2).integers(200, size=rows)]
    vectors = unit(1, size)[0] + centres + 0.6 * unit(rows, size)
    units: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


@pytest.mark.slow
def test_bit_planes_find_nearly_all_of_the_nearest_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = topics(12_000)
    monkeypatch.setattr(codes, "PLANE_ROWS", 1000)
    exact, approximate = exact_and_coded(vectors)
    assert approximate.views[0].segment.codes.planes.shape == (128, 188)
    for allowed in (None, np.arange(12_000) % 10 != 0, np.arange(12_000) % 2 == 1):
        found = 0
        for number in range(40):
            query = vectors[number] + 0.2 * unit(1)[0]
            one, other = (nearest(state, query, 10, masks=[allowed]) for state in (exact, approximate))
            found += len({*one.ranking.rows} & {*other.ranking.rows})
            assert (one.mean, one.spread) == pytest.approx((other.mean, other.spread), abs=1e-4)
            assert allowed is None or allowed[list(other.ranking.rows)].all()
        assert found >= 0.99 * 400


def test_bit_planes_find_what_is_nearest_to_a_query_that_is_near_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = topics(12_000)
    monkeypatch.setattr(codes, "PLANE_ROWS", 1000)
    exact, approximate = exact_and_coded(vectors)
    # Some of its values are large, as in a short text, and the sign of a small one says little.
    queries = np.random.default_rng(7).standard_t(3, size=(40, 64)).astype(np.float32)
    found = 0
    for query in queries / np.linalg.norm(queries, axis=1, keepdims=True):
        one, other = (nearest(state, query, 10, masks=[None]) for state in (exact, approximate))
        found += len({*one.ranking.rows} & {*other.ranking.rows})
    assert found >= 0.9 * 400


@pytest.mark.parametrize("size", [40, 256, 300])
def test_sums_of_bit_planes_are_products_with_weights_that_are_powers_of_two(size: int) -> None:
    vectors, query = unit(9_001, size), unit(1, size)[0]
    mean, deviations = vectors.mean(axis=0), vectors.std(axis=0)
    planes = bit_planes.empty_planes(*vectors.shape)
    for start, end in ((0, 5), (5, 4_000), (4_000, 9_001)):
        bit_planes.write_rows(planes, start, vectors[start:end], mean, deviations)
    distances = (vectors - mean) / deviations
    levels = (distances > -0.98).astype(int) + (distances > 0) + (distances > 0.98)
    relative = np.abs(query * deviations) / np.sqrt(np.mean((query * deviations) ** 2)) / 2
    weights = np.sign(query) * 2.0 ** np.round(np.log2(relative))
    # Where the lower bit counts for nothing, a level is one of two.
    products = (levels // 2 * 2) @ np.where(np.abs(weights) >= 0.5, weights, 0)
    products += (levels % 2) @ np.where(np.abs(weights) >= 1, weights, 0)
    for allowed in (None, np.arange(9_001) % 3 == 0):
        rows = bit_planes.likely_nearest(planes, deviations, query, 500, 9_001, allowed)
        of_others = np.delete(products, rows) if allowed is None else np.delete(np.where(allowed, products, -1e9), rows)
        assert allowed is None or allowed[rows].all()
        assert products[rows].min() >= of_others.max()
        assert len(rows) >= 500
        assert np.count_nonzero(products[rows] > products[rows].min()) <= 562  # others are equal to the last one


def test_the_recall_of_bit_planes_is_measured_with_the_vectors_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(12_000)
    monkeypatch.setattr(codes, "PLANE_ROWS", 1000)
    monkeypatch.setattr(candidates, "MIN_BYTE_FACTOR", 5)  # too few: some are missed
    exact, approximate = exact_and_coded(vectors)
    assert sampled_recall(exact, 10, 30) is None
    large, alive = approximate.views[0].segment, np.arange(12_000) >= 5_000
    measured = sampled_recall(Snapshot([SegmentView(large, alive), SegmentView(built(unit(30)))], 1), 10, 30)
    assert measured is not None
    found, total = measured
    assert total == 300
    assert 30 <= found < 290


def test_rows_that_came_and_went_since_the_file_was_written_count_beside_bit_planes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors, added = topics(12_000), topics(400)[300:]
    monkeypatch.setattr(codes, "PLANE_ROWS", 1000)
    _, approximate = exact_and_coded(vectors)
    is_removed = np.arange(12_000) % 5 == 0
    state = Snapshot([approximate.views[0].without_rows(is_removed), SegmentView(built(added))], 2)
    for number in range(0, 100, 5):
        assert nearest(state, added[number], 1, masks=state.masks(None)).ranking.rows == [12_000 + number]
        rows = np.array(nearest(state, vectors[number], 10, masks=state.masks(None)).ranking.rows)
        assert not is_removed[rows[rows < 12_000]].any()


def test_a_filter_that_allows_few_rows_is_answered_exactly_beside_bit_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(12_000)  # of which bit planes alone say little
    monkeypatch.setattr(codes, "PLANE_ROWS", 1000)
    exact, approximate = exact_and_coded(vectors)
    mask = np.arange(12_000) % 40 == 0
    for number in range(20):
        one, other = (nearest(state, unit(20)[number], 10, masks=[mask]) for state in (exact, approximate))
        assert list(one.ranking.rows) == list(other.ranking.rows)


@pytest.mark.parametrize("size", [63, 64, 256, 300])
def test_the_codes_of_a_merged_file_are_those_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(codes, "BYTE_ROWS", 100)
    monkeypatch.setattr(codes, "PLANE_ROWS", 100)
    vectors = unit(500, size)
    alive = np.arange(300) % 7 != 0
    parts = [built(vectors[:300]), built(vectors[300:330]), built(vectors[330:])]
    segment.merge_into(tmp_path / "file", parts, [alive, None, None], {})
    merged, expected = (
        segment.load(tmp_path / "file", check=True),
        built(np.concatenate([vectors[:300][alive], vectors[300:]])),
    )
    in_memory = segment.merge(parts, [alive, None, None], {})
    for made in (merged, in_memory):
        for name in ("coarse", "scales", "max_norm"):
            assert np.array_equal(getattr(made.codes, name), getattr(expected.codes, name))
        assert np.allclose(made.codes.total, expected.codes.total, atol=1e-4)
        assert np.allclose(made.codes.products, expected.codes.products, atol=1e-4)
        assert np.mean(made.codes.planes == expected.codes.planes) > 0.99  # the mean may differ in the last digit


def test_only_rows_that_are_allowed_are_returned() -> None:
    state = Snapshot([SegmentView(built(unit(100)))], 1)
    mask = np.zeros(100, np.bool_)
    mask[[7, 8]] = True
    assert sorted(nearest(state, unit(100)[7], 10, masks=[mask]).ranking.rows) == [7, 8]


@pytest.mark.parametrize("size", [64, 2000])
def test_bytes_are_multiplied_alike_without_simsimd(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    matrix = np.random.default_rng(size).integers(-127, 128, (1300, size), np.int8)
    vector, rows = matrix[7], np.arange(0, 1300, 2)
    expected = matrix.astype(np.int64) @ vector.astype(np.int64)
    for is_missing in (False, True):
        candidates.load_multiplication.cache_clear()
        with monkeypatch.context() as patch:
            if is_missing:
                patch.setitem(sys.modules, "simsimd", None)
            assert candidates.byte_products(matrix, vector, None).tolist() == pytest.approx(expected.tolist())
            assert candidates.byte_products(matrix, vector, rows).tolist() == pytest.approx(expected[rows].tolist())
            assert (candidates.load_multiplication() is candidates.multiply_blocks) is is_missing
    candidates.load_multiplication.cache_clear()
