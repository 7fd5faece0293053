"""Questions made from a tool's own words: every variant is what somebody could type, and its answer is known."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.evaluation.known_items import MENTIONED_GRADE, NAMED_GRADE, known_items, split_by_document
from bunko.evaluation.query_variants import VARIANT_KINDS, loanwords, variants
from bunko.types import Chunk
from bunko.types.records import ChunkRow


def chunk_row(number: int, uri: str, title: str, text: str, *headings: str) -> ChunkRow:
    chunk = Chunk(0, 0, len(text), 1, 2, text, f"# {headings[-1]}" if headings else "", headings)
    return ChunkRow(1, number, uri, title, "", (), "hash", chunk)


@pytest.mark.parametrize(
    ("phrase", "forms"),
    [
        ("手紙を書く", {"書いた", "書かない", "書きます"}),
        ("川で泳ぐ", {"泳いだ", "泳がない", "泳ぎます"}),
        ("本を貸す", {"貸した", "貸さない", "貸します"}),
        ("友を待つ", {"待った", "待たない", "待ちます"}),
        ("友と遊ぶ", {"遊んだ", "遊ばない", "遊びます"}),
        ("本を読む", {"読んだ", "読まない", "読みます"}),
        ("道を走る", {"走った", "走らない", "走ります"}),
        ("歌を歌う", {"歌った", "歌わない", "歌います"}),
        ("京都へ行く", {"行った", "行かない", "行きます"}),
        ("星を見る", {"見た", "見ない", "見ます"}),
        ("パンを食べる", {"食べた", "食べない", "食べます"}),
        ("サーバーを再起動する", {"再起動した", "再起動しない", "再起動します"}),
        ("空が高い", {"高かった", "高くない", "高く"}),
        ("環境の構築", {"構築する", "構築した"}),
    ],
)
def test_japanese_words_are_inflected_as_japanese_does(phrase: str, forms: set[str]) -> None:
    made = variants(phrase)["inflection"]
    assert any(made.endswith(form) for form in forms), made


@pytest.mark.parametrize(
    ("phrase", "made"),
    [("Load balancer", {"Loads balancer", "Load balancers"}), ("Policies", {"Policy"}), ("Configuring", {"Configured"}),
     ("Branches", {"Branch"}), ("Batch", {"Batches"}), ("Library", {"Libraries"})],
)  # fmt: skip
def test_english_words_change_number_and_tense(phrase: str, made: set[str]) -> None:
    assert variants(phrase)["inflection"] in made


def test_each_kind_changes_what_its_name_says() -> None:
    made = variants("サーバーの設定", {})
    assert made["width"] == "ｻｰﾊﾞｰの設定"
    assert made["order"] == "設定 サーバー"
    assert made["typo"] == "サバーの設定"
    assert made["script"] in ("さーばーの設定", "サーバーのせってい")
    assert made["loanword"] == "serverの設定"
    assert "サーバーの設定" in made["question"]
    assert "part" not in made, "two words have no part that still asks for the same"
    assert variants("database server setup")["part"] in ("server setup", "database server")


def test_english_becomes_the_katakana_that_the_texts_themselves_use() -> None:
    english = loanwords(["データベースをサーバに置く"])
    assert english == {"database": "データベース", "server": "サーバ"}
    assert variants("server room", english)["loanword"] == "サーバ room"


@given(st.text(max_size=60))
def test_no_text_stops_the_making_of_variants(text: str) -> None:
    made = variants(text)
    assert set(made) <= set(VARIANT_KINDS)
    assert made == variants(text), "the same text gives the same variants"
    if "width" in made:
        assert unicodedata.normalize("NFKC", made["width"]) == unicodedata.normalize("NFKC", text)


def test_an_answer_is_the_document_that_the_words_came_from_and_every_other_that_holds_them() -> None:
    chunks = [
        chunk_row(1, "a.md", "京都の寺", "京都の寺を巡る。", "京都の寺"),
        chunk_row(2, "b.md", "奈良の鹿", "奈良の鹿と、京都の寺。", "奈良の鹿"),
    ]
    stands = {"京都の寺": {"a.md": NAMED_GRADE, "b.md": MENTIONED_GRADE}}
    items = known_items(chunks, lambda text: stands.get(text, {}), limit=100)
    asked = {one.query.text: one for one in items}
    assert dict(asked["京都の寺"].query.grades) == {"a.md": NAMED_GRADE, "b.md": MENTIONED_GRADE}
    assert asked["京都の寺"].origin_uri == "a.md"
    assert dict(asked["奈良の鹿"].query.grades) == {"b.md": NAMED_GRADE}
    assert asked["京都の寺"].family == "names"
    assert "topics" in {one.family for one in items}, "what the texts are about is asked too"
    assert {one.query.kind for one in items} > {"as written"}
    assert len({one.query.text for one in items}) == len(items), "nothing is asked twice"


def test_what_stands_everywhere_is_not_asked() -> None:
    chunks = [chunk_row(n, f"{n}.md", "Release notes", f"Text {n}", "Release notes") for n in range(9)]
    assert known_items(chunks, lambda _: None, limit=100) == []
    everywhere = {f"{n}.md": NAMED_GRADE for n in range(9)}
    assert known_items(chunks, lambda _: everywhere, limit=100) == []
    assert known_items(chunks, lambda _: {}, limit=100) == [], "nine documents of one name are told apart by nothing"


def test_headings_that_any_document_has_are_not_asked() -> None:
    chunks = [chunk_row(1, "a.md", "", "概要です", "概要"), chunk_row(2, "b.md", "", "Text", "Introduction")]
    assert not {"概要", "Introduction"} & {one.query.text for one in known_items(chunks, lambda _: {}, limit=100)}


def test_the_halves_share_no_document() -> None:
    chunks = [chunk_row(n, f"{n}.md", f"{name}の寺", f"{name}", f"{name}の寺") for n, name in enumerate(NAMES)]
    linked = {"京都の寺": {"0.md": NAMED_GRADE, "1.md": MENTIONED_GRADE, "2.md": MENTIONED_GRADE}}
    items = known_items(chunks, lambda text: linked.get(text, {}), limit=1000)
    first, second = split_by_document(items)
    of_first, of_second = ({uri for one in half for uri in one.query.grades} for half in (first, second))
    assert of_first
    assert of_second
    assert not of_first & of_second


NAMES = "京都 奈良 大阪 神戸 東京 横浜 札幌 仙台 新潟 金沢 福岡 長崎".split()
