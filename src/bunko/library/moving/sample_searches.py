"""Compare the answers of two indexes with searches made from the library's own texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from bunko.errors import IndexFailure, LibraryError
from bunko.protocols import Embedder, Index, IndexView, Store
from bunko.runtime.observer import Observer
from bunko.search.rank import rank_text
from bunko.search.request import RankRequest
from bunko.text.language import detect_language
from bunko.text.sentences import sentence_ends
from bunko.types import Tool
from bunko.types.records import Ranking

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

COMPARE_STEP = "Comparing searches"
# Searches of a tool in each language, and as many as questions, whose vectors are not those of chunks: an engine that
# searches approximately finds the vectors that it has stored much better than others.
_PER_LANGUAGE, QUESTIONS_PER_LANGUAGE = 5, 50
# Documents that one search is looked for in, and hits that are compared.
_DOCUMENTS_PER_SEARCH, _HITS = 12, 10
_MAX_QUERY_CHARS = 60
# Scores are equal to four decimals.
_TOLERANCE = 1e-4
# An index that searches approximately may exchange chunks whose scores by words differ less, as a share.
_CLOSE = 1e-3
# Of ten nearest vectors, an engine that searches approximately may miss one.
_MIN_RECALL = 0.9

_HINT = "Check the library with bunko doctor, then run the same command again."
_APPROXIMATE_HINT = f"For Milvus, raise milvus.candidates. {_HINT}"

_Hits = list[tuple[int, float]]  # chunk ids and scores, best first


class SampleSearch(NamedTuple):
    """A search for a sentence of a chunk, with the vector of that chunk, or of the sentence as a question."""

    tool: Tool
    query: str
    vector: npt.NDArray[np.float32] | None


@dataclass(slots=True)
class SearchComparison:
    """How many searches were compared, and how many of the nearest vectors both indexes found."""

    searches: int = 0
    same_first: int = 0  # of them, those with the same first hit
    close: int = 0  # of them, those in which chunks of nearly equal scores by words were exchanged
    languages: set[str] = field(default_factory=set)
    nearest: int = 0
    nearest_in_both: int = 0

    @property
    def recall(self) -> float:
        """Return the share of the nearest vectors that the second index found too."""
        return self.nearest_in_both / self.nearest if self.nearest else 1.0


def sample_searches(store: Store, tools: Sequence[Tool], *, per_language: int = _PER_LANGUAGE) -> list[SampleSearch]:
    """Return searches for sentences of each tool, in Japanese and in English where it has both."""
    samples = []
    for tool in tools:
        counts = {"ja": 0, "en": 0}
        document_ids = store.changes.documents_since(tool.id, 0)
        step = max(1, len(document_ids) // (_DOCUMENTS_PER_SEARCH * per_language))
        for document_id in document_ids[::step]:
            for chunk in islice(store.changes.chunks_of([document_id]), 2):
                text = chunk.text.partition("\n")[2] or chunk.text  # the title comes first
                ends = [0, *sentence_ends(text), len(text)]
                sentence = " ".join(text[ends[len(ends) // 2 - 1] : ends[len(ends) // 2]].split())
                query = sentence[:_MAX_QUERY_CHARS] or text[:_MAX_QUERY_CHARS]
                language = detect_language(query)
                if language and counts[language] < per_language:
                    counts[language] += 1
                    samples.append(SampleSearch(tool, query, chunk.vector))
            if min(counts.values()) == per_language:
                break
    return samples


def embed_questions(
    samples: Sequence[SampleSearch], embedder_of: Callable[[Tool], Embedder | None]
) -> list[SampleSearch]:
    """Return the searches with the vectors that their sentences have as questions; raise EmbedderError if it fails."""
    questions = []
    for tool, group in groupby(samples, lambda sample: sample.tool):
        searches, embedder = list(group), embedder_of(tool)
        if embedder is not None and all(search.vector is not None for search in searches):
            vectors = embedder.embed([search.query for search in searches], query=True)
            searches = [search._replace(vector=vector) for search, vector in zip(searches, vectors, strict=True)]
        questions += searches
    return questions


def compare_indexes(
    first: tuple[Store, Index],
    second: tuple[Store, Index],
    samples: Sequence[SampleSearch],
    observer: Observer,
    *,
    is_approximate: bool = False,
) -> SearchComparison:
    """Search two indexes, and raise an error at the first search whose hits or scores differ.

    `is_approximate`: they may miss some of the nearest vectors, and some of many chunks with nearly equal scores by
    words, but what both find has the same scores.
    """
    comparison = SearchComparison()
    for number, sample in enumerate(samples, 1):
        observer.on_step(COMPARE_STEP, number, len(samples))
        old_words, old_nearest, old_fused = search_sample(*first, sample)
        new_words, new_nearest, new_fused = search_sample(*second, sample)
        has_same_words = are_equal(old_words[:_HITS], new_words[:_HITS])
        is_equal = has_same_words or (is_approximate and _are_close(old_words[:_HITS], new_words[:_HITS]))
        is_equal = is_equal and _scores_agree(old_nearest, new_nearest)
        has_same_arms = _ids(old_words) == _ids(new_words) and _ids(old_nearest) == _ids(new_nearest)
        if is_equal and (has_same_arms or not is_approximate):
            is_equal = are_equal(old_nearest, new_nearest) and are_equal(old_fused, new_fused)
        if not is_equal:
            raise LibraryError(
                f"A search of {sample.tool.name} ranks differently: {sample.query}",
                hint=f"Nothing was switched. {_APPROXIMATE_HINT if is_approximate else _HINT}",
            )
        comparison.searches += 1
        comparison.same_first += [chunk_id for chunk_id, _ in old_fused[:1]] == [
            chunk_id for chunk_id, _ in new_fused[:1]
        ]
        comparison.close += not has_same_words
        comparison.languages.add(detect_language(sample.query))
        new_ids = {chunk_id for chunk_id, _ in new_nearest[:_HITS]}
        comparison.nearest += len(old_nearest[:_HITS])
        comparison.nearest_in_both += sum(chunk_id in new_ids for chunk_id, _ in old_nearest[:_HITS])
    if comparison.recall < _MIN_RECALL:
        raise LibraryError(
            f"The new index finds only {comparison.recall:.0%} of the nearest vectors",
            hint="Nothing was switched. Raise chromadb.hnsw_search_ef and chromadb.hnsw_M, or use another index.",
        )
    return comparison


def search_sample(store: Store, index: Index, sample: SampleSearch) -> tuple[_Hits, _Hits, _Hits]:
    """Return the best chunks by words, by vectors, and by both."""
    vector = sample.vector
    request = RankRequest(sample.query, mode="bm25" if vector is None else "hybrid", row_count=_HITS)
    with store.read_transaction():
        view = index.view([sample.tool.id])
        # Without an embedder: what only vectors find is compared too, however far it is from the sentence.
        _, arms, scores, rows, _ = rank_text(view, None, sample.query, vector, request)
        if view.notices:  # it is away, and something else answered
            raise IndexFailure(view.notices[0].rstrip("."), hint="Nothing was switched.")
        return (
            _hits(view, arms.lexical),
            _hits(view, arms.semantic),
            _hits(view, Ranking(rows, [scores.final[row] for row in rows])),
        )


def _hits(view: IndexView, ranking: Ranking) -> _Hits:
    return list(zip(view.chunk_ids(list(ranking.rows)), map(float, ranking.scores), strict=False))


def are_equal(first: _Hits, second: _Hits) -> bool:
    """Return whether two rankings are equal to four decimals; chunks whose scores are that close may change places."""
    if len(first) != len(second):
        return False
    if any(abs(a[1] - b[1]) > _TOLERANCE for a, b in zip(first, second, strict=True)):
        return False
    last = first[-1][1] if first else 0.0
    scores = dict(second)
    # Of equal scores at the end, either may be left out.
    return all(
        abs(scores[chunk_id] - score) <= _TOLERANCE if chunk_id in scores else score - last <= _TOLERANCE
        for chunk_id, score in first
    )


def _are_close(first: _Hits, second: _Hits) -> bool:
    """Return whether what both rankings contain has the same scores, and every rank one that is as good."""
    ranks = zip(first, second, strict=False)
    return (
        len(first) == len(second)
        and _scores_agree(first, second)
        and all(new >= old - abs(old) * _CLOSE for (_, old), (_, new) in ranks)
    )


def _ids(hits: _Hits) -> set[int]:
    return {chunk_id for chunk_id, _ in hits}


def _scores_agree(first: _Hits, second: _Hits) -> bool:
    """Return whether what both rankings contain has the same scores."""
    scores = dict(second)
    return all(abs(scores[chunk_id] - score) <= _TOLERANCE for chunk_id, score in first if chunk_id in scores)
