"""Which differences between two indexes keep a library from switching."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

import bunko
from bunko import indexes
from bunko.errors import LibraryError
from bunko.library.moving import sample_searches
from bunko.runtime.observer import NO_OBSERVER
from bunko.types import Tool


@pytest.mark.parametrize(
    ("new", "is_close"),
    [
        ([(1, 3.5653), (2, 2.7727), (3, 2.7724)], True),
        # Of many chunks with nearly the same words, the first stage may miss one.
        ([(1, 3.5653), (4, 2.7724), (3, 2.7724)], True),
        ([(1, 3.5653), (2, 2.7625), (3, 2.7624)], False),  # other scores
        ([(1, 3.5653), (3, 2.7724), (4, 2.7)], False),  # a worse one instead
        ([(1, 3.5653), (2, 2.7727)], False),
    ],
)
def test_an_index_that_searches_approximately_may_exchange_chunks_of_nearly_equal_scores(
    new: list[tuple[int, float]], is_close: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"old": [(1, 3.5653), (2, 2.7727), (3, 2.7724)], "new": new}
    monkeypatch.setattr(sample_searches, "search_sample", lambda store, index, sample: (words[index], [], words[index]))
    sample = sample_searches.SampleSearch(Tool("notes"), "京都の寺", None)

    def compare(*, is_approximate: bool) -> sample_searches.SearchComparison:
        first: Any = (None, "old")
        second: Any = (None, "new")
        return sample_searches.compare_indexes(first, second, [sample], NO_OBSERVER, is_approximate=is_approximate)

    if is_close:
        comparison = compare(is_approximate=True)
        assert (comparison.searches, comparison.close) == (1, int(new[1][0] == 4))
    else:
        with pytest.raises(LibraryError, match="ranks differently") as raised:
            compare(is_approximate=True)
        assert "milvus.candidates" in raised.value.hint
    if new != words["old"]:
        with pytest.raises(LibraryError, match="ranks differently"):
            compare(is_approximate=False)


@pytest.mark.parametrize(("new", "same_first"), [([(1, 2.7727), (2, 2.7724)], 1), ([(3, 2.7728), (1, 2.7727)], 0)])
def test_a_comparison_counts_the_searches_with_the_same_first_hit(
    new: list[tuple[int, float]], same_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hits: Any = {"old": [(1, 2.7727), (2, 2.7724)], "new": new}
    monkeypatch.setattr(sample_searches, "search_sample", lambda store, index, sample: (hits[index], [], hits[index]))
    first, second = cast("Any", (None, "old")), cast("Any", (None, "new"))
    samples = [sample_searches.SampleSearch(Tool("notes"), "京都の寺", None)]
    comparison = sample_searches.compare_indexes(first, second, samples, NO_OBSERVER, is_approximate=True)
    assert (comparison.searches, comparison.same_first) == (1, same_first)


def test_questions_are_embedded_as_questions(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Temples\n\nThe temple in Kyoto is old. Its garden is green and quiet.\n")
    with bunko.open(tmp_path, environ={}, embedding_provider="hashing") as library:
        library.reindex()
        samples = sample_searches.sample_searches(library.store, library.tools())
        questions = sample_searches.embed_questions(samples, library.embedder_of)
        [sample], [question], embedder = samples, questions, library.embedder()
        assert sample.query == question.query
        assert embedder is not None
        assert question.vector is not None
        assert question.vector.tolist() == embedder.embed([question.query], query=True)[0].tolist()
        assert sample.vector is not None
        assert sample.vector.tolist() != question.vector.tolist()


def test_a_sample_search_ranks_as_a_search_does_that_reads_nothing_closely(tmp_path: Path) -> None:
    topics = ("temples", "gardens", "trains", "rivers", "markets", "bridges")
    for number, topic in enumerate(topics):
        sentences = [f"The {other} are on page {number + at}, with a map of each." for at, other in enumerate(topics)]
        text = f"# {topic.title()}\n\nThis page is about {topic} and what they cost. {' '.join(sentences)}"
        (tmp_path / f"{topic}.md").write_text(text)
    with bunko.open(tmp_path, environ={"BUNKO_EMBEDDING_PROVIDER": "hashing"}) as library:
        library.reindex()
        [tool], embedder, query = library.tools(), library.embedder(), "What do the gardens cost?"
        assert embedder is not None
        index = indexes.build("embedded", library.store, None)
        sample = sample_searches.SampleSearch(tool, query, embedder.embed([query], query=True)[0])
        words, nearest, fused = sample_searches.search_sample(library.store, index, sample)
        for mode, sample_hits in (("bm25", words), ("semantic", nearest), ("hybrid", fused)):
            hits = library.search(query, mode=mode, top_k=10).hits  # type: ignore[arg-type]
            chunks = library.store.documents.chunks([chunk_id for chunk_id, _ in sample_hits])
            assert len(hits) == len(topics)
            assert [chunks[chunk_id].uri for chunk_id, _ in sample_hits] == [hit.uri for hit in hits]
        assert [score for _, score in fused] == pytest.approx([hit.score for hit in hits])
