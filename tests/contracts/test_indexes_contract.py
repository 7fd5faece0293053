"""What every index promises; each must rank like the plain reference of `reference_index.py`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

from bunko import indexes, stores
from bunko.embedders import hashing
from bunko.errors import UnknownName
from bunko.protocols import Index, IndexView, Store
from bunko.search.hits import find_hits
from bunko.search.query_analysis import analyse_query
from bunko.search.request import RankRequest
from bunko.stores import memory
from bunko.text import analyzer, ngrams
from bunko.text.sentence_codec import pack_sentences
from bunko.types import MODES, Mode, Tool
from bunko.types.ranking import DEFAULT_RANKING, RankingOptions
from bunko.types.records import Filter, NearestRows, PreparedDocument, QueryTerm, Ranking
from tests.contracts.documents import embed_five, prepared
from tests.contracts.reference_index import ReferenceIndex
from tests.scale.engines import ENGINES

if TYPE_CHECKING:
    from bunko.types import SentenceSubwords

KINDS = ("embedded", "reference")
ENGINE_PARAMS = [pytest.param(engine, marks=pytest.mark.scale) for engine in ENGINES]
EMBEDDER = hashing.build(32)
DOCUMENTS = {
    "ja/server.md": ("サーバーの移行手順を書く", "データベースを先に止める", "鹿"),
    "ja/kyoto.md": ("京都の寺と庭を歩く", "東大寺の大仏と奈良の鹿", "鹿せんべいは一束二百円"),
    "ja/budget.md": ("予算の会議は来週の月曜日", "予算、予算、また予算", "犬と猫の写真"),
    "ja/kana.md": ("ろーどばらんさーのせってい", "てがみをかく", "たべものとのみもの"),
    "en/server.md": ("Move the server and the database", "Stop the server first, then the database server"),
    "en/garden.md": ("Planted tomatoes in the garden", "The dog dug up the tomatoes; the dog is sorry"),
    "en/budget.md": ("The budget meeting is on Monday", "A budget of two hundred dollars"),
    "mixed.md": ("API サーバー and database の設定", "東京タワー and the dog", "same words", "same words"),
    "copy.md": ("same words", "予算の会議は来週の月曜日"),
}
QUERIES = (
    "サーバー", "server", "database の移行", "予算 会議", "dog", "犬", "京都の寺", "鹿", "東 奈", "ばらんさ", "てがみ",
    "same words", "the budget meeting on monday", "大仏とせんべい", "tomatoes garden server", "zzz", "。",
)  # fmt: skip


def with_vectors(document: PreparedDocument) -> tuple[PreparedDocument, dict[bytes, npt.NDArray[np.float32]]]:
    texts = [chunk.text for chunk in document.chunks]
    keys = [text.encode() for text in texts]
    return replace(document, vector_keys=keys), dict(zip(keys, EMBEDDER.embed(texts), strict=True))


def sentences_of(text: str) -> SentenceSubwords:
    """Return numbers for the characters of a text, as one sentence."""
    return pack_sentences([np.array([ord(char) for char in text], np.int32)], np.ones(1, np.float32))


def write(store: Store, tool: Tool, documents: dict[str, tuple[str, ...]]) -> None:
    for uri, texts in documents.items():
        document, vectors = with_vectors(prepared(uri, *texts))
        sentences = {key: sentences_of(key.decode()) for key in vectors if len(key) > 9}
        store.documents.write(tool.id, upsert=[document], vectors=vectors, sentences=sentences)


def view_of(store: Store, index: Index, *tools: Tool) -> IndexView:
    with store.read_transaction():
        return index.view([tool.id for tool in tools])


Builder = Callable[[str], Index]


@pytest.fixture
def build_index(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Iterator[Builder]:
    """Build indexes of a store, and close them in the end."""
    built: list[Index] = []

    def build(name: str) -> Index:
        if name == "reference":
            return ReferenceIndex(store)
        options = request.getfixturevalue("engine_options")(name) if name in ENGINES else None
        built.append(indexes.build(name.partition("-")[0], store, tmp_path / "index", options))
        return built[-1]

    yield build
    for index in built:
        index.close()


@pytest.fixture(params=[*KINDS, *ENGINE_PARAMS])
def index(request: pytest.FixtureRequest, build_index: Builder) -> Index:
    """Build an index of each kind over each kind of store."""
    return build_index(request.param)


@pytest.fixture
def tool(store: Store) -> Tool:
    """Write the documents; some are changed, and one of them is removed."""
    tool = store.tools.put(Tool("docs"))
    write(store, tool, {"en/budget.md": ("An older budget for the server",), "gone.md": ("サーバー server dog",)})
    write(store, tool, DOCUMENTS)
    store.documents.write(tool.id, remove=["gone.md"])
    return tool


@pytest.fixture(params=["embedded", *ENGINE_PARAMS])
def pair(
    request: pytest.FixtureRequest, store: Store, tool: Tool, build_index: Builder
) -> Iterator[tuple[IndexView, IndexView]]:
    """Give the reference view and a view of an index that has caught up with changes."""
    index = build_index(request.param)
    index.sync(tool.id)
    write(store, tool, {"ja/kyoto.md": ("京都の寺と苔の庭", "奈良の鹿"), "late.md": ("サーバー and the dog",)})
    store.documents.write(tool.id, remove=["en/garden.md"])
    write(store, tool, {"en/garden.md": DOCUMENTS["en/garden.md"]})
    if request.param in ENGINES:
        index.sync(tool.id)  # without it, bunko itself would answer for what is not copied
        state = index.state(tool.id)
        assert (state.is_current, state.rows) == (True, len(store.changes.chunk_ids(tool.id)))
    view = view_of(store, index, tool)
    yield view_of(store, ReferenceIndex(store), tool), view
    assert list(view.notices) == [], "the engine answered, and nothing else in its place"


Scored = list[tuple[int, float]]


def ranked(view: IndexView, ranking: Ranking) -> Scored:
    return list(zip(view.chunk_ids(ranking.rows), ranking.scores, strict=True))


def assert_same_ranking(found: Scored, expected: Scored) -> None:
    """Compare scores to 4 decimals, and chunks where scores differ: a sum in another order may swap equal ones."""
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=5e-5)
    scores, last = dict(expected), expected[-1][1] if expected else 0.0
    for chunk_id, score in found:
        assert score == pytest.approx(scores.get(chunk_id, last), abs=5e-5), chunk_id


def document_ids(store: Store, tool: Tool, path: str) -> tuple[int, ...]:
    return tuple(store.documents.select(tool.id, Filter(path=path)))


def term_lists() -> Iterator[tuple[QueryTerm, ...]]:
    for query in QUERIES:
        yield analyse_query(query, RankingOptions(bridge=False)).terms
        yield analyse_query(query, RankingOptions(loanwords=False)).terms
        yield analyse_query(query).terms


Pair = tuple[IndexView, IndexView]


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)])
def test_words_loanwords_and_translations_rank_as_in_the_reference(pair: Pair, k: int, k1: float, b: float) -> None:
    reference, embedded = pair
    for terms in term_lists():
        expected = ranked(reference, reference.rank(terms, k, k1=k1, b=b))
        assert_same_ranking(ranked(embedded, embedded.rank(terms, k, k1=k1, b=b)), expected)
        assert embedded.max_score(terms, k1=k1) == pytest.approx(reference.max_score(terms, k1=k1))
        assert all(score <= reference.max_score(terms, k1=k1) + 4 for _, score in expected)


@pytest.mark.parametrize("path", ["ja/*", "*server*", "nothing/*"])
def test_a_filter_limits_the_rows_and_not_the_statistics(store: Store, tool: Tool, pair: Pair, path: str) -> None:
    reference, embedded = pair
    where = document_ids(store, tool, path)
    for terms in term_lists():
        expected = ranked(reference, reference.rank(terms, 50, k1=1.2, b=0.75, where=where))
        assert_same_ranking(ranked(embedded, embedded.rank(terms, 50, k1=1.2, b=0.75, where=where)), expected)
        assert set(expected) <= set(ranked(reference, reference.rank(terms, 50, k1=1.2, b=0.75)))


@pytest.mark.parametrize("path", ["", "ja/*"])
@pytest.mark.parametrize("min_share", [0.5, 1.0])
def test_ngrams_rank_as_in_the_reference(store: Store, tool: Tool, pair: Pair, min_share: float, path: str) -> None:
    where = document_ids(store, tool, path) if path else None
    for query in QUERIES:
        grams = [
            QueryTerm(gram.key, 0.5 if ngrams.is_hiragana(gram) else 1.0, is_gram=True)
            for gram in ngrams.query_grams(query)
        ]
        if grams:
            expected, found = (
                ranked(view, view.rank_grams(grams, 9, min_share=min_share, where=where)) for view in pair
            )
            assert_same_ranking(found, expected)


@pytest.mark.parametrize("path", ["", "ja/*"])
def test_single_characters_rank_as_in_the_reference(store: Store, tool: Tool, pair: Pair, path: str) -> None:
    reference, embedded = pair
    where = document_ids(store, tool, path) if path else None
    for characters in ("鹿", "京", "予大", "犬猫", "龍"):
        ranges = [ngrams.pair_key_range(character) for character in characters]
        expected = ranked(reference, reference.rank_key_ranges(ranges, 5, where=where))
        assert_same_ranking(ranked(embedded, embedded.rank_key_ranges(ranges, 5, where=where)), expected)
        assert bool(expected) == (characters != "龍"), characters


@pytest.mark.parametrize("path", ["", "en/*", "nothing/*"])
def test_vectors_rank_as_in_the_reference(store: Store, tool: Tool, pair: Pair, path: str) -> None:
    reference, embedded = pair
    where = document_ids(store, tool, path) if path else None
    for vector in EMBEDDER.embed(QUERIES, query=True):
        answers: list[NearestRows] = [view.nearest(vector, 7, where=where) for view in pair]
        expected, found = answers
        assert_same_ranking(ranked(embedded, found.ranking), ranked(reference, expected.ranking))
        assert (found.mean, found.spread) == pytest.approx((expected.mean, expected.spread), abs=2e-4)
        assert expected.spread > 0, "the mean and spread are those of all rows"
        assert found.query_vector is vector
        ids = {view: dict(zip(view.chunk_ids(view.rows()), view.rows(), strict=True)) for view in pair}
        assert ids[reference].keys() == ids[embedded].keys()
        shared = sorted(ids[reference])
        cosines = [view.cosines(vector, [ids[view][chunk_id] for chunk_id in shared]) for view in pair]
        assert cosines[1] == pytest.approx(cosines[0], abs=1e-5)


def test_the_sentences_are_those_that_were_stored_or_else_the_text(pair: Pair) -> None:
    tables = []
    for view in pair:
        found = [
            sentences if sentences is None or isinstance(sentences, str) else sentences.tolist()
            for sentences in view.sentences(view.rows())
        ]
        tables.append(dict(zip(view.chunk_ids(view.rows()), found, strict=True)))
    assert tables[0] == tables[1]
    assert {type(sentences) for sentences in tables[0].values()} == {list, str}


def test_rows_contain_the_same_terms_as_in_the_reference(pair: Pair) -> None:
    for terms in term_lists():
        tables = []
        for view in pair:
            by_id = dict(zip(view.chunk_ids(view.rows()), view.matches(terms, view.rows()), strict=True))
            tables.append(by_id)
        assert tables[0] == tables[1]


def test_each_term_scores_as_much_as_with_the_reference_and_all_of_them_as_the_row(pair: Pair) -> None:
    for terms in term_lists():
        tables = []
        for view in pair:
            rows = view.rows()
            scores = view.term_scores(terms, rows, k1=1.4, b=0.6)
            tables.append(dict(zip(view.chunk_ids(rows), scores, strict=True)))
        assert tables[0].keys() == tables[1].keys()
        for chunk_id, values in tables[0].items():
            assert values == pytest.approx(tables[1][chunk_id], rel=1e-5)
        separate = [term._replace(group=-1) for term in terms]
        for view in pair:
            ranking = view.rank(separate, 9, k1=1.4, b=0.6)
            sums = [sum(values) for values in view.term_scores(separate, ranking.rows, k1=1.4, b=0.6)]
            assert sums == pytest.approx(ranking.scores, rel=1e-5)


def test_equal_scores_have_the_same_order_as_in_the_reference(pair: Pair) -> None:
    terms = analyse_query("same words").terms
    orders = []
    for view in pair:
        rows = view.rank(terms, 10, k1=1.2, b=0.75).rows
        assert view.tie_order(rows) == sorted(view.tie_order(rows))
        orders.append((view.chunk_ids(rows), view.tie_order(rows)))
    assert orders[0] == orders[1]
    assert len(orders[0][0]) == 3


@pytest.mark.parametrize("mode", MODES)
def test_a_search_gives_the_same_hits_as_with_the_reference(store: Store, tool: Tool, pair: Pair, mode: Mode) -> None:
    weighted = RankingOptions(vector_weight=0.4, min_combined_score=0.3)
    for query in QUERIES:
        for ranking, explain in ((DEFAULT_RANKING, False), (weighted, False), (DEFAULT_RANKING, True)):
            request = RankRequest(query, mode, 50, ranking, explain=explain)
            expected, found = (find_hits(store, view, {tool.id: "docs"}, EMBEDDER, request) for view in pair)
            scores, explanations = (
                [{(hit.uri, hit.chunk.index): getattr(hit, name) for hit in hits} for hits in (expected, found)]
                for name in ("score", "explanation")
            )
            assert scores[1] == pytest.approx(scores[0], abs=5e-5), (query, ranking)
            assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
            if request.explain:
                assert {place: why.terms for place, why in explanations[1].items()} == {
                    place: why.terms for place, why in explanations[0].items()
                }


@pytest.mark.parametrize("name", ["embedded", *ENGINE_PARAMS])
def test_several_tools_are_searched_as_one(store: Store, tool: Tool, build_index: Builder, name: str) -> None:
    other, bare = store.tools.put(Tool("other")), store.tools.put(Tool("without vectors"))
    write(store, other, {"server.md": ("another server", "犬の散歩")})
    store.documents.write(bare.id, upsert=[prepared("bare.md", "server and dog")])
    index = build_index(name)
    for filled in (tool, other, bare):
        index.sync(filled.id)
    views = [view_of(store, built, tool, other, bare) for built in (index, ReferenceIndex(store))]
    assert [view.size for view in views] == [27, 27]
    for query, vector in zip(QUERIES, EMBEDDER.embed(QUERIES, query=True), strict=True):
        terms = analyse_query(query).terms
        rankings = [ranked(view, view.rank(terms, 20, k1=1.2, b=0.75)) for view in views]
        assert_same_ranking(rankings[0], rankings[1])
        nearest = [view.nearest(vector, 50) for view in views]
        assert_same_ranking(ranked(views[0], nearest[0].ranking), ranked(views[1], nearest[1].ranking))
        assert len(nearest[0].ranking.rows) == 26, "a tool without vectors has no nearest rows"
        assert [answer.mean for answer in nearest] == pytest.approx([nearest[1].mean] * 2, abs=2e-4)
    assert list(views[0].notices) == []


def test_the_vectors_of_a_tool_can_be_left_out(store: Store, tool: Tool, index: Index) -> None:
    other = store.tools.put(Tool("other"))
    vectors = {b"3": np.ones(3, np.float32)}  # of another size
    store.documents.write(other.id, upsert=[replace(prepared("z.md", "京都の寺"), vector_keys=[b"3"])], vectors=vectors)
    with store.read_transaction():
        view = index.view([tool.id, other.id], without_vectors=[other.id])
    nearest = view.nearest(EMBEDDER.embed(["京都の寺"])[0], 50)
    assert len(nearest.ranking.rows) == view.size - 1
    assert len(view.rank([QueryTerm(key, 1.0) for key in analyzer.term_keys("京都")], 9, k1=1.2, b=0.75).rows) == 2
    with store.read_transaction():
        alone = index.view([other.id], without_vectors=[other.id])
    assert (alone.size, alone.nearest(EMBEDDER.embed(["京都"])[0], 5).ranking.rows) == (1, [])


def test_a_view_stays_as_it_was_and_the_next_one_has_caught_up(store: Store, tool: Tool, index: Index) -> None:
    before = view_of(store, index, tool)
    terms = analyse_query("龍").terms or (QueryTerm(1, 1.0),)
    generation, size, rows = before.generation, before.size, before.rows()
    assert generation == store.generation()
    assert len(rows) == size == sum(len(texts) for texts in DOCUMENTS.values())
    write(store, tool, {"new.md": ("龍の話", "龍の絵")})
    store.documents.write(tool.id, remove=["mixed.md"])
    assert (before.generation, before.size, before.rows()) == (generation, size, rows)
    assert not before.rank(terms, 5, k1=1.2, b=0.75).rows
    after = view_of(store, index, tool)
    assert after.generation == store.generation() > generation
    assert after.size == size + 2 - 4
    assert len(after.rank(terms, 5, k1=1.2, b=0.75).rows) == 2


def test_a_tool_without_documents_has_an_empty_view(store: Store, index: Index) -> None:
    empty = view_of(store, index, store.tools.put(Tool("empty")))
    vector = EMBEDDER.embed(["x"])[0]
    assert (empty.size, empty.rows(), empty.chunk_ids([]), empty.tie_order([])) == (0, [], [], [])
    assert not empty.rank([QueryTerm(1, 1.0)], 5, k1=1.2, b=0.75).rows
    assert not empty.rank_grams([QueryTerm(1, 1.0, is_gram=True)], 5, min_share=0.5).rows
    assert not empty.rank_key_ranges([(1, 2)], 5).rows
    assert not empty.nearest(vector, 5).ranking.rows
    assert (empty.matches([QueryTerm(1, 1.0)], []), empty.cosines(vector, [])) == ([], [])
    assert empty.term_scores([QueryTerm(1, 1.0)], [], k1=1.2, b=0.75) == []


def test_a_dropped_tool_is_rebuilt_when_it_is_searched_again(store: Store, tool: Tool, index: Index) -> None:
    terms = analyse_query("server").terms
    synced = index.sync(tool.id)
    expected = ranked(synced, synced.rank(terms, 9, k1=1.2, b=0.75))
    assert index.storage_bytes() == index.storage_bytes(tool.id)
    index.drop(tool.id)
    assert index.storage_bytes(tool.id) == 0
    again = view_of(store, index, tool)
    assert ranked(again, again.rank(terms, 9, k1=1.2, b=0.75)) == expected
    assert index.check(tool.id) == ""
    assert index.repair(tool.id) is False


def assert_as_reference(store: Store, index: Index, tool: Tool) -> None:
    """A view ranks by words and vectors as the reference does, and says nothing."""
    view, reference = view_of(store, index, tool), view_of(store, ReferenceIndex(store), tool)
    assert sorted(view.chunk_ids(view.rows())) == sorted(reference.chunk_ids(reference.rows()))
    for query, vector in zip(QUERIES, EMBEDDER.embed(QUERIES, query=True), strict=True):
        terms = analyse_query(query).terms
        rankings = [ranked(each, each.rank(terms, 9, k1=1.2, b=0.75)) for each in (view, reference)]
        assert_same_ranking(*rankings)
        nearest = [ranked(each, each.nearest(vector, 9).ranking) for each in (view, reference)]
        assert_same_ranking(*nearest)
    assert list(view.notices) == []


@pytest.mark.parametrize("name", ["embedded", *ENGINE_PARAMS])
def test_two_indexes_of_one_store_follow_each_other(store: Store, tool: Tool, build_index: Builder, name: str) -> None:
    first, second = build_index(name), build_index(name)
    first.sync(tool.id)
    assert_as_reference(store, second, tool)
    write(store, tool, {"late.md": ("龍とサーバー", "the dog of the server")})
    store.documents.write(tool.id, remove=["ja/budget.md"])
    second.sync(tool.id)
    assert_as_reference(store, first, tool)
    store.documents.write(tool.id, remove=["late.md"])
    first.sync(tool.id)
    assert_as_reference(store, second, tool)
    for index in (first, second):
        state = index.state(tool.id)
        assert (state.problem, state.pending, index.check(tool.id), index.repair(tool.id)) == ("", 0, "", False)


@pytest.mark.parametrize("name", ["embedded", *ENGINE_PARAMS])
def test_vectors_of_another_dimension_are_followed(store: Store, build_index: Builder, name: str) -> None:
    tool, index = store.tools.put(Tool("documents")), build_index(name)
    for size in (32, 16):
        vectors = embed_five(store, tool, size)
        index.sync(tool.id)
        assert index.state(tool.id).is_current
        view = view_of(store, index, tool)
        for vector in vectors:
            assert view.nearest(vector, 1).ranking.scores[0] == pytest.approx(1)
        assert list(view.notices) == []


@pytest.mark.parametrize("name", ["embedded", *ENGINE_PARAMS])
def test_a_library_restored_from_a_backup_is_never_answered_with_what_it_does_not_have(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    options = request.getfixturevalue("engine_options")(name) if name in ENGINES else None
    database, backup = tmp_path / "library.db", tmp_path / "backup.db"

    @contextmanager
    def opened() -> Iterator[tuple[Store, Index]]:
        store = stores.build("sqlite", database)
        index = indexes.build(name.partition("-")[0], store, tmp_path / "index", options)
        yield store, index
        index.close()
        store.close()

    with opened() as (store, index):
        tool = store.tools.put(Tool("docs"))
        write(store, tool, DOCUMENTS)
        index.sync(tool.id)
    shutil.copy(database, backup)
    with opened() as (store, index):
        write(store, tool, {"future.md": ("サーバー server dog",)})
        index.sync(tool.id)
    for path in tmp_path.glob("library.db*"):
        path.unlink()
    shutil.copy(backup, database)
    with opened() as (store, index):
        view = view_of(store, index, tool)
        rows = view.rank(analyse_query("server").terms, 50, k1=1.2, b=0.75).rows
        assert rows
        assert set(view.chunk_ids(rows)) <= set(store.changes.chunk_ids(tool.id))
        write(store, tool, {"other.md": ("another history with as many imports",)})
        index.sync(tool.id)
        assert index.state(tool.id).is_current
        assert_as_reference(store, index, tool)


def test_a_damaged_file_is_named_and_repaired(store: Store, tool: Tool, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = indexes.build("embedded", store, folder)
    index.sync(tool.id)
    assert index.storage_bytes(tool.id) > 0
    path = next(folder.glob("*.segment"))
    path.write_bytes(path.read_bytes()[:-100])
    assert path.name in index.check(tool.id)
    assert index.repair(tool.id) is True
    assert index.check(tool.id) == ""
    assert view_of(store, index, tool).size == sum(len(texts) for texts in DOCUMENTS.values())


def test_an_unknown_kind_is_an_error_that_names_the_kinds(tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        indexes.build("faiss", memory.build(), tmp_path)
    assert caught.value.message == "There is no index called 'faiss'"
    assert caught.value.hint == "Set index.kind to one of: embedded, chroma, milvus."
