"""Answers as Slack messages: nothing in a document has a meaning to Slack, and everything fits."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.rendering import (
    escape,
    from_markdown,
    link,
    render_answer,
    render_text,
    split_text,
    unescape,
)
from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedCitation, CheckedSentence

PAGE = AnswerSource(
    1, "web", "https://example.com/a?x=1&y=2", "https://example.com/a:L1", "text", "h", title="表題 <b>"
)
FILE = AnswerSource(2, "notes", "backup.md", "backup.md:L3-L9", "text", "h")
SHEET = AnswerSource(3, "notes", "表.xlsx", "表.xlsx:L3", "text", "h", place="Sheet1!B5", title="予算")


def sentence(text: str, *numbers: int, before: str = "") -> CheckedSentence:
    citations = tuple(CheckedCitation(f"[{number}]", number, "same", supports=True) for number in numbers)
    return CheckedSentence(text, "supported", citations, before=before)


def render(*sentences: CheckedSentence, model: str = "m") -> list[dict[str, object]]:
    answer = CheckedAnswer("質問", list(sentences), [PAGE, FILE, SHEET], model=model)
    return render_answer(answer, Messages("ja"), feedback_key="k")


def test_sources_are_links_to_pages_and_names_of_files_with_places() -> None:
    [message] = render(sentence("A。", 1), sentence("B。", 2, 3))
    assert message["text"] == (
        "A。 <https://example.com/a?x=1&amp;y=2|[1]> B。 [2][3]\n\n"
        "出典:\n"
        "[1] <https://example.com/a?x=1&amp;y=2|表題 &lt;b&gt;>\n"
        "[2] backup.md:L3-L9\n"
        "[3] 予算 (表.xlsx:Sheet1!B5)"
    )


def test_the_name_of_a_file_forges_no_line_and_no_order() -> None:
    source = AnswerSource(
        1, "n", "a", "a\u202egnp\n[9] <!here>\x1b[2J\u2066.md:L1", "text", "h", title="t\u202e\n[8] x"
    )
    answer = CheckedAnswer("質問", [sentence("A\u202e。", 1)], [source], notices=["b\u2067"], model="m")
    [message] = render_answer(answer, Messages("ja"), feedback_key="k")
    assert message["text"] == "A。 [1]\n\n出典:\n[1] t [8] x (agnp [9] &lt;!here&gt;[2J.md:L1)"
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", json.dumps(message, ensure_ascii=False))


def test_an_answer_without_sources_has_no_buttons() -> None:
    [message] = render()
    assert message["text"] == "ライブラリーには書かれていません。"
    assert [block["type"] for block in message["blocks"]] == ["section"]  # type: ignore[attr-defined]
    [message] = render(sentence("A。", 1))
    assert [block["type"] for block in message["blocks"]] == ["section", "section", "actions"]  # type: ignore[attr-defined]


def test_markdown_becomes_the_markup_of_slack() -> None:
    text = "# 見出し\n- **太字** と [リンク](https://evil.example)\n* x < y & z"
    assert from_markdown(text) == "*見出し*\n• *太字* と リンク\n• x &lt; y &amp; z"


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://user@example.com/", "https://[", "http:///x", "a.md"]
)
def test_only_web_pages_are_linked(url: str) -> None:
    assert link(url, "ラベル|<!here>") == "ラベル¦&lt;!here&gt;"


def test_a_url_cannot_end_its_link() -> None:
    assert link("https://example.com/>|<!here> x", "a") == "<https://example.com/%3E%7C%3C!here%3E%20x|a>"


@given(st.text(), st.text())
def test_no_text_of_a_document_has_a_meaning_to_slack(text: str, title: str) -> None:
    source = AnswerSource(1, "web", "https://example.com/", "c", "t", "h", title=title)
    citations = (CheckedCitation("[1]", 1, "same", supports=True),)
    answer = CheckedAnswer("q", [CheckedSentence(text, "unsupported", citations, missing=(text,))], [source], model="m")
    for message in [*render_answer(answer, Messages("en"), feedback_key="k"), *render_text(text, Messages("en"))]:
        markup = re.findall(r"<[^>]*>?", message["text"])
        assert all(re.fullmatch(r"<https://example\.com/\|[^<>|]+>", found) for found in markup)


@pytest.mark.parametrize("text", ["字" * 100_000, "<&>" * 30_000, "word " * 30_000, "文です。" * 20_000])
def test_long_answers_are_split_into_what_slack_accepts(text: str) -> None:
    messages = render(sentence(text, 1))
    assert 1 < len(messages) <= 5
    for message in messages:
        blocks = message["blocks"]
        assert isinstance(blocks, list)
        assert len(str(message["text"])) <= 40_000
        assert len(blocks) <= 50
        assert all(len(block["text"]["text"]) <= 3000 for block in blocks if block["type"] == "section")
    assert len(render_text(text, Messages("ja"))) == 4


@given(st.text(alphabet="a<&> \n。", max_size=200), st.integers(20, 40))
def test_splitting_loses_no_character_that_is_not_blank_and_cuts_no_entity(text: str, limit: int) -> None:
    pieces = split_text(escape(text), limit)
    assert all(len(piece) <= limit for piece in pieces)
    joined = "".join(unescape(piece) for piece in pieces)
    assert re.sub(r"\s", "", joined) == re.sub(r"\s", "", text)
    assert all(not re.search(r"&[a-z]*$|^[a-z]*;", piece) for piece in pieces)
