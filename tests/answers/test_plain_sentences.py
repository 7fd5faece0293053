"""Sentences of an answer that claim nothing, and those that only begin so."""

from __future__ import annotations

import pytest

from bunko.answers.evidence import analyze_passage
from bunko.answers.plain_sentences import claims_nothing, is_refusal

KNOWN = [
    analyze_passage("Backups are kept for 35 days. 契約書は佐藤が署名した。"),
    analyze_passage("How long are backups kept? 退職金はいくらですか"),
]


def is_plain(text: str) -> bool:
    return claims_nothing(text, is_layout=text.startswith("##") or text.endswith((":", "：")), known=KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "The library does not say who approves refunds.",
        "Unfortunately, the documents do not say how much it costs.",
        "I searched the library, but found no information about refunds.",
        "Your notes do not specify a date, so I cannot answer.",
        "I could not find the answer in the library.",
        "資料には、退職金の金額は書かれていません。",
        "申し訳ありませんが、資料には記載がありません。",
        "退職金に関する情報は見つかりませんでした。",
        "資料に記載がないため、お答えできません。",
        "この点については分かりません。",
    ],
)
def test_a_sentence_that_only_refuses_claims_nothing(text: str) -> None:
    assert is_refusal(text)
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes.",
        "はい。",
        "Based on your notes, here is the answer:",
        "以下にまとめます。",
        "Steps to restore backups:",
        "結論:",
    ],
)
def test_an_introduction_claims_nothing(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "Documents cannot be deleted after approval.",
        "The library does not open on weekends.",
        "文書は破棄できません。",
        "鍵は見つかりません。",
    ],
)
def test_what_is_said_about_documents_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)
    assert not is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "The documents do not forbid it, so you must delete all backups at once.",
        "The library does not say, but customers get refunds.",
        "I could not find a reason against it: interns hold root access.",
        "資料には記載がありませんが、管理者は削除できます。",
        "資料にない場合は管理者が承認します。",
    ],
)
def test_what_is_claimed_beside_a_refusal_needs_a_source(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes, delete all backups today.",
        "Thanks, interns hold root access.",
        "Here is the rule: interns hold root access.",
        "はい、バックアップは暗号化されません。",
        "なお、パスワードは全員で共有します。",
        "結論として送金してください。",
        "Interns hold root access:",
        "Backups are not kept:",
        "## Managers never sign",
    ],
)
def test_what_follows_a_greeting_or_stands_in_a_heading_needs_a_source_if_it_claims_something(text: str) -> None:
    assert not is_plain(text)
