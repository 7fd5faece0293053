"""What people write to the bot, as Slack sends it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.interfaces.slack.commands import Command, parse_message

URL = "https://example.com/docs"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("<@UBOT> rag crawl <https://example.com/docs>", Command("crawl", URL)),
        ("<@UBOT> rag crawl <https://example.com/docs|example.com/docs>", Command("crawl", URL)),
        (
            "<@UBOT>　rag　crawl　<https://example.com/docs>　\\.html$",
            Command("crawl", URL, r"\.html$"),
        ),
        ('<@UBOT> rag crawl <https://example.com/docs> "\\.html$"', Command("crawl", URL, r"\.html$")),
        ("<@UBOT> rag crawl <https://example.com/docs> “\\.html$”", Command("crawl", URL, r"\.html$")),
        ("<@UBOT> rag crawl <https://example.com/docs> `\\.html$`", Command("crawl", URL, r"\.html$")),
        ("<@UBOT> rag crawl <https://example.com/docs> ^(?!.*&lt;).*", Command("crawl", URL, "^(?!.*<).*")),
        (
            "<@UBOT> rag crawl <https://example.com/docs> <http://example.com/a|example.com/a>.*",
            Command("crawl", URL, "example.com/a.*"),
        ),
        ("rag crawl https://example.com/docs", Command("crawl", URL)),
        ("rag add 「<https://example.com/docs>」", Command("add", URL)),
        ("rag add “https://example.com/docs”。", Command("add", URL)),
        ("rag add <https://example.com/docs>。", Command("add", URL)),
        ("ＲＡＧ　ＡＤＤ　<https://example.com/docs>", Command("add", URL)),
        ("<@UBOT|bunko>、 Rag Add <https://example.com/?a=1&amp;b=2>", Command("add", "https://example.com/?a=1&b=2")),
        ("rag add <http://例え.jp/道|例え.jp/道>", Command("add", "http://例え.jp/道")),
        ("<@UBOT> rag crawl <https://example.com/docs> ¥.html$", Command("crawl", URL, r"\.html$")),
        ("<@UBOT> rag crawl <https://example.com/docs> ＼.html$", Command("crawl", URL, r"\.html$")),
        ("rag crawl <https://example.com/docs> \\.html$ <@UBOT>", Command("crawl", URL, r"\.html$")),
        ("rag status <@UBOT|bunko>", Command("status")),
        ("<@UBOT> `rag status`", Command("status")),
        ("<@UBOT> ```rag add https://example.com/docs```", Command("add", URL)),
        ("<@UBOT> *rag add <https://example.com/docs>*", Command("add", URL)),
        ("<@UBOT> 「rag status」", Command("status")),
        ("rag add <https://example.com/docs> <https://example.com/guide>", Command("add")),
        ("rag delete <https://example.com/docs>, <https://example.com/guide>", Command("delete")),
        ("rag delete <https://example.com/docs> を消して", Command("delete", URL)),
        ("rag allow <http://example.com|example.com> <http://example.org|example.org>", Command("allow")),
        ("rag --help", Command("help")),
        ("rag ヘルプ", Command("help")),
        ("rag add", Command("add")),
        ("rag add <mailto:a@example.com|a@example.com>", Command("add")),
        ("rag add ftp://example.com/", Command("add")),
        ("<@UBOT> rag status", Command("status")),
        ("<@UBOT> rag status。", Command("status")),
        ("rag delete <https://example.com/docs>", Command("delete", URL)),
        ("rag allow <http://example.com|example.com>", Command("allow", "example.com")),
        ("rag disallow *.example.com", Command("disallow", "*.example.com")),
        ("rag domains", Command("domains")),
        ("rag", Command("help")),
        ("rag help", Command("help")),
        ("rag crwal <https://example.com/docs>", Command("help")),
        ("rag stats", Command("help")),
        ("<@UBOT>", Command("help")),
        ("", Command("help")),
    ],
)
def test_commands_are_understood_as_slack_sends_them(text: str, command: Command) -> None:
    assert parse_message(text, bot_user="UBOT") == command


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("<@UBOT> 保存期間は？", "保存期間は？"),
        ("<@UBOT> rag とは何ですか", "rag とは何ですか"),
        ("rag pipeline の説明は？", "rag pipeline の説明は？"),
        ("なぜ <https://example.com|example.com> は a &lt; b &amp;&amp; c？", "なぜ example.com は a < b && c？"),
        ("<@U2> と <#C1|general> と <!here> は <@UBOT> 何？", "@U2 と general と !here は 何？"),
        ("`rag` とは", "`rag` とは"),
        ("「rag は何の略？」", "「rag は何の略？」"),
        ("dragon crawl <https://example.com>", "dragon crawl https://example.com"),
    ],
)
def test_everything_else_is_a_question(text: str, question: str) -> None:
    assert parse_message(f"<@UBOT> {text}", bot_user="UBOT") == question


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    parse_message(text, bot_user="UBOT")
