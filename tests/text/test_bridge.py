"""Words of one language find texts of the other: the translation table, and searches with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.search.query_analysis import analyse_query
from bunko.text import analyzer, bridge
from bunko.types import Mode
from bunko.types.ranking import DEFAULT_RANKING, RankingOptions
from tests.conftest import Opener, Run

ENGLISH = {
    "form.md": "# Forms\n\nValidation checks what people typed before it is sent.",
    "restart.md": "# Operations\n\nRestart the machine after the update and wait for the health check.",
    "secret.md": "# Secrets\n\nEncryption keeps a file private even when the disk is stolen.",
    "cook.md": "# Soup\n\nChop an onion, fry it slowly and add the stock.",
    "sync.md": "# Clocks\n\nA synchronous clock follows the grid.",
    "async.md": "# Functions\n\nAn asynchronous function gives control back at once.",
}
JAPANESE = {
    "kensho.md": "# 入力\n\n利用者が書いた値は、送る前に検証する。",
    "saikido.md": "# 運用\n\n更新の後は機械を再起動して、様子を見る。",
    "ango.md": "# 秘密\n\n盗まれても読めないように、文書は暗号にしておく。",
    "tamanegi.md": "# 汁物\n\n玉葱を刻んで、弱火でゆっくり炒める。",
    "neko.md": "# 動物\n\n隣の猫が庭で昼寝をしている。",
}


def write(folder: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def index_words(text: str) -> list[str]:
    return [term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run) if term.role == ""]


def meanings(text: str) -> dict[str, float]:
    (word,) = index_words(text)
    return {meaning.spelling: meaning.weight for meaning in bridge.meanings(word)}


@pytest.mark.parametrize(
    ("japanese", "english"),
    [
        ("検証", "validation"), ("認証", "authentication"), ("暗号", "encryption"), ("環境", "environment"),
        ("設定", "settings"), ("画面", "screen"), ("印刷", "print"), ("猫", "cat"), ("犬", "dog"), ("水", "water"),
        ("天気", "weather"), ("病院", "hospital"), ("休暇", "holiday"), ("玉葱", "onion"), ("電車", "train"),
    ],
)  # fmt: skip
def test_a_word_means_its_translation_and_the_other_way_round(japanese: str, english: str) -> None:
    assert meanings(japanese)[index_words(english)[0]] >= 0.5
    assert meanings(english)[index_words(japanese)[0]] >= 0.5


@pytest.mark.parametrize(
    ("english", "japanese"),
    [
        ("variable", "変数"), ("execute", "実行"), ("products", "製品"), ("enough", "十分"),
        ("interface", "インターフェース"),
    ],
)  # fmt: skip
def test_a_word_that_is_one_in_the_index_is_not_taken_for_two(english: str, japanese: str) -> None:
    assert meanings(english)[japanese] >= 0.5


def test_meanings_come_the_surest_first_and_are_few() -> None:
    for word in ("検証", "料理", "valid", "train", "water"):
        weights = [meaning.weight for meaning in bridge.meanings(word)]
        assert weights == sorted(weights, reverse=True)
        assert 1 <= len(weights) <= 5
        assert all(0 < weight <= 1 for weight in weights)


@pytest.mark.parametrize("word", ["", "qwxzv", "ぬるぽがっ", "𒀀𒁁", "1234567890", "\ud800", "為る", "the"])
def test_a_word_that_nobody_translated_has_no_meaning(word: str) -> None:
    assert bridge.meanings(word) == ()


def test_words_with_other_forms_of_one_translation_are_no_synonyms() -> None:
    def synonyms(word: str) -> set[str]:
        return {synonym.spelling for synonym in bridge.synonyms(word)}

    assert "駐車" not in synonyms("公園"), "park is not parking"
    assert "公園" not in synonyms("駐車")
    assert "休日" in synonyms("休暇")


@pytest.mark.parametrize(("word", "wrong"), [("ペット", "snippet"), ("スニ", "snippet"), ("snippet", "ペット")])
def test_part_of_a_loanword_does_not_mean_the_whole(word: str, wrong: str) -> None:
    assert wrong not in {meaning.spelling for meaning in bridge.meanings(word)}


def test_the_table_stays_small() -> None:
    assert bridge.TABLE_PATH.stat().st_size <= 4 * 10**6


def test_a_compound_means_more_than_its_parts() -> None:
    assert {"asynchron", "async"} >= {meaning.spelling for meaning in bridge.meanings("非同期")} != set()
    analysis = analyse_query("非同期", RankingOptions(bridge_weight=1.0))
    translations = {
        spelling for spelling, role in zip(analysis.spellings, analysis.roles, strict=True) if role == "bridge"
    }
    assert "asynchron" in translations
    assert not translations & {"synchron", "sync"}, "同期 alone would mislead"
    alone = analyse_query("同期", RankingOptions(bridge_weight=1.0))
    assert "synchron" in alone.spellings


def test_a_meaning_stands_in_the_group_of_its_word_and_counts_less() -> None:
    analysis = analyse_query("検証")
    word, meaning = (analysis.terms[analysis.spellings.index(spelling)] for spelling in ("検証", "valid"))
    assert word.group == meaning.group >= 0
    assert 0 < meaning.weight <= DEFAULT_RANKING.bridge_weight < word.weight == 1.0


def test_a_word_that_the_query_itself_holds_is_no_expansion() -> None:
    analysis = analyse_query("検証 validation")
    pairs = zip(analysis.spellings, analysis.roles, strict=True)
    assert [role for spelling, role in pairs if spelling == "valid"] == ["", "loanword"]
    assert analysis.terms[analysis.spellings.index("valid")].weight == 1.0


def test_without_the_bridge_a_query_is_only_its_own_words() -> None:
    assert "bridge" not in analyse_query("検証の環境", RankingOptions(bridge=False)).roles
    assert "bridge" in analyse_query("検証の環境").roles


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("入力検証", "form.md"), ("再起動", "restart.md"), ("暗号化", "secret.md"), ("玉ねぎ", "cook.md"),
        ("非同期", "async.md"),
    ],
)  # fmt: skip
def test_a_japanese_query_finds_english_text_by_its_words(
    docs: Path, open_docs: Opener, query: str, expected: str
) -> None:
    write(docs, ENGLISH)
    hit = open_docs().search(query, mode="bm25", explain=True).hits[0]
    assert hit.uri == expected
    assert hit.explanation is not None
    assert hit.explanation.lane == "word"
    assert "bridge" in dict(hit.explanation.expansions)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("validation", "kensho.md"), ("encryption", "ango.md"), ("onions", "tamanegi.md"), ("a cat", "neko.md")],
)  # fmt: skip
def test_an_english_query_finds_japanese_text_by_its_words(
    docs: Path, open_docs: Opener, query: str, expected: str
) -> None:
    write(docs, JAPANESE)
    assert open_docs().search(query, mode="bm25").hits[0].uri == expected


def test_explain_names_the_bridge(docs: Path, run: Run) -> None:
    write(docs, ENGLISH)
    flags = ("search", "検証", "--docs-dir", docs, "--mode", "bm25", "--explain")
    results = run(*flags, "--json").json()["results"]
    assert isinstance(results, list)
    assert {"kind": "bridge", "term": "valid"} in results[0]["explain"]["expansions"]
    assert "valid (bridge)" in run(*flags).out


def test_a_setting_switches_the_bridge_off(docs: Path, open_docs: Opener) -> None:
    write(docs, ENGLISH)
    library = open_docs()
    assert library.search("検証", mode="bm25").hits
    assert library.search("検証", mode="bm25", bridge=False).hits == []
    assert open_docs(BUNKO_SEARCH_BRIDGE="false").search("検証", mode="bm25").hits == []


def test_a_text_that_holds_a_word_and_its_meaning_counts_it_once(docs: Path, open_docs: Opener) -> None:
    # Of the same length, so that only what is counted can tell them apart; the others make both words rare.
    write(
        docs, {"word.md": "検証 alpha beta", "both.md": "検証 validation beta", "meaning.md": "validation alpha beta"}
    )
    write(docs, {f"other{n}.md": "gamma delta beta" for n in range(5)})
    scores = {hit.uri: hit.score for hit in open_docs().search("検証", mode="bm25", top_k=10).hits}
    assert scores.keys() == {"word.md", "both.md", "meaning.md"}
    assert scores["both.md"] == scores["word.md"]
    assert scores["meaning.md"] < scores["word.md"]


@pytest.mark.parametrize("mode", ["bm25", "hybrid"])
@pytest.mark.parametrize(
    ("pages", "queries"),
    [
        (JAPANESE, ["検証", "機械の再起動", "玉ねぎを炒める", "暗号にした文書", "猫の昼寝", "送る前の値", "更新"]),
        (ENGLISH, ["validation", "restart the machine", "fry an onion", "encrypt a file", "function", "clock"]),
    ],
    ids=["Japanese", "English"],
)
def test_nothing_changes_where_the_other_language_occurs_nowhere(
    docs: Path, open_docs: Opener, pages: dict[str, str], queries: list[str], mode: Mode
) -> None:
    write(docs, pages)
    library = open_docs()
    for query in queries:
        across, within = (library.search(query, mode=mode, top_k=20, bridge=bridge).hits for bridge in (True, False))
        assert across
        assert [(hit.uri, hit.bm25_score) for hit in across] == [(hit.uri, hit.bm25_score) for hit in within], query


def test_the_second_word_of_a_compound_adds_no_meaning_of_its_own_even_after_a_loanword() -> None:
    def meanings(query: str) -> set[str]:
        analysis = analyse_query(query)
        return {spelling for spelling, role in zip(analysis.spellings, analysis.roles, strict=True) if role == "bridge"}

    assert "fallback" in meanings("フォールバック")
    assert "closeup" in meanings("アップ")
    assert "closeup" not in meanings("クリーンアップ")


def translations(query: str) -> set[str]:
    analysis = analyse_query(query)
    return {
        spelling
        for spelling, role in zip(analysis.spellings, analysis.roles, strict=True)
        if role in ("bridge", "loanword")
    }


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        line.split("\t")
        for line in Path(__file__).with_name("bridge_words.tsv").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ],
)
def test_a_query_has_the_translations_judged_right_and_none_judged_wrong(query: str, right: str, wrong: str) -> None:
    assert set(index_words(right)) <= translations(query)
    assert not set(index_words(wrong)) & translations(query)


def test_the_halves_of_a_long_word_in_katakana_are_translated_one_by_one() -> None:
    analysis = analyse_query("データフェッチ")
    groups = {
        spelling: term.group for spelling, term in zip(analysis.spellings, analysis.terms, strict=False) if spelling
    }
    assert len({groups["データフェッチ"], groups["data"], groups["fetch"]}) == 3
    assert bridge.halves("クロンカイト") == bridge.halves("データ") == bridge.halves("トランペット") == ()


@pytest.mark.parametrize(
    ("word", "stem", "ending"),
    [
        ("park", "park", ""), ("parks", "park", ""), ("parking", "park", "ing"), ("parked", "park", "ing"),
        ("setting", "set", "ing"), ("restoration", "restor", "ation"), ("reducers", "reduc", "er"),
        ("studies", "studi", ""), ("study", "studi", ""), ("node.js", "nodejs", ""), ("", "", ""),
    ],
)  # fmt: skip
def test_the_forms_of_a_plain_word_have_no_ending(word: str, stem: str, ending: str) -> None:
    assert bridge.form_ending(word, stem) == ending
