"""How candidates from Milvus are scored, with exact products in place of Milvus."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from bunko.errors import IndexFailure
from bunko.indexes.milvus import cards as milvus_cards
from bunko.indexes.milvus.cards import CardReader, cards_of
from bunko.indexes.milvus.statistics import CopyStatistics, SearchStatistics, unpack_moments
from bunko.indexes.milvus.view import MilvusView, SearchedCopy, highest_ratio
from bunko.indexes.milvus.writer import StatisticsAccumulator
from bunko.protocols import Store
from bunko.search.query_analysis import analyse_query
from bunko.stores import memory
from bunko.types import Tool
from bunko.types.records import PreparedDocument, Ranking, StoredChunk
from tests.contracts.documents import prepared
from tests.contracts.reference_index import ReferenceView

WORDS = "サーバー 設定 検索 障害 復旧 手順 温泉 料理 予算 会議 server search budget recovery setting garden dog".split()
QUERIES = ("設定", "サーバーの設定", "障害から復旧する手順を教えてください", "search server", "温泉料理", "garden")
CANDIDATES = 100
DIMENSION = 8


class Rows:
    """The rows that Milvus would have, searched by their exact products."""

    def __init__(self, chunks: Sequence[StoredChunk], average_length: float) -> None:
        cards = cards_of(chunks, 1, 0)
        self.cards = {card.chunk_id: card.pack() for card in cards}
        self.sparse = {card.chunk_id: card.sparse_vector(average_length) for card in cards}
        self.dense = {chunk.chunk_id: chunk.vector for chunk in chunks}
        self.average_length, self.read = average_length, 0

    def read_cards(self, collection: str, ids: Sequence[int]) -> Mapping[int, str]:
        self.read += len(ids)
        return {row_id: self.cards[row_id] for row_id in ids if row_id in self.cards and self.is_in(row_id, collection)}

    def is_in(self, row_id: int, collection: str) -> bool:
        return collection == "rows" or collection == ("odd" if row_id % 2 else "even")

    def search(
        self, collection: str, field: str, vectors: Sequence[Any], limit: int, where: str
    ) -> list[list[tuple[int, float]]]:
        answers = []
        for vector in vectors:
            if field == "dense":
                products = {row: float(np.dot(dense, vector)) for row, dense in self.dense.items() if dense is not None}
            else:
                products = {
                    row: sum(weight * sparse.get(key, 0.0) for key, weight in vector.items())
                    for row, sparse in self.sparse.items()
                }
                products = {row: product for row, product in products.items() if product > 0}
            found = [item for item in products.items() if self.is_in(item[0], collection)]
            answers.append(sorted(found, key=lambda item: -item[1])[:limit])
        return answers


@pytest.fixture(scope="module")
def filled() -> tuple[Store, Tool, list[StoredChunk]]:
    """Give a store with documents of one tool."""
    store: Store = memory.build()
    tool = store.tools.put(Tool("docs"))
    rng = random.Random(3)
    documents, vectors = [], {}
    for number in range(400):
        text = "。".join("と".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 5)))
        document = prepared(f"{number}.md", f"{text}を教えてください" if number % 3 else text)
        key = str(number).encode()
        vectors[key] = np.array([rng.gauss(0, 1) for _ in range(DIMENSION)], np.float32)
        vectors[key] /= np.linalg.norm(vectors[key])
        documents.append(PreparedDocument(document.document, document.chunks, document.packed_terms, [key]))
    store.documents.write(tool.id, upsert=documents, vectors=vectors)
    chunks = list(store.changes.chunks_since(tool.id, 0))
    return store, tool, chunks


@pytest.fixture(scope="module")
def rows(filled: tuple[Store, Tool, list[StoredChunk]]) -> Rows:
    """Give rows that were written when the average length was another: products are only near the scores."""
    _, _, chunks = filled
    return Rows(chunks, 0.9 * sum(int(chunk.term_counts.sum()) for chunk in chunks) / len(chunks))


@pytest.fixture(scope="module")
def open_view(filled: tuple[Store, Tool, list[StoredChunk]], rows: Rows) -> Callable[..., MilvusView]:
    """Open a view of the rows in some collections."""
    store, tool, chunks = filled
    accumulator = StatisticsAccumulator()
    accumulator.add(cards_of(chunks, tool.id, 0), DIMENSION)
    statistics = accumulator.statistics(store.generation())
    store.index_statistics.replace(tool.id, "copy", statistics, accumulator.changes())
    moments = unpack_moments(statistics.vectors)

    def open_collections(*names: str) -> MilvusView:
        copies = [
            SearchedCopy(tool.id, name, DIMENSION, rows.average_length, moments, has_old_dates=False) for name in names
        ]
        search_statistics = SearchStatistics(store, [CopyStatistics(tool.id, "copy", statistics, {})], [], len(chunks))
        return MilvusView(
            rows.search, CardReader(rows.read_cards), store, [tool.id], [], copies, [], search_statistics, lambda: None,
            generation=store.generation(), candidates=CANDIDATES,
        )  # fmt: skip

    return open_collections


@pytest.fixture(scope="module")
def views(
    filled: tuple[Store, Tool, list[StoredChunk]], rows: Rows, open_view: Callable[..., MilvusView]
) -> tuple[MilvusView, ReferenceView, Rows]:
    store, _, chunks = filled
    return open_view("rows"), ReferenceView([chunks], store.generation()), rows


def rounded(ranking: Ranking) -> list[tuple[int, float]]:
    return [(row, round(score, 4)) for row, score in zip(*ranking, strict=True)]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("k", [3, 10])
def test_the_best_of_a_few_candidates_are_the_best_of_all(
    views: tuple[MilvusView, ReferenceView, Rows], query: str, k: int
) -> None:
    view, reference, _ = views
    analysis = analyse_query(query)
    assert rounded(view.rank(analysis.terms, k, k1=1.2, b=0.75)) == rounded(
        reference.rank(analysis.terms, k, k1=1.2, b=0.75)
    )


@pytest.mark.parametrize("query", QUERIES)
def test_rows_in_two_collections_are_ranked_as_in_one(
    open_view: Callable[..., MilvusView], views: tuple[MilvusView, ReferenceView, Rows], query: str
) -> None:
    view, (_, reference, _) = open_view("odd", "even"), views
    terms = analyse_query(query).terms
    assert rounded(view.rank(terms, 10, k1=1.2, b=0.75)) == rounded(reference.rank(terms, 10, k1=1.2, b=0.75))


def test_candidates_that_cannot_be_among_the_best_are_not_read(
    views: tuple[MilvusView, ReferenceView, Rows],
) -> None:
    view, _, rows = views
    terms = analyse_query("garden dog").terms
    before = rows.read
    assert len(view.rank(terms, 3, k1=1.2, b=0.75).rows) == 3
    assert rows.read - before < CANDIDATES


def test_the_nearest_rows_are_those_of_a_scan(views: tuple[MilvusView, ReferenceView, Rows]) -> None:
    view, reference, _ = views
    vector = np.ones(DIMENSION, np.float32) / np.sqrt(np.float32(DIMENSION))
    assert rounded(view.nearest(vector, 10).ranking) == rounded(reference.nearest(vector, 10).ranking)


def test_cards_are_read_once_until_there_are_too_many(
    views: tuple[MilvusView, ReferenceView, Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus_cards, "MAX_CACHED", 5)
    _, _, rows = views
    reader, ids, before = CardReader(rows.read_cards), sorted(rows.cards)[:8], rows.read
    assert list(reader.cards(ids[:4], ["rows"])) == ids[:4]
    assert list(reader.cards(ids[1:4], ["rows"])) == ids[1:4]
    assert rows.read - before == 4
    assert [card.pack() for card in reader.cards(ids, ["rows"]).values()] == [rows.cards[row] for row in ids]
    assert list(reader.cards(ids[:4], ["rows"])) == ids[:4]
    assert rows.read - before == 4 + 4 + 4


def test_a_row_that_is_deleted_during_a_search_keeps_its_card(
    open_view: Callable[..., MilvusView], rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus_cards, "MAX_CACHED", 0)
    view, terms = open_view("rows"), analyse_query("garden dog").terms
    found = view.rank(terms, 3, k1=1.2, b=0.75).rows
    matches = view.matches(terms, found)
    monkeypatch.setattr(rows, "cards", {})
    assert view.matches(terms, found) == matches
    unread = next(row for row in rows.sparse if row not in found)
    monkeypatch.setattr(rows, "sparse", {})
    with pytest.raises(IndexFailure, match="The index has changed during the search"):
        open_view("rows").matches(terms, [unread])


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.4, 0.0), (2.5, 0.5), (1.5, 1.0)])
@pytest.mark.parametrize("copied_average", [20.0, 100.0, 300.0])
def test_no_score_is_above_the_bound_of_its_product(k1: float, b: float, copied_average: float) -> None:
    bound = highest_ratio(k1, b, 100.0, copied_average)
    for length in (1.0, 10.0, 80.0, 100.0, 250.0, 400.0):
        for count in (1.0, 2.0, 5.0, 40.0, 400.0):
            score = (k1 + 1) * count / (count + k1 * (1 - b + b * length / 100.0))
            product = 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length / copied_average))
            assert score <= bound * product * (1 + 1e-9)
    assert bound >= 1, "that of an n-gram"
