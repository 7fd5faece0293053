"""Looking up the ids of documents."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bunko.indexes.embedded.snapshot import are_among

IDS = st.lists(st.integers(0, 50) | st.integers(0, 2**63 - 1), max_size=20)


@given(IDS, IDS)
def test_ids_are_found_whether_they_are_close_or_far_apart(ids: list[int], selected: list[int]) -> None:
    found = are_among(np.array(ids, np.int64), np.array(selected, np.int64))

    assert found.tolist() == [document_id in selected for document_id in ids]
