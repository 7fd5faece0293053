"""The terms of chunks as they are stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.text import term_codec

CHUNKS = st.lists(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 3), max_size=12), min_size=1, max_size=6)


@given(CHUNKS)
def test_few_terms_are_packed_as_many_are(chunks: list[list[int]]) -> None:
    packed = term_codec.pack_terms(chunks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_codec, "FEW_TERMS", -1)
        assert term_codec.pack_terms(chunks) == packed
    unpacked = [(keys.tolist(), counts.tolist()) for keys, counts in term_codec.unpack_terms(packed)]
    assert unpacked == [(sorted(set(chunk)), [chunk.count(key) for key in sorted(set(chunk))]) for chunk in chunks]


def test_a_document_without_chunks_has_no_terms() -> None:
    assert term_codec.unpack_terms(term_codec.pack_terms([])) == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("length", [4, 7, 8, 11, 20])
def test_a_blob_that_was_cut_off_is_refused(count: int, length: int) -> None:
    packed = term_codec.pack_terms([[1, 2, 3]] * count)
    with pytest.raises(ValueError, match=r"truncated|smaller"):
        term_codec.unpack_terms(packed[:length])
    with pytest.raises(ValueError, match=r"truncated|smaller"):
        term_codec.unpack_chunk_terms(packed[:length], 0)


def test_a_term_is_counted_up_to_the_largest_number_that_fits() -> None:
    [(keys, counts)] = term_codec.unpack_terms(term_codec.pack_terms([[7] * 70_000]))
    assert (keys.tolist(), counts.tolist()) == ([7], [65_535])
