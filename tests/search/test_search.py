"""Finding things through the library: both languages, all lanes, all modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bunko.errors import QueryError
from bunko.library.library import Library
from bunko.search.query_syntax import parse_query
from bunko.types import Answer, Mode
from bunko.types.records import Filter
from tests.conftest import Opener

PAGES = {
    "run.md": "# 記録\n\n昨日は公園を走った。とても気持ちが良かったので、また行きたいと思う。",
    "api.md": "# Reference\n\nThe api reference lists every endpoint and the parameters that it takes.",
    "cook.md": "# 料理\n\n玉葱を薄く刻んで、弱火で飴色になるまで炒めるのが美味しさの秘訣です。",
    "patent.md": "# 法務\n\n特許の出願は弁理士に相談する。費用は案件の内容によって大きく異なる。",
    "kyoto.md": "# 旅行\n\n京都に三日間滞在して、寺と庭園を見て回った。紅葉の季節は特に混雑する。",
    "ci.md": "# CI\n\nGitHubActions でテストを自動化している。失敗すると通知が届く仕組みになっている。",
    "decision.md": "# 決定\n\nDEC-0054 により、認証の方式を変更することになった。移行の期限は年度末とする。",
    "stats.md": "# 学び\n\n機械学習は統計学の応用です。基礎から順に学ぶことが大切だと先生が言っていた。",
    "form.md": "# Forms\n\nForm validation checks what people typed before it is sent to the server.",
    "server.md": "# 運用\n\nサーバーを再起動する手順をまとめる。まず負荷分散装置から切り離すこと。",
    "cat.md": "# 動物\n\n隣の家の子猫が庭に来た。名前はまだないらしいが、とても人懐こい性格である。",
    "quest.md": "# ゲーム\n\nしれんのしろには、ゆうしゃのあかしが必要だと村の長老が教えてくれた。",
}


@pytest.fixture
def pages(docs: Path) -> Path:
    for name, text in PAGES.items():
        (docs / name).write_text(text, encoding="utf-8")
    return docs


def first(answer: Answer) -> str:
    return answer.hits[0].uri if answer.hits else ""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("走る", "run.md"), ("ＡＰＩ", "api.md"), ("玉ねぎ", "cook.md"), ("特許", "patent.md"), ("京都", "kyoto.md"),
        ("学", "stats.md"), ("猫", "cat.md"), ("寺", "kyoto.md"), ("github", "ci.md"), ("DEC-0054", "decision.md"),
        ("dec0054", "decision.md"), ("server", "form.md"), ("サーバー", "server.md"), ("しれんのしろ", "quest.md"),
        ("ゆうしゃ", "quest.md"), ("サーバーを再起動するにはどうすればいいですか？", "server.md"),
        ("How do I validate a form before sending it?", "form.md"), ("認証方式の変更", "decision.md"),
        ("refrence of endpoints", "api.md"), ("ENDPOINTS", "api.md"), ("庭園と寺", "kyoto.md"),
    ],
)  # fmt: skip
def test_the_right_page_comes_first(pages: Path, open_docs: Opener, query: str, expected: str) -> None:
    assert first(open_docs().search(query)) == expected


def test_a_loanword_finds_the_english_word_and_the_other_way_round(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    assert {hit.uri for hit in library.search("サーバー").hits} >= {"server.md", "form.md"}
    assert {hit.uri for hit in library.search("server").hits} >= {"server.md", "form.md"}


def test_a_word_with_a_typing_error_is_found_by_its_letters(pages: Path, open_docs: Opener) -> None:
    hit = open_docs().search("paramters", explain=True).hits[0]
    assert hit.uri == "api.md"
    assert hit.explanation is not None
    assert hit.explanation.lane == "gram"


def test_nonsense_finds_nothing(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    for query in ("qwxzv", "！？", "\0", "🦀🦀🦀"):
        assert library.search(query).hits == []


@pytest.mark.parametrize("query", ["", "   ", "\u3000\n"])
def test_an_empty_query_is_an_error_unless_a_filter_says_which_documents(
    docs: Path, open_docs: Opener, query: str
) -> None:
    for day in (3, 5, 4):
        (docs / f"2024-03-0{day}.md").write_text(f"---\ntags: [散歩]\n---\n{day}日の話。\n", encoding="utf-8")
    library = open_docs()
    with pytest.raises(QueryError, match="The query is empty") as caught:
        library.search(query)
    assert "filter" in caught.value.hint
    found = library.search(query, where=Filter(tags=("散歩",)), top_k=2)
    assert [hit.uri for hit in found.hits] == ["2024-03-05.md", "2024-03-04.md"], "the newest first"
    assert library.search(query, where=Filter(tags=("料理",))).hits == []


def test_an_empty_library_answers_with_an_empty_list(open_docs: Opener) -> None:
    for mode in ("bm25", "semantic", "hybrid"):
        answer = open_docs().search("京都", mode=mode)
        assert (answer.hits, answer.total_chunks) == ([], 0)


def test_a_hit_points_back_to_the_exact_source_text(pages: Path, open_docs: Opener) -> None:
    for query in ("走る", "endpoint", "猫"):
        hit = open_docs().search(query).hits[0]
        source = (pages / hit.uri).read_text(encoding="utf-8")
        assert source[hit.chunk.start : hit.chunk.end] == hit.chunk.text
        lines = source.splitlines()
        assert hit.chunk.text.splitlines()[0] == lines[hit.chunk.first_line - 1]
        assert hit.chunk.text.splitlines()[-1] == lines[hit.chunk.last_line - 1]


def test_modes_report_their_own_scores(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    words = library.search("京都の寺", mode="bm25").hits[0]
    assert words.bm25_score is not None
    assert (words.vector_distance, words.combined_score) == (None, None)
    near = library.search("京都の寺", mode="semantic").hits[0]
    assert near.vector_distance is not None
    assert near.score == pytest.approx(1 - near.vector_distance)
    assert near.bm25_score is None
    both = library.search("京都の寺", mode="hybrid").hits[0]
    assert both.score == both.combined_score
    assert 0 <= both.score <= 1
    ranks = library.search("京都の寺", mode="hybrid", fusion="rrf", explain=True).hits[0]
    assert ranks.explanation is not None
    assert ranks.explanation.bm25 is not None
    assert ranks.explanation.vector is not None
    assert ranks.score == pytest.approx(
        1 / (60 + ranks.explanation.bm25.rank) + 1 / (60 + ranks.explanation.vector.rank)
    )


@pytest.mark.parametrize(
    "query", ["京都の寺", "寺", "ゆうしゃのあか", "restart the server", "DEC-0054 の期限", "xyzzy"]
)
def test_a_score_is_between_0_and_1_in_every_mode_and_falls_with_the_rank(
    pages: Path, open_docs: Opener, query: str
) -> None:
    library = open_docs()
    modes: list[tuple[Mode, dict[str, Any]]] = [
        ("bm25", {}), ("bm25", {"k1": 0.0}), ("bm25", {"k1": 10.0, "b": 0.0}), ("semantic", {}), ("hybrid", {}),
        ("hybrid", {"fusion": "rrf"}), ("hybrid", {"vector_weight": 0.3}),
    ]  # fmt: skip
    for mode, options in modes:
        scores = [hit.score for hit in library.search(query, mode=mode, top_k=12, **options).hits]
        assert all(0 <= score <= 1 for score in scores), (mode, options, scores)
        assert scores == sorted(scores, reverse=True)


def test_the_score_by_words_alone_says_how_much_of_the_query_was_found(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    both, one_word = library.search("子猫 弁理士", mode="bm25").hits[0], library.search("子猫", mode="bm25").hits[0]
    assert one_word.score >= 0.6 > both.score
    # The same hit has the same score on every page, and as few or as many as are asked for.
    for count in (1, 12):
        assert library.search("子猫 弁理士", mode="bm25", top_k=count).hits[0].score == both.score
    # A threshold holds without vectors, too.
    assert not library.search("子猫 弁理士", mode="bm25", min_score=0.6).hits


def test_the_vector_weight_moves_the_answer_from_words_to_vectors(pages: Path, open_docs: Opener) -> None:
    library = open_docs()

    def order(**options: object) -> list[str]:
        return [hit.uri for hit in library.search("京都の紅葉と寺", top_k=12, **options).hits]  # type: ignore[arg-type]

    assert order(mode="hybrid", vector_weight=1.0)[:5] == order(mode="semantic")[:5]
    words = order(mode="bm25")
    assert order(mode="hybrid", vector_weight=0.0)[: len(words) - 1] == words[:-1]


def test_turning_hybrid_search_off_means_vectors_alone(pages: Path, open_docs: Opener) -> None:
    assert open_docs(RAG_HYBRID_SEARCH_ENABLED="false").search("京都").mode == "semantic"
    assert open_docs(RAG_HYBRID_SEARCH_ENABLED="true").search("京都").mode == "hybrid"
    assert open_docs(RAG_HYBRID_SEARCH_ENABLED="false").search("京都", mode="bm25").mode == "bm25"


def test_a_threshold_on_distance_drops_what_is_too_far(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    all_of_them = library.search("京都の寺と庭園", mode="semantic", top_k=12).hits
    distances = {hit.uri: hit.vector_distance or 0.0 for hit in all_of_them}
    limit = sorted(distances.values())[2]
    kept = library.search("京都の寺と庭園", mode="semantic", top_k=12, similarity_threshold=limit).hits
    assert [hit.uri for hit in kept] == [uri for uri, distance in distances.items() if distance <= limit]


def test_a_threshold_on_the_combined_score_keeps_whoever_has_every_word(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    kept = library.search("京都 寺", mode="hybrid", min_combined_score=1.0, vector_weight=0.9, top_k=12).hits
    assert [hit.uri for hit in kept] == ["kyoto.md"]
    everything = library.search("京都 寺", mode="hybrid", vector_weight=0.9, top_k=12).hits
    assert len(everything) > 1


def test_full_matches_below_the_minimum_are_dropped_if_the_setting_says_so(pages: Path, open_docs: Opener) -> None:
    (pages / "long.md").write_text("# 表\n\n京都の寺の表。" + "数値と記号の並び。" * 60, encoding="utf-8")

    def uris(library: Library, **options: Any) -> dict[str, float]:
        hits = library.search("京都 寺", mode="hybrid", top_k=12, **options).hits
        return {hit.uri: hit.combined_score or 0.0 for hit in hits}

    library = open_docs(RAG_VECTOR_WEIGHT="0.9")
    assert 0 < uris(library)["long.md"] < 0.9
    assert set(uris(library, min_combined_score=0.9)) == {"kyoto.md", "long.md"}
    assert set(uris(library, min_combined_score=0.9, keep_full_matches=False)) == {"kyoto.md"}
    strict = open_docs(RAG_VECTOR_WEIGHT="0.9", RAG_MIN_COMBINED_SCORE="0.9", BUNKO_SEARCH_KEEP_FULL_MATCHES="false")
    assert set(uris(strict)) == {"kyoto.md"}


def test_an_explanation_names_the_arms_the_terms_and_the_lane(pages: Path, open_docs: Opener) -> None:
    why = open_docs().search("サーバー 再起動", mode="hybrid", explain=True).hits[0].explanation
    assert why is not None
    assert why.lane == "word"
    assert set(why.terms) >= {"サーバー", "再起動"} or set(why.terms) >= {"サーバー", "起動"}
    assert ("loanword", "server") in why.expansions
    assert why.bm25 is not None
    assert why.bm25.rank == 1
    assert why.vector is not None


def test_loanwords_can_be_switched_off(pages: Path, open_docs: Opener) -> None:
    found = {
        hit.uri
        for hit in open_docs(BUNKO_SEARCH_LOANWORDS="false", BUNKO_SEARCH_BRIDGE="false")
        .search("サーバー", mode="bm25")
        .hits
    }
    assert "server.md" in found
    assert "form.md" not in found


def test_filters_narrow_the_answer(docs: Path, open_docs: Opener) -> None:
    from bunko.types.records import Filter

    (docs / "a.md").write_text("---\ntags: [Design, 設計]\ndate: 2024-01-15\n---\n# 検索\n\n検索の設計について書く。")
    (docs / "b.md").write_text("---\ntags: ops\ndate: 2024-06-01\n---\n# 検索\n\n検索の運用について書く。")
    library = open_docs()

    def found(where: Filter) -> list[str]:
        return sorted(hit.uri for hit in library.search("検索", where=where).hits)

    assert found(Filter()) == ["a.md", "b.md"]
    assert found(Filter(tags=("design",))) == ["a.md"]
    assert found(Filter(since="2024-02")) == ["b.md"]
    assert found(Filter(until="2024-01-15")) == ["a.md"]
    assert found(Filter(path="b.*")) == ["b.md"]


def test_a_senseless_request_says_what_is_allowed(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    with pytest.raises(QueryError, match="mode") as caught:
        library.search("x", mode="magic")  # type: ignore[arg-type]
    assert "bm25" in caught.value.hint
    with pytest.raises(QueryError):
        library.search("x", top_k=0)
    with pytest.raises(QueryError, match="fusion"):
        library.search("x", fusion="blend")


def test_vectors_that_were_not_made_are_asked_for_in_words(pages: Path, open_docs: Opener) -> None:
    library = open_docs(EMBEDDING_PROVIDER="none")
    assert first(library.search("京都")) == "kyoto.md"
    with pytest.raises(QueryError, match="vectors"):
        library.search("京都", mode="semantic")


def test_a_pasted_document_as_a_query_is_cut_and_says_so(pages: Path, open_docs: Opener) -> None:
    answer = open_docs().search("京都の寺 " * 100_000)
    assert first(answer) == "kyoto.md"
    assert any("2000 characters" in notice for notice in answer.notices)


def test_equal_scores_come_in_the_same_order_every_time(docs: Path, open_docs: Opener) -> None:
    for number in range(12):
        (docs / f"{number}.md").write_text("# 同じ\n\n同じ内容の文書がいくつもある場合の順序を確かめるための文章です。")
    orders = [[hit.uri for hit in open_docs().search("順序", top_k=8).hits] for _ in range(3)]
    assert orders[0] == orders[1] == orders[2]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=200).filter(str.strip), st.booleans())
def test_no_query_breaks_a_search(pages: Path, open_docs: Opener, query: str, operators: bool) -> None:
    library = open_docs()
    for mode in ("bm25", "hybrid"):
        try:
            answer = library.search(query, mode=mode, explain=True, refresh=False, operators=operators)
        except QueryError:
            assert operators
            assert parse_query(query).excluded
        else:
            assert all(hit.score >= 0 for hit in answer.hits)
    library.close()
