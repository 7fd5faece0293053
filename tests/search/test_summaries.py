"""What some hits say together: counts, dates, tags, phrases, and sentences that stand in them."""

from __future__ import annotations

from bunko.search.summaries import format_summary, summarize_hits
from bunko.types import Chunk, Hit

MEETING = "来期の予算について話し合った。広告費を一割減らし、検証環境のサーバーに回すことに決めた。"
MOVE = """古いサーバーから新しい検証環境へ
データを移した。バックアップは毎晩三時に取る。
- 移行の途中でディスクが足りなくなった
- password: hunter2secret
Tags: 仕事"""
REVIEW = "We reviewed the advertising budget for the next quarter. Ok. The server costs went over the budget again."


def hit(number: int, text: str, *, date: str = "", tags: tuple[str, ...] = (), title: str = "") -> Hit:
    chunk = Chunk(0, 0, len(text), 1, 1 + text.count("\n"), text)
    return Hit("memos", f"memo.txt#{number}", title, date, tags, "", chunk, 1 / number)


HITS = [
    hit(1, MEETING, date="2024-01-15", tags=("会議", "予算"), title="予算会議"),
    hit(2, MOVE, date="2024-03-10", tags=("仕事",), title="サーバー移行"),
    hit(3, REVIEW, date="2023-12-01", tags=("予算",)),
]


def said(hits: list[Hit], query: str = "") -> list[str]:
    return [one.text for one in summarize_hits(hits, query).sentences]


def test_a_summary_counts_memos_and_tags_and_spans_their_dates() -> None:
    found = summarize_hits([*HITS, hit(1, "もう一つの塊。", date="2024-01-15", tags=("会議", "予算"))], "予算")
    assert found.count == 3
    assert (found.since, found.until) == ("2023-12-01", "2024-03-10")
    assert found.tags == (("予算", 2), ("仕事", 1), ("会議", 1))
    assert "検証環境" in found.phrases


def test_sentences_are_whole_and_stand_in_the_hits() -> None:
    for sentence in said(HITS, "予算"):
        assert any(sentence in text.replace("\n", "") for text in (MEETING, MOVE, REVIEW))
        assert len(sentence) >= 8


def test_every_hit_is_heard_before_one_of_them_says_it_all() -> None:
    uris = {one.uri for one in summarize_hits(HITS, "サーバー").sentences}
    assert uris == {"memo.txt#1", "memo.txt#2", "memo.txt#3"}


def test_what_was_asked_for_decides_what_is_said() -> None:
    lines = ["猫は昼に縁側で寝る。", "犬は夜に庭で吠える。", "鳥は朝に枝で鳴く。", "魚は夏の川を泳ぐ。"]
    lines += ["馬は緑の丘を走る。", "牛は畑の草を食べる。", "羊は霧の谷に集まる。"]
    for line, query in zip(lines[-3:], ("走った馬", "草", "霧が出た"), strict=True):
        assert line in said([hit(1, "".join(lines))], query)
        assert line not in said([hit(1, "".join(lines))], "猫")


def test_a_wrapped_line_is_joined_and_a_list_item_stands_alone() -> None:
    found = said([HITS[1]], "検証環境 ディスク")
    assert "古いサーバーから新しい検証環境へデータを移した。" in found
    assert "移行の途中でディスクが足りなくなった" in found


def test_neither_a_secret_nor_a_line_of_tags_is_a_telling_sentence() -> None:
    found = format_summary(summarize_hits([HITS[1]], "password tags 仕事"))
    assert "hunter2secret" not in found
    assert not any(sentence.startswith("Tags") for sentence in said([HITS[1]], "tags 仕事"))


def test_the_same_sentence_is_said_once_and_at_most_five_are() -> None:
    line = "サーバーの監視を毎朝の当番が確かめる。"
    assert said([hit(1, line), hit(2, line)]) == [line]
    many = "".join(
        f"{name}の工場では{thing}を毎日作っている。" for name, thing in zip("東西南北上下", "紙布油塩酒茶", strict=True)
    )
    assert len(said([hit(1, many)])) <= 5


def test_a_summary_of_nothing_says_so() -> None:
    found = summarize_hits([], "予算")
    assert (found.count, found.since, found.sentences, found.phrases) == (0, "", (), ())
    assert format_summary(found) == "0 results"


def test_a_summary_is_written_in_lines_with_the_place_of_each_sentence() -> None:
    lines = format_summary(summarize_hits(HITS, "予算")).splitlines()
    assert lines[:2] == ["3 results, 2023-12-01 to 2024-03-10", "tags: 予算 (2), 仕事 (1), 会議 (1)"]
    assert lines[2].startswith("about: ")
    assert any(line.startswith("- ") and line.endswith("(2024-01-15 予算会議)") for line in lines)
    assert any(line.endswith("(2023-12-01)") for line in lines)


def test_a_common_word_that_was_asked_for_counts() -> None:
    text = "朝から応答が遅いという連絡が続いた。原因は接続の枯渇だった。夕方に修正を配って監視を足した。"
    others = [hit(number, f"第{number}の連絡と応答と修正の記録を夕方に書いて監視を続けた。") for number in range(2, 8)]
    assert "原因は接続の枯渇だった。" in said([hit(1, text), *others], "障害の原因")


def test_a_question_ends_before_a_word_in_letters_too() -> None:
    assert "LLMは遅いしお金がかかる。" in said(
        [hit(1, "規則だけで十分役に立つのではないか？LLMは遅いしお金がかかる。")], "LLM お金"
    )


def test_what_stands_below_a_mark_or_a_colon_begins_anew() -> None:
    text = "【今週】\n・検索画面の実装を終えた\n【来週】\n・性能試験の準備を始める\n決定:\n開発費を一割だけ増やす\n"
    found = said([hit(1, text)], "検索画面 性能試験 開発費")
    assert found == ["検索画面の実装を終えた", "性能試験の準備を始める", "開発費を一割だけ増やす"]
