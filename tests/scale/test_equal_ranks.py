"""Every engine ranks as the embedded index over SQLite does: 100 queries in Japanese and English, in every way.

`pytest -m scale tests/scale/test_equal_ranks.py -k milvus` runs it for one engine. A failure lists each query that
differs, with the first place where it does.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from bench import corpus

from bunko import indexes, stores
from bunko.embedders import static
from bunko.protocols import Index, IndexView, Store
from bunko.search.arms import gram_terms
from bunko.search.hits import find_hits
from bunko.search.query_analysis import QueryAnalysis, analyse_query
from bunko.search.request import RankRequest
from bunko.text import ngrams
from bunko.types import MODES, Tool
from bunko.types.records import NO_FILTER, Filter, Ranking, SelectedDocuments
from tests.contracts.documents import prepared
from tests.scale.engines import ENGINES, MILVUS_URI, start_engine

pytestmark = pytest.mark.scale

EMBEDDER = static.build()
# Of so many chunks, Milvus returns a part as candidates; over so few, the graphs of Chroma and of servers are exact.
LARGE, SMALL = 200, 10  # pages of eight chunks, and four memos for each
PAGES = {"chroma": SMALL, "chroma-server": SMALL, "milvus-server": SMALL}
K = 20
# Names that occur in one place, and codes of tickets; the first pages are part of a corpus of any size.
_TEXTS = [text for _, text in corpus.pages(SMALL)]
NAMES = [re.findall(r"。([ァ-ン]{3,4})の", text)[0] for text in _TEXTS[:10]]
CODES = [re.findall(r"[A-Z]{3}-\d{4}", text)[0] for text in _TEXTS[:5]]
WORDS = """
設定 検索 文書 京都 予算 会議 検証 計測 移行 監視 暗号 庭園 温泉 津波 望遠鏡 サーバー データベース カレンダー
セキュリティー server search document garden validation measure backup password budget escape telescope volcano
""".split()
# Each word has translations, loanwords or synonyms, of which only the best one counts in a chunk.
MEANINGS = (
    "server backup", "検証と計測", "障害の復旧手順", "予算 会議", "validation error form", "password 暗号化",
    "設定の変更", "measure performance", "database migration", "会議の議事録", "データベースの設定",
    "server の設定を変更する command", "教育と学習の研究", "hotel reservation", "hospital patient", "税金と保険と年金",
    "music and culture", "森林 河川 海洋", "earthquake warning", "企業の社員の採用", "投票と選挙", "search result page",
    "security password account", "料理の写真", "travel accident insurance",
)  # fmt: skip
QUESTIONS = (
    "データベースの障害から復旧する手順を教えてください", "検索の精度と性能を評価した実験の結果はどこにありますか",
    "温泉旅館の料理について調べた資料はありますか", "ユーザーの画面はどのように変更しますか", "京都の寺院の歴史",
    "なぜ台風と豪雨で鉄道が渋滞するのか", "how to restore a database backup safely",
    "GitHub Actions で test を実行する", "which cache option do I need to configure for the server",
    "what causes an earthquake", "validation error when the form request has no token",
    "who signs the contract of the investment",
)  # fmt: skip
# Found by n-grams: parts of words, hiragana, no words at all.
PARTS = ("タベー", "ってみる", "かもしれない", "認可暗", "図書館書", "erve", "とよい。", "ばらんさー")
CHARACTERS = ("庭", "京", "鹿", "龍", "東 奈", "海山", "画 面", "薬", "税 保")
QUERIES = (*WORDS, *MEANINGS, *QUESTIONS, *PARTS, *CHARACTERS, *NAMES, *CODES)
assert len(QUERIES) == len(set(QUERIES)) == 100, len(QUERIES)

OTHERS = ("postgres", *ENGINES)  # than the embedded index over SQLite
FILTERS = {
    "all": NO_FILTER,
    "path": Filter(path="0[0-4]/**"),
    "tags": Filter(tags=("会議",)),
    "dates": Filter(since="2018-01-01", until="2021-06-30", zone="Asia/Tokyo"),
}


@dataclass(frozen=True, eq=False)
class Library:
    """A store with pages and memos, and an index over both."""

    store: Store
    index: Index
    tools: dict[int, str]


def fill(store: Store, page_count: int) -> dict[int, str]:
    """Write pages, one chunk for each section, and half as many memos with tags and dates, as two tools."""
    pages = [prepared(name, *re.split(r"\n(?=## )", text)) for name, text in corpus.pages(page_count)]
    memos = [
        prepared(f"{number:02}/{memo.title}", memo.text, date=memo.date, tags=memo.tags)
        for number, memo in enumerate(corpus.memos(4 * page_count))
    ]
    tools = {}
    for name, documents in (("pages", pages), ("memos", memos)):
        tool = store.tools.put(Tool(name))
        tools[tool.id] = name
        texts = list(dict.fromkeys(chunk.text for document in documents for chunk in document.chunks))
        vectors = {text.encode(): vector for text, vector in zip(texts, EMBEDDER.embed(texts), strict=True)}
        keyed = [
            replace(document, vector_keys=[chunk.text.encode() for chunk in document.chunks]) for document in documents
        ]
        store.documents.write(tool.id, upsert=keyed, vectors=vectors)
    return tools


@pytest.fixture(scope="module")
def open_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Library]]:
    """Fill a library of so many pages, and copy it to an index."""
    with ExitStack() as stack:

        def open_filled(page_count: int, server: Any = None, engine: str = "") -> Library:
            folder = tmp_path_factory.mktemp("library")
            options = stack.enter_context(start_engine(engine, folder)) if engine else None
            if options:  # its graph depends on how its threads took turns: wide enough for each to be exact
                options = replace(options, chroma=replace(options.chroma, search_ef=1000))
            store = stores.build("postgres" if server else "sqlite", folder / "library.db", server)
            stack.callback(store.close)
            tools = fill(store, page_count)
            index = indexes.build(engine.partition("-")[0] or "embedded", store, folder / "index", options)
            stack.callback(index.close)
            for tool_id in tools:
                index.sync(tool_id)
                state = index.state(tool_id)
                assert (state.problem, state.pending) == ("", 0)
                assert not engine or state.rows == store.stats.totals(tool_id).chunks
            return Library(store, index, tools)

        yield open_filled


@pytest.fixture(scope="module")
def references(open_library: Callable[..., Library]) -> Callable[[int], Library]:
    """Give a library in SQLite with the embedded index, by its number of pages."""
    built: dict[int, Library] = {}

    def reference(page_count: int) -> Library:
        if page_count not in built:
            built[page_count] = open_library(page_count)
        return built[page_count]

    return reference


Pair = tuple[Library, Library]


@pytest.fixture(scope="module")
def pair(
    request: pytest.FixtureRequest, references: Callable[[int], Library], open_library: Callable[..., Library]
) -> Pair:
    """Give the library with the embedded index, and the same one with another store or engine."""
    page_count = PAGES.get(request.param, LARGE)
    if request.param == "postgres":
        server = request.getfixturevalue("postgres").new_library()
        return references(page_count), open_library(page_count, server)
    return references(page_count), open_library(page_count, engine=request.param)


Place = tuple[str, str, int]  # tool, URI and index of a chunk
Scored = list[tuple[Place, float]]


def first_difference(found: Scored, expected: Scored) -> str:
    """Return where two rankings first differ by more than rounding, or an empty string.

    Chunks whose scores are equal but for rounding may be swapped, also with one that just missed the end.
    """
    scores, last = dict(expected), expected[-1][1] if expected else 0.0
    for rank, ((place, score), (right_place, right)) in enumerate(zip(found, expected, strict=False), 1):
        if score != pytest.approx(right, rel=1e-5, abs=5e-5) or scores.get(place, last) != pytest.approx(
            right, rel=1e-5, abs=5e-5
        ):
            return f"place {rank} is {place} with {score:.5f}, and should be {right_place} with {right:.5f}"
    return "" if len(found) == len(expected) else f"{len(found)} results instead of {len(expected)}"


Rank = Callable[[IndexView, Store, str, QueryAnalysis, tuple[int, ...] | None], Ranking]


def by_words(view: IndexView, _store: Store, _query: str, analysis: QueryAnalysis, where: Any) -> Ranking:
    return view.rank(analysis.terms, K, k1=1.2, b=0.75, where=where)


def by_words_of_other_weights(
    view: IndexView, _store: Store, _query: str, analysis: QueryAnalysis, where: Any
) -> Ranking:
    return view.rank(analysis.terms, K, k1=2.0, b=0.4, where=where)


def by_grams(view: IndexView, _store: Store, _query: str, analysis: QueryAnalysis, where: Any) -> Ranking:
    return view.rank_grams(gram_terms(analysis), K, min_share=0.5, where=where)


def by_characters(view: IndexView, _store: Store, query: str, _analysis: QueryAnalysis, where: Any) -> Ranking:
    characters = [char for char in query if "\u4e00" <= char <= "\u9fff"]
    return view.rank_key_ranges([ngrams.pair_key_range(char) for char in characters[:4]], K, where=where)


def by_vectors(view: IndexView, _store: Store, query: str, _analysis: QueryAnalysis, where: Any) -> Ranking:
    return view.nearest(EMBEDDER.embed([query], query=True)[0], K, where=where).ranking


RANKS: tuple[Rank, ...] = (by_words, by_words_of_other_weights, by_grams, by_characters, by_vectors)


@cache  # the embedded index is compared with several others
def rankings_of(library: Library, rank: Rank, filter_name: str) -> tuple[list[Scored], list[str]]:
    """Return the ranking of each query, and the notices."""
    store, where = library.store, FILTERS[filter_name]
    with store.read_transaction():
        view = library.index.view(list(library.tools))
        ids = [document for tool in library.tools for document in store.documents.select(tool, where)]
        selected = SelectedDocuments.of(ids, where) if where else None
        rankings = []
        for query in QUERIES:
            rows, scores = rank(view, store, query, analyse_query(query), selected)
            ids_of_chunks = view.chunk_ids(rows)
            chunks = store.documents.chunks(ids_of_chunks)
            places = [
                (library.tools[chunk.tool_id], chunk.uri, chunk.chunk.index)
                for chunk in (chunks[chunk_id] for chunk_id in ids_of_chunks)
            ]
            rankings.append(list(zip(places, scores, strict=True)))
        return rankings, list(view.notices)


@cache
def hits_of(library: Library, mode: str, filter_name: str) -> tuple[list[Scored], list[str]]:
    """Return the hits of a search for each query, and the notices."""
    where = FILTERS[filter_name]
    with library.store.read_transaction():
        view = library.index.view(list(library.tools))
        answers = [
            find_hits(library.store, view, library.tools, EMBEDDER, RankRequest(query, mode, K, where=where))  # type: ignore[arg-type]
            for query in QUERIES
        ]
        return [[((hit.tool, hit.uri, hit.chunk.index), hit.score) for hit in hits] for hits in answers], list(
            view.notices
        )


def check_equal(found: tuple[list[Scored], list[str]], expected: tuple[list[Scored], list[str]]) -> None:
    """Fail with the queries that differ."""
    assert found[1] == expected[1] == [], "something else answered"
    assert sum(map(bool, expected[0])) > 10, "there is too little to compare"
    differences = {
        query: difference
        for query, *rankings in zip(QUERIES, found[0], expected[0], strict=True)
        if (difference := first_difference(*rankings))
    }
    lines = [f"  {query}: {difference}" for query, difference in differences.items()]
    assert not differences, f"{len(differences)} of {len(QUERIES)} queries differ:\n" + "\n".join(lines)


def cases(rankings: Sequence[Any]) -> list[tuple[str, Any, str]]:
    """Return which engines are compared by which rankings with which filters.

    Chroma finds vectors only; the rest is the embedded index. Where an engine is the same code in another place, the
    hybrid search is enough.
    """
    same = {"postgres", "chroma-server"} | (set() if os.environ.get(MILVUS_URI) else {"milvus-server"})
    return [
        (other, ranking, where)
        for other in OTHERS
        for ranking in rankings
        for where in FILTERS
        if (other not in same or ranking == "hybrid")
        and (other != "chroma" or ranking in (by_vectors, "semantic", "hybrid"))
        and (where in ("all", "path") or (ranking in ("bm25", "hybrid") and other not in same))
    ]


def name_of(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("pair", "rank", "where"), cases(RANKS), indirect=["pair"], ids=name_of)
def test_rows_are_ranked_as_in_the_embedded_index(pair: Pair, rank: Rank, where: str) -> None:
    expected, found = (rankings_of(library, rank, where) for library in pair)
    check_equal(found, expected)


@pytest.mark.parametrize(("pair", "mode", "where"), cases(MODES), indirect=["pair"])
def test_a_search_finds_what_it_finds_in_the_embedded_index(pair: Pair, mode: str, where: str) -> None:
    expected, found = (hits_of(library, mode, where) for library in pair)
    check_equal(found, expected)


def test_the_queries_have_words_with_several_meanings_in_several_groups() -> None:
    def group_sizes(query: str) -> list[int]:
        return list(Counter(term.group for term in analyse_query(query).terms if not term.is_gram).values())

    several = [query for query in QUERIES if sum(size > 1 for size in group_sizes(query)) > 1]
    assert len(several) >= 25
