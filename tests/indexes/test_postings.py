"""Inverted lists that are merged part by part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.indexes.embedded import postings

# Rows with counts by key, and whether they are kept; a part of which all are kept may have no mask.
ROW = st.tuples(st.dictionaries(st.integers(0, 9), st.integers(1, 9), max_size=4), st.booleans())
PARTS = st.lists(st.tuples(st.lists(ROW, max_size=5), st.booleans()), min_size=1, max_size=3)


def build(rows: list[dict[int, int]], has_counts: bool) -> postings.Postings:
    keys = [np.array(sorted(row), np.uint64) for row in rows]
    counts = [np.array([row[key] for key in sorted(row)], np.uint16) for row in rows]
    return postings.build(keys, counts if has_counts else None)


@pytest.mark.slow
@pytest.mark.parametrize("block_postings", [1, 3, 1_000_000])
@pytest.mark.parametrize("has_counts", [True, False])
@given(parts=PARTS)
def test_merged_lists_are_those_of_all_rows_together(
    block_postings: int, has_counts: bool, parts: list[tuple[list[tuple[dict[int, int], bool]], bool]]
) -> None:
    rows = [[row for row, _ in part] for part, _ in parts]
    masks = [np.array([is_kept for _, is_kept in part], np.bool_) if has_mask else None for part, has_mask in parts]
    kept = [row for part, has_mask in parts for row, is_kept in part if is_kept or not has_mask]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "BLOCK_POSTINGS", block_postings)
        merged = postings.merge([build(part, has_counts) for part in rows], [len(part) for part in rows], masks)
    wanted = build(kept, has_counts)
    for name in ("keys", "starts", "rows", "counts"):
        array, wanted_array = getattr(merged, name), getattr(wanted, name)
        assert array.dtype == wanted_array.dtype
        assert array.tolist() == wanted_array.tolist()
