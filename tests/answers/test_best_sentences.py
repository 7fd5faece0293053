"""The sentences that answer a question best, chosen without a model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bunko.answers.best_sentences import choose_sentences
from bunko.types.answers import AnswerSource

LEAVE = (
    "# 休暇\n\n有給休暇は入社から六か月後に十日付与されます。夏には祭りがあります。\n\n"
    "- 半日単位でも取れます。\n- 申請は前日の正午までに上長へ出してください。\n"
)
BACKUPS = "Backups are kept for 35 days. Restoring a backup takes two hours. The team likes coffee."


def source(number: int, text: str, title: str = "", **more: object) -> AnswerSource:
    return AnswerSource(number, "notes", f"{number}.md", f"{number}.md:L1", text, "h", title=title, **more)  # type: ignore[arg-type]


def texts(question: str, *sources: AnswerSource) -> list[str]:
    return [chosen.text for chosen in choose_sentences(question, sources)]


def test_the_sentence_with_the_words_of_the_question_comes_first() -> None:
    assert texts("How long are backups kept?", source(1, BACKUPS))[0] == "Backups are kept for 35 days."
    assert (
        texts("有給休暇は何日付与されますか", source(1, LEAVE))[0] == "有給休暇は入社から六か月後に十日付与されます。"
    )


def test_a_question_is_answered_from_a_text_in_the_other_language() -> None:
    assert texts("バックアップは何日間保管されますか", source(1, BACKUPS))[0] == "Backups are kept for 35 days."


def test_of_sentences_in_two_languages_that_of_the_question_comes_first() -> None:
    english, japanese = source(1, BACKUPS), source(2, "バックアップは 35 日間保管されます。復元には二時間かかります。")
    for question, first in (
        ("バックアップは何日間保管されますか", "バックアップは 35 日間保管されます。"),
        ("How long are backups kept?", "Backups are kept for 35 days."),
    ):
        for sources in ([english, japanese], [japanese, english]):
            assert texts(question, *sources)[0] == first


def test_a_sentence_with_a_number_answers_how_many_rather_than_one_without() -> None:
    passage = source(1, "The gateway takes sensors of any make. The gateway takes up to 250 sensors.")
    assert texts("How many sensors does the gateway take?", passage)[0] == "The gateway takes up to 250 sensors."


def test_the_headings_above_a_sentence_count_as_what_it_is_about() -> None:
    right = source(1, "It takes two hours.", "Restoring a backup")
    assert texts("How long does restoring a backup take?", source(2, "It takes nine days.", "Moving house"), right) == [
        "It takes two hours."
    ]


def test_what_several_documents_say_is_one_sentence_with_all_of_them_as_sources() -> None:
    chosen = choose_sentences("How long are backups kept?", [source(1, BACKUPS), source(2, BACKUPS)])
    assert chosen[0].sources == (1, 2)
    assert len({sentence.text for sentence in chosen}) == len(chosen)


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("バックアップは何日間保存しますか", "バックアップは20日間保存する。", "バックアップは10日間保存する。"),
        (
            "What is the price of the plan?",
            "The price of the plan in Kyoto is 600 yen.",
            "The price of the plan in Osaka is 600 yen.",
        ),
        (
            "Is a permit needed for the roof?",
            "A permit is needed for the roof.",
            "A permit is not needed for the roof.",
        ),
    ],
)
def test_documents_that_differ_in_a_number_a_name_or_a_negation_are_not_sources_of_one_sentence(
    question: str, first: str, second: str
) -> None:
    chosen = choose_sentences(question, [source(1, first), source(2, second)])
    assert {sentence.text: sentence.sources for sentence in chosen} == {first: (1,), second: (2,)}


def test_nothing_is_chosen_if_no_sentence_fits() -> None:
    assert texts("What is the capital of Mongolia?", source(1, BACKUPS), source(2, LEAVE)) == []
    assert texts("社員食堂の献立は", source(1, BACKUPS)) == []
    assert texts("How long are backups kept?") == []


def test_a_question_about_a_name_that_no_source_has_is_not_answered() -> None:
    passage = source(1, "The Leiden office has 12 people. The Paris office has 4.")
    assert texts("How many people work in the Leiden office?", passage)
    assert texts("How many people work in the Berlin office?", passage) == []


def test_a_row_of_a_table_is_quoted_with_the_names_of_its_columns() -> None:
    passage = source(1, "| Plan | Price |\n|---|---|\n| Basic | 5 euro |\n| Team | 12 euro |")
    assert texts("How much does the Team plan cost?", passage)[0] == "Plan: Team, Price: 12 euro"


def test_similarity_chooses_among_sentences_without_the_words_of_the_question() -> None:
    def similarity(question: str, candidates: Sequence[str]) -> list[float]:
        return [0.9 if "rained" in candidate else 0.0 for candidate in candidates]

    passage = source(1, "It rained all day. The cat slept.")
    assert choose_sentences("weather?", [passage], similarity=similarity)[0].text == "It rained all day."
    assert choose_sentences("weather?", [passage]) == []


def test_the_sentence_right_below_a_heading_is_chosen() -> None:
    rules = source(1, "# 規則\n\n## 経費\n出張の宿泊費は1泊12,000円を上限とする。領収書は14日以内に提出する。")
    assert texts("宿泊費の上限はいくら", rules)[0] == "出張の宿泊費は1泊12,000円を上限とする。"
    grinder = source(1, "## Grinder\nThe grinder is set to 24 clicks.\n## Kettle\nThe kettle is set to 93 degrees.")
    assert texts("How many clicks is the grinder set to?", grinder)[0] == "The grinder is set to 24 clicks."


def test_a_heading_is_never_chosen() -> None:
    assert texts("Who approves refunds?", source(1, "## Who approves refunds?\nAsk Mika.")) in ([], ["Ask Mika."])


def test_the_last_row_of_a_table_is_chosen_like_any_other() -> None:
    table = "| plan | price |\n|---|---|\n| Starter | 500 yen |\n| Team | 2,400 yen |"
    for text in (table, f"{table}\n", f"{table}\n\nAsk Mika for an offer.", f"{table}\n\n---\n\nMore."):
        assert texts("How much is the Team plan?", source(1, text))[0] == "plan: Team, price: 2,400 yen"
