"""Answers with citations: where sentences end, which citations are theirs, and which of them hold."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bunko.answers.verify import split_answer, verify_sentences
from bunko.types.answers import DENIAL, AnswerSource, CheckedSentence, CitationState

LEAVE = "有給休暇は入社から六か月後に十日付与されます。使わなかった分は翌年度に繰り越せますが、二年で消えます。"
BACKUPS = "Backups are kept for 35 days in the Osaka region. Dr. Ito runs them at night."
SOURCES = [
    AnswerSource(1, "hr", "leave.md", "leave.md:L3-L9", LEAVE, "h1"),
    AnswerSource(2, "ops", "ops/backup notes.md", "ops/backup notes.md:L1-L4", BACKUPS, "h2"),
    AnswerSource(3, "ops", "door.md", "door.md:L1", "The door code is 4711.", "h3"),
]


def given_numbers(text: str) -> list[tuple[str, list[int]]]:
    return [(sentence.text, [given.number for given in sentence.citations]) for sentence in split_answer(text, SOURCES)]


def verify(text: str, **states: CitationState) -> list[CheckedSentence]:
    return verify_sentences(text, SOURCES, lambda source: states.get(source.tool, "same"))


def verify_one(text: str, **states: CitationState) -> CheckedSentence:
    [sentence] = verify(text, **states)
    return sentence


@pytest.mark.parametrize(
    "citation", ["[1]", "［１］", "【1】", "[^1]", "[source 1]", "【1†leave.md】", "[1](https://evil.example/?q=1)"]
)
def test_citations_are_understood_in_the_forms_that_models_write(citation: str) -> None:
    assert given_numbers(f"A day{citation}.") == [("A day.", [1])]


def test_several_sources_of_one_sentence_are_all_understood() -> None:
    assert given_numbers("A day [1][2]. Two days [1, 3]. Three days [1-3].") == [
        ("A day.", [1, 2]),
        ("Two days.", [1, 3]),
        ("Three days.", [1, 2, 3]),
    ]


def test_our_own_citations_are_understood_also_of_a_part_of_the_lines() -> None:
    assert given_numbers("A day (leave.md:L3-L9). Two days `ops/backup notes.md:L1-L4`. Three days leave.md:L4.") == [
        ("A day.", [1]),
        ("Two days.", [2]),
        ("Three days.", [1]),
    ]
    assert given_numbers("A day (leave.md:L40).") == [("A day.", [0])]


def test_a_citation_after_the_full_stop_belongs_to_the_sentence_before_it() -> None:
    assert given_numbers("The first. [1] The second.[2] 三つ目です。［3］") == [
        ("The first.", [1]),
        ("The second.", [2]),
        ("三つ目です。", [3]),
    ]


def test_a_citation_at_the_beginning_of_a_line_belongs_to_the_sentence_after_it() -> None:
    assert given_numbers("[1] The first.\n\n[2] The second.") == [("The first.", [1]), ("The second.", [2])]


def test_a_citation_at_the_end_of_a_paragraph_or_item_covers_the_sentences_before_it_there() -> None:
    assert given_numbers("One. Two. [1]\n\nThree.\n\n- Four. Five [2].\n- Six.") == [
        ("One.", [1]),
        ("Two.", [1]),
        ("Three.", []),
        ("Four.", [2]),
        ("Five.", [2]),
        ("Six.", []),
    ]


def test_a_line_that_introduces_a_list_gives_its_citation_to_the_items() -> None:
    assert given_numbers("These are the rules [1]:\n\n- One\n- Two [2]") == [
        ("These are the rules:", [1]),
        ("One", [1]),
        ("Two", [2]),
    ]


def test_abbreviations_decimals_and_quotes_do_not_end_sentences() -> None:
    text = 'Dr. Ito wrote "It is 3.5 m." He was right, e.g. on 3 May. 彼は「終わった。」と言った。'
    assert [sentence.text for sentence in split_answer(text, SOURCES)] == [
        'Dr. Ito wrote "It is 3.5 m."',
        "He was right, e.g. on 3 May.",
        "彼は「終わった。」と言った。",
    ]


def test_a_heading_is_not_part_of_the_sentence_right_below_it() -> None:
    heading, sentence = verify("## Answer\nBackups are kept for 35 days [2].")
    assert (heading.text, heading.status) == ("Answer", "plain")
    assert (sentence.text, sentence.status, sentence.before) == ("Backups are kept for 35 days.", "supported", "\n")


def test_code_is_one_unit_and_its_brackets_are_no_citations() -> None:
    assert given_numbers("Run this:\n\n```python\nx = a[1]\nb()\n```\n\nUse `a[2]` then [3].") == [
        ("Run this:", []),
        ("```python\nx = a[1]\nb()\n```", []),
        ("Use `a[2]` then.", [3]),
    ]


def test_each_row_of_a_table_is_checked_by_itself() -> None:
    rows = verify("| what | kept |\n|---|---|\n| backups | 35 days [2] |\n| backups | 60 days [2] |")
    assert [row.status for row in rows] == ["plain", "plain", "supported", "unsupported"]


def test_a_sentence_that_its_source_says_is_supported_in_either_language() -> None:
    for text in ("Backups are kept for 35 days [2].", "有給休暇は6か月後に10日付与されます［1］。"):
        sentence = verify_one(text)
        assert (sentence.status, sentence.missing) == ("supported", ())
        assert sentence.citations[0].supports


def test_a_changed_number_is_not_supported_and_is_named() -> None:
    sentence = verify_one("バックアップは60日間保管されます［2］。")
    assert sentence.status == "unsupported"
    assert "60日間" in sentence.missing
    assert not sentence.citations[0].supports


def test_an_invented_source_is_told_from_one_that_was_shown() -> None:
    sentence = verify_one("It was set up by Bob [9].")
    assert [(given.number, given.state, given.supports) for given in sentence.citations] == [(0, "not_shown", False)]
    assert sentence.status == "unsupported"


@pytest.mark.parametrize("state", ["changed", "deleted"])
def test_a_source_that_is_no_longer_there_supports_nothing(state: CitationState) -> None:
    sentence = verify_one("Backups are kept for 35 days [2].", ops=state)
    assert sentence.status == "unsupported"
    assert [(given.state, given.supports) for given in sentence.citations] == [(state, False)]


def test_a_source_that_moved_still_supports() -> None:
    assert verify_one("Backups are kept for 35 days [2].", ops="moved").status == "supported"


@pytest.mark.parametrize(
    "label", ["回答: ", "回答：", "答え: ", "結論: ", "**回答:** ", "**回答**: ", "Answer: ", "A: ", "Conclusion: "]
)
def test_the_label_of_a_sentence_is_no_part_of_what_it_claims(label: str) -> None:
    text = "非同期処理は、待ち時間のあいだに別の処理を進める仕組みです。コールバックは使いません。"
    source = AnswerSource(1, "docs", "async.md", "async.md:L1-L3", text, "h")

    def verify_labelled(claim: str) -> CheckedSentence:
        [sentence] = verify_sentences(f"{label}{claim}[1]", [source], lambda _: "same")
        return sentence

    for claim in ("非同期処理は、待ち時間のあいだに別の処理を進める仕組みです。", "コールバックは使いません。"):
        sentence = verify_labelled(claim)
        assert (sentence.status, sentence.missing) == ("supported", ())
        assert sentence.text.startswith(label.strip("*: ：")), "it is shown"
    denied = verify_labelled("コールバックを使います。")
    assert (denied.status, denied.missing) == ("unsupported", (DENIAL,))


@pytest.mark.parametrize("words", ["補足事項: ", "Remarks for beginners: "])
def test_words_that_a_source_does_not_have_are_not_denied_by_it(words: str) -> None:
    text = "非同期処理は、待ち時間のあいだに別の処理を進める仕組みです。コールバックは使いません。"
    source = AnswerSource(1, "docs", "async.md", "async.md:L1-L3", text, "h")
    [sentence] = verify_sentences(f"{words}コールバックは使いません。[1]", [source], lambda _: "same")
    assert DENIAL not in sentence.missing


def test_a_citation_that_is_missing_or_wrong_is_added_as_ours() -> None:
    for text in ("Backups are kept for 35 days.", "Backups are kept for 35 days [1]."):
        sentence = verify_one(text)
        assert sentence.status == "supported"
        assert (sentence.citations[-1].number, sentence.citations[-1].added) == (2, True)
    assert verify_one("Backups are kept for 35 days [1].").citations[0].supports is False


@pytest.mark.parametrize(
    "text",
    [
        "Here is what I found:",
        "The library does not say who approves it.",
        "資料には記載されていません。",
        "## Backups",
        "Would you like to know more?",
        "お役に立てば幸いです。",
    ],
)
def test_what_claims_nothing_needs_no_citation(text: str) -> None:
    assert verify_one(text).status == "plain"


@pytest.mark.parametrize(
    "text", ["Here is what Bob found in 1999:", "## Refunds after 60 days", "Sure, Bob pays 99 euro."]
)
def test_a_number_or_name_makes_a_claim_of_any_sentence(text: str) -> None:
    assert verify_one(text).status == "unsupported"


def test_the_layout_of_an_answer_can_be_restored() -> None:
    text = "Intro:\n\n- One day. Two days.\n- Three days.\n\nThe end."
    assert "".join(f"{sentence.before}{sentence.text}" for sentence in verify(text)) == text


@given(st.text(alphabet=st.sampled_from("ab1[]［］【】.。 \n|-#`:*L3「」、あ漢5日ない"), max_size=60))
def test_any_text_is_split_without_an_error_or_a_lost_letter(text: str) -> None:
    assume(":L" not in text)  # 漢:L1 is a citation
    sentences = verify_sentences(text, SOURCES, lambda _: "same")
    left = "".join(f"{sentence.before}{sentence.text}" for sentence in sentences)
    assert left.count("漢") == text.count("漢")
    assert left.count("b") == text.count("b")


@pytest.mark.parametrize(
    "text", ["[" * 8000, "9" * 8000, "一" * 8000, "1 hundred and " * 500, "`" * 8000, "a:L" * 2600]
)
def test_a_sentence_without_end_is_not_supported(text: str) -> None:
    assert {sentence.status for sentence in verify(text)} <= {"unsupported", "plain"}
