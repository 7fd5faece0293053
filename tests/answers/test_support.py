"""Whether a passage supports a sentence, on judged pairs in both languages and across them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from bunko.answers.evidence import analyze_passage
from bunko.answers.support import Support, check_support

PAIRS = Path(__file__).parents[1] / "fixtures" / "answers" / "support_pairs.json"


class Pair(NamedTuple):
    half: str
    passage: str
    text: str
    kind: str
    is_supported: bool


def load_pairs() -> list[Pair]:
    groups = json.loads(PAIRS.read_text(encoding="utf-8"))
    return [
        Pair(group["half"], group["passage"], sentence["text"], sentence["kind"], sentence["supported"])
        for group in groups
        for sentence in group["sentences"]
    ]


def check(sentence: str, *passages: str) -> Support:
    return check_support(sentence, [analyze_passage(passage) for passage in passages])


def is_passed(pair: Pair) -> bool:
    return check(pair.text, pair.passage).status == "supported"


@pytest.fixture(scope="module")
def passed() -> dict[Pair, bool]:
    return {pair: is_passed(pair) for pair in load_pairs()}


@pytest.mark.parametrize(("half", "precision", "recall"), [("tuning", 0.97, 0.9), ("held out", 0.94, 0.86)])
def test_few_sentences_pass_that_should_not_and_most_that_should(
    passed: dict[Pair, bool], half: str, precision: float, recall: float
) -> None:
    pairs = [pair for pair in passed if pair.half == half]
    assert len(pairs) > 100
    right = sum(pair.is_supported and passed[pair] for pair in pairs)
    assert right / sum(passed[pair] for pair in pairs) >= precision
    assert right / sum(pair.is_supported for pair in pairs) >= recall


@pytest.mark.parametrize(
    "kind",
    "number date unit negation name comparison antonym extra plausible cross-number cross-negation cross-name".split(),
)
def test_no_sentence_passes_that_changes_what_a_passage_says(passed: dict[Pair, bool], kind: str) -> None:
    pairs = [pair for pair in passed if pair.kind == kind]
    assert pairs
    assert [pair.text for pair in pairs if passed[pair]] == []


def test_a_sentence_tells_which_of_its_words_are_not_in_the_passage() -> None:
    passage = "Backups are kept for 35 days in the Osaka region."
    assert check("Backups are kept for 60 days.", passage).missing == ("60 days",)
    assert check("Backups are kept for 35 days in the Tokyo region.", passage).missing == ("Tokyo",)
    assert check("Backups are not kept for 35 days.", passage).missing == ("not",)


def test_a_sentence_of_which_one_half_is_made_up_is_partly_supported() -> None:
    passage = "合言葉は毎朝6時に変わります。社員の端末はつながないでください。"
    support = check("合言葉は毎朝6時に変わり、メールで社員に知らされます。", passage)
    assert support.status == "partly"
    assert "メール" in support.missing


def test_two_passages_together_support_a_sentence_that_each_supports_in_part() -> None:
    sentence = "Backups are kept for 35 days, and restoring one takes two hours."
    kept, restored = "Backups are kept for 35 days.", "Restoring a backup takes two hours."
    assert check(sentence, kept).status == "partly"
    assert check(sentence, kept, restored).status == "supported"


def test_the_headings_above_a_passage_count_as_what_it_is_about() -> None:
    passage = analyze_passage("Delivered in 3 days.", "Shipping to Norway")
    assert check_support("Shipping to Norway: delivered in 3 days.", [passage]).status == "supported"
    assert check_support("Shipping to Sweden: delivered in 3 days.", [passage]).status != "supported"


def test_nothing_supports_a_sentence_without_sources() -> None:
    assert check("Backups are kept for 35 days.").status == "unsupported"
    assert check("", "Backups are kept.").status == "unsupported"


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("Backups are kept for 35 days in Osaka.", "Backups are hardly ever kept for 35 days in Osaka."),
        ("Aiko Tanaka approves every restore.", "Aiko Tanaka seldom approves a restore."),
        ("Backups are kept for 35 days in Osaka.", "Backups are kept for less than 35 days in Osaka."),
        ("Backups are kept for 35 days in Osaka.", "Backups are kept for 35 days outside Osaka."),
        ("The freezer is kept at -18 °C.", "The freezer is kept at 18 °C."),
        ("Delivery takes 10-20 days.", "Delivery takes 15-20 days."),
        ("Send it to info@aoba.example first.", "Send it to sales@aoba.example first."),
        ("契約書は佐藤健一が署名した。", "契約書は未署名である。"),
        ("契約書は佐藤健一が署名した。", "契約書は佐藤健一が署名を拒否した。"),
        ("支払期限は翌月末である。", "支払期限は翌々月末である。"),
        ("申請は前日の17時までに部長へ提出する。", "申請は当日の17時までに部長へ提出する。"),
        ("申請は前日の17時までに部長へ提出する。", "申請は前日の17時までに課長へ提出する。"),
        ("社員は週に2日まで在宅勤務できる。", "社員は月に2日まで在宅勤務できる。"),
        ("社員は週に2日まで在宅勤務できる。", "社員は週に2日以上在宅勤務できる。"),
        ("社員は週に2日まで在宅勤務できる。", "役員は週に2日まで在宅勤務できる。"),
        ("冷凍庫は-18℃に保つ。", "冷凍庫は18℃に保つ。"),
    ],
)
def test_what_is_altered_a_little_is_not_supported(passage: str, sentence: str) -> None:
    assert check(passage, passage).status == "supported"
    assert check(sentence, passage).status != "supported"


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("Logs may be removed if they are more than 14 days old.", "Logs more than 14 days old may be removed."),
        ("The freezer is kept at -18 °C.", "冷凍庫はマイナス18℃に保つ。"),
        ("通信費として月4,000円を支給する。", "通信費として月に4000円が支給される。"),
        ("社員は週2日まで在宅勤務できる。", "社員は週に2日まで在宅勤務できる。"),
        ("この資料は非公開である。", "この資料は公開されていない。"),
        ("Delivery takes 10-20 days.", "Delivery takes 10 to 20 days."),
    ],
)
def test_what_is_only_written_otherwise_is_supported(passage: str, sentence: str) -> None:
    assert check(sentence, passage).status == "supported"
