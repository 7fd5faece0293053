"""The commands that look at the library and change it, from Slack to the tools and back."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko.library.library import Library
from tests.site import Asked, Reply, Site, html
from tests.slack.conftest import StartBot
from tests.slack.running_bot import running_bot
from tests.slack.slack_service import SlackService


@pytest.fixture
def site() -> Iterator[Site]:
    """A site with an index page and two articles, of which one is missing."""
    with Site() as site:
        site.pages["/"] = html('<main><p>目次です。</p><a href="/a">a</a> <a href="/gone">gone</a></main>')
        site.pages["/a"] = html("<main><h1>バックアップ</h1><p>バックアップは30日間保存する。</p></main>")
        yield site


def writable(site: Site, **more: str) -> dict[str, str]:
    return {"BUNKO_SLACK_WRITE_USERS": "U1", "BUNKO_CRAWL_ALLOWED_HOSTS": site.host, **more}


def texts(slack: SlackService, ts: str, number: int) -> list[str]:
    slack.wait_for(number)
    return [message["text"] for message in slack.in_thread(ts)]


def test_a_crawl_is_announced_at_once_and_its_result_comes_in_the_same_thread(
    bot: StartBot, slack: SlackService, site: Site
) -> None:
    with bot(**writable(site)) as sender:
        ts = sender.mention(f"rag crawl <{site.url('/')}>")
        started, done = texts(slack, ts, 2)
    assert started == "クロールを開始しました... (リンク収集中)"
    assert done == "└─ 完了: 2ページ / 2チャンク / エラー: 1件"
    assert all(not message.get("reply_broadcast") for message in slack.messages)
    assert {message["thread_ts"] for message in slack.messages} == {ts}


def test_a_page_is_added_counted_and_deleted(bot: StartBot, slack: SlackService, site: Site) -> None:
    page = site.url("/a")
    with bot(**writable(site)) as sender:
        sender.mention(f"rag add <{page}|{page}>")
        slack.wait_for(1)
        sender.mention("rag status", user="U2")
        slack.wait_for(2)
        sender.mention(f"rag delete <{page}>")
        added, counted, deleted = [message["text"] for message in slack.wait_for(3)]
    assert added == f"ページを取り込みました: {page} (1チャンク)"
    assert counted == "ナレッジベース統計:\n総チャンク数: 1\nソースURL数: 1"
    assert deleted == f"削除しました: {page} (1チャンク)"


def test_the_audit_log_names_the_user_of_slack(
    open_slack_library: Callable[..., Library], slack: SlackService, site: Site
) -> None:
    library = open_slack_library(**writable(site))
    with running_bot(library) as sender:
        sender.mention(f"rag add <{site.url('/a')}>")
        slack.wait_for(1)
    [entry] = library.store.audit.entries()
    assert (entry.who, entry.via, entry.result) == ("slack:U1", "slack", "done")


def test_what_fails_is_said_in_the_words_of_the_tool(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site)) as sender:
        ts = sender.mention(f"rag add <{site.url('/gone')}>")
        [text] = texts(slack, ts, 1)
    assert text.startswith(
        f"エラー: ページの取り込みに失敗しました。\nURL: {site.url('/gone')}\n原因: HTTP 404 Not Found"
    )


@pytest.mark.parametrize("how", ["MCP_ENABLED", "list"])
def test_commands_say_that_they_are_disabled_without_a_server_that_offers_them(
    bot: StartBot, slack: SlackService, site: Site, how: str
) -> None:
    settings = {"MCP_ENABLED": "false"}
    if how == "list":
        Path("config").mkdir()
        Path("config/mcp_servers.json").write_text(json.dumps({"mcpServers": {}}), "utf-8")
        settings = {}
    with bot(**writable(site, **settings)) as sender:
        for command in (f"rag crawl <{site.url('/')}>", f"rag add <{site.url('/')}>", "rag status"):
            sender.mention(command)
        assert {message["text"] for message in slack.wait_for(3)} == {
            "エラー: RAG機能が無効です。管理者に連絡してください。"
        }
        sender.mention("保存期間は？")
        assert slack.wait_for(4)[3]["text"] == "エラー: RAG機能が無効です。管理者に連絡してください。"
    assert site.asked == []


def test_a_second_address_is_refused_and_not_ignored(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site)) as sender:
        sender.mention(f"rag add <{site.url('/')}> <{site.url('/a')}>")
        assert slack.wait_for(1)[0]["text"].startswith(
            "エラー: http:// または https:// で始まるURLを一つ指定してください。"
        )
        sender.mention("rag allow <http://example.com|example.com> <http://example.org|example.org>")
        assert slack.wait_for(2)[1]["text"].startswith("エラー: ドメインを一つ指定してください。")
    assert site.asked == []


def test_a_pattern_that_is_none_is_explained_in_japanese(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site)) as sender:
        ts = sender.mention(f"rag crawl <{site.url('/')}> (a")
        _, text = texts(slack, ts, 2)
    assert text == (
        "エラー: クロールに失敗しました。\n原因: パターン '(a' は正規表現ではありません: 閉じ括弧 ) が足りません\n"
        ".html で終わるアドレスなら \\.html$ と書きます。. ? * + ( ) [ ] の前にはバックスラッシュを付けてください。"
    )


def test_what_a_crawl_leaves_out_is_said_below_its_result(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site, RAG_MAX_CRAWL_PAGES="1")) as sender:
        ts = sender.mention(f"rag crawl <{site.url('/')}>")
        _, text = texts(slack, ts, 2)
    assert text == ("└─ 完了: 1ページ / 1チャンク / エラー: 0件\n上限を超えたため取り込まなかったリンク: 2件")


@pytest.mark.slow
def test_a_crawl_may_take_longer_than_other_calls(bot: StartBot, slack: SlackService, site: Site) -> None:
    def slow(asked: Asked) -> Reply:
        time.sleep(0.5)
        return html("<main><p>遅いページです。</p></main>")

    site.pages["/slow"] = slow
    with bot(**writable(site, BUNKO_MCP_CALL_TIMEOUT="0.2")) as sender:
        ts = sender.mention(f"rag crawl <{site.url('/slow')}>")
        assert texts(slack, ts, 2)[1] == "└─ 完了: 1ページ / 1チャンク / エラー: 0件"
        ts = sender.mention(f"rag add <{site.url('/slow')}>")
        assert "0.2 秒以内に終わりませんでした" in slack.wait_for(3)[2]["text"]


@pytest.mark.slow
def test_an_error_of_another_server_is_said_in_the_words_of_the_bot(
    bot: StartBot, slack: SlackService, tmp_path: Path
) -> None:
    servers = tmp_path / "servers.json"
    failing = {"command": sys.executable, "args": [str(Path(__file__).with_name("failing_rag_server.py"))]}
    missing = {"command": "no-such-command"}
    servers.write_text(json.dumps({"mcpServers": {"rag": failing, "other": missing}}), "utf-8")
    with bot(BUNKO_SLACK_WRITE_USERS="U1", MCP_SERVERS_CONFIG=str(servers)) as sender:
        sender.mention("rag add <https://example.com/docs>")
        assert slack.wait_for(1)[0]["text"] == (
            "エラー: ページの取り込みに失敗しました。\nURL: https://example.com/docs\n"
            "原因: Error executing tool rag_add"
        )
        sender.mention("rag delete <https://example.com/docs>")
        assert slack.wait_for(2)[1]["text"] == "rag delete を実行しましたが、サーバーは何も返しませんでした。"
        sender.mention("rag status")
        assert slack.wait_for(3)[2]["text"] == (
            "エラー: RAG機能が無効です。管理者に連絡してください。\n"
            "MCP サーバー other を使えません: コマンド no-such-command が見つかりません"
        )


def test_only_those_who_are_named_may_change_the_library(bot: StartBot, slack: SlackService, site: Site) -> None:
    refused = (
        "エラー: ライブラリーを変更する権限がありません。管理者に連絡してください。\n"
        "権限は設定 slack.write_users で与えます（あなたの ID: U2）。"
    )
    commands = [f"rag add <{site.url('/a')}>", f"rag crawl <{site.url('/')}>", f"rag delete <{site.url('/a')}>"]
    with bot(**writable(site, BUNKO_SLACK_WRITE_CHANNELS="COPEN")) as sender:
        for command in [*commands, "rag allow example.com", "rag disallow example.com"]:
            sender.mention(command, user="U2")
        assert [message["text"] for message in slack.wait_for(5)] == [refused] * 5
        assert site.asked == []
        sender.mention(f"rag add <{site.url('/a')}>", user="U2", channel="COPEN")
        assert slack.wait_for(6)[5]["text"].startswith("ページを取り込みました")


def test_nobody_may_change_the_library_by_default(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(BUNKO_CRAWL_ALLOWED_HOSTS=site.host) as sender:
        sender.mention(f"rag add <{site.url('/a')}>")
        assert slack.wait_for(1)[0]["text"].endswith("権限は設定 slack.write_users で与えます（あなたの ID: U1）。")
    assert site.asked == []


def test_domains_are_limited_in_slack_and_the_limit_survives_a_restart(
    bot: StartBot, slack: SlackService, site: Site
) -> None:
    settings = writable(site)
    with bot(**settings) as sender:
        for number, command in enumerate(
            ["rag domains", "rag allow <http://Example.com|Example.com>", "rag domains"], 1
        ):
            sender.mention(command)
            slack.wait_for(number)
    with bot(**settings) as sender:
        sender.mention(f"rag add <{site.url('/a')}>")
        slack.wait_for(4)
        sender.mention("rag allow 127.0.0.1")
        slack.wait_for(5)
        sender.mention(f"rag add <{site.url('/a')}>")
        slack.wait_for(6)
        sender.mention("rag disallow example.com")
        sender_texts = [message["text"] for message in slack.wait_for(7)]
    assert sender_texts == [
        "ドメインの制限はありません。一般に公開されたページを取り込めます。",
        "許可しました: example.com\nこれ以降、許可したドメインのページだけを取り込めます。",
        "許可されたドメイン:\n・example.com",
        "エラー: 127.0.0.1 は許可されたドメインではありません。\n許可されたドメインは rag domains で確認できます。",
        "許可しました: 127.0.0.1",
        f"ページを取り込みました: {site.url('/a')} (1チャンク)",
        "許可を取り消しました: example.com",
    ]


def test_the_domains_of_the_settings_are_the_only_ones(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site, BUNKO_SLACK_ALLOWED_DOMAINS="example.com")) as sender:
        sender.mention("rag domains")
        assert slack.wait_for(1)[0]["text"] == "許可されたドメイン:\n・example.com"
        sender.mention(f"rag crawl <{site.url('/')}>")
        assert slack.wait_for(2)[1]["text"].startswith("エラー: 127.0.0.1 は許可されたドメインではありません。")
    assert site.asked == []


def test_everything_can_be_allowed_again(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site)) as sender:
        for number, command in enumerate(
            ["rag allow 127.0.0.1", "rag disallow 127.0.0.1", "rag disallow *", "rag domains", "rag allow *"], 1
        ):
            sender.mention(command)
            slack.wait_for(number)
        sender.mention(f"rag add <{site.url('/a')}>")
        sent = [message["text"] for message in slack.wait_for(6)]
    assert sent[3] == "許可されたドメインはありません。どのページも取り込めません。"
    assert sent[5] == f"ページを取り込みました: {site.url('/a')} (1チャンク)"


def test_the_bot_speaks_english_by_setting(bot: StartBot, slack: SlackService, site: Site) -> None:
    with bot(**writable(site, BUNKO_DISPLAY_LANGUAGE="en")) as sender:
        ts = sender.mention(f"rag crawl <{site.url('/')}>")
        assert texts(slack, ts, 2) == [
            "Crawl started... (collecting links)", "└─ Done: 2 pages / 2 chunks / 1 error",
        ]  # fmt: skip
        sender.mention("rag add")
        assert slack.wait_for(3)[2]["text"].startswith("Error: give one URL that begins with http:// or https://.")
