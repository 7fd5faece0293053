"""Inverted lists that are merged part by part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.indexes.embedded import postings

ROWS = st.lists(st.dictionaries(st.integers(0, 12), st.integers(1, 9), max_size=6), max_size=8)
PARTS = st.lists(st.tuples(ROWS, st.none() | st.randoms(use_true_random=False)), min_size=1, max_size=4)


def build(rows: list[dict[int, int]], has_counts: bool) -> postings.Postings:
    keys = [np.array(sorted(row), np.uint64) for row in rows]
    counts = [np.array([row[key] for key in sorted(row)], np.uint16) for row in rows]
    return postings.build(keys, counts if has_counts else None)


@pytest.mark.parametrize("block_postings", [1, 3, 1_000_000])
@pytest.mark.parametrize("has_counts", [True, False])
@given(parts=PARTS)
def test_merged_lists_are_those_of_all_rows_together(block_postings: int, has_counts: bool, parts: list) -> None:  # type: ignore[type-arg]
    masks = [None if rng is None else np.array([rng.random() < 0.5 for _ in rows], np.bool_) for rows, rng in parts]
    kept = [
        row
        for (rows, _), mask in zip(parts, masks, strict=True)
        for index, row in enumerate(rows)
        if mask is None or mask[index]
    ]
    wanted = build(kept, has_counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_BLOCK_POSTINGS", block_postings)
        merged = postings.merge([build(rows, has_counts) for rows, _ in parts], [len(rows) for rows, _ in parts], masks)
    for name in ("keys", "starts", "rows", "counts"):
        array, wanted_array = getattr(merged, name), getattr(wanted, name)
        assert array.dtype == wanted_array.dtype
        assert array.tolist() == wanted_array.tolist()
