"""The rows of chunks in an embedded view, which engines outside the library name by their ids."""

from __future__ import annotations

import numpy as np

from bunko.indexes.embedded import segment
from bunko.indexes.embedded.snapshot import SegmentView
from bunko.indexes.embedded.view import EmbeddedView
from bunko.text.term_codec import pack_terms, unpack_terms
from bunko.types.records import StoredChunk

TERMS = unpack_terms(pack_terms([[1, 2]]))[0]


def part(ids: list[int], alive: list[bool] | None = None) -> SegmentView:
    chunks = [StoredChunk(chunk_id, chunk_id, chunk_id, "", *TERMS, None) for chunk_id in ids]
    return SegmentView(segment.build(chunks, 0, {}), None if alive is None else np.array(alive))


def test_rows_are_found_by_their_chunk_ids_in_any_segment_and_order() -> None:
    view = EmbeddedView([part([30, 10, 20]), part([7, 8])], 1)
    assert view.rows_of([8, 20, 30]) == [4, 2, 0]
    assert view.chunk_ids(view.rows_of([7, 10])) == [7, 10]


def test_chunks_that_are_gone_have_no_row() -> None:
    view = EmbeddedView([part([1, 2, 3], [True, False, True]), part([2, 9])], 1)
    assert view.rows_of([2, 3, 4, 100, -1]) == [3, 2], "chunk 2 was written again, into the second segment"
    assert EmbeddedView([], 1).rows_of([1]) == []


def test_a_segment_sorts_its_ids_once_for_all_views() -> None:
    segment_view = part([5, 3])
    EmbeddedView([segment_view], 1).rows_of([3])
    order = segment_view.id_order()
    EmbeddedView([segment_view], 2).rows_of([5])
    assert segment_view.id_order() is order
