"""Replies when Slack limits, refuses or does not answer: none is lost, none is posted twice, no token is logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from bunko.errors import SettingsError
from bunko.interfaces.slack import bot as bot_module
from bunko.interfaces.slack import outbox
from bunko.library.library import Library
from bunko.types.records import OutboxEntry
from tests.site import Site, html
from tests.slack.conftest import StartBot
from tests.slack.running_bot import running_bot
from tests.slack.slack_service import BOT_TOKEN, BOT_USER, Failure, Script, SlackService


def fail_posts(*failures: Failure | None) -> Script:
    """Let the first posts fail."""
    remaining = list(failures)

    def script(method: str, arguments: dict[str, Any]) -> Failure | None:
        return remaining.pop(0) if method == "chat.postMessage" and remaining else None

    return script


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "FIRST_DELAY_SECONDS", 0.02)
    monkeypatch.setattr(outbox, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(bot_module, "LOCK_SECONDS", 0.05)


def test_a_limited_rate_is_waited_for_as_long_as_slack_says(
    bot: StartBot, slack: SlackService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bunko.slack")
    fail, times = fail_posts(*[Failure("ratelimited", 429, {"Retry-After": "0.07"})] * 3), list[float]()

    def script(method: str, arguments: dict[str, Any]) -> Failure | None:
        times.extend([time.monotonic()] if method == "chat.postMessage" else [])
        return fail(method, arguments)

    slack.script = script
    with bot() as sender:
        ts = sender.mention("rag status")
        slack.wait_for(1)
    assert len(slack.in_thread(ts)) == 1
    assert all(later - earlier >= 0.07 for earlier, later in pairwise(times))
    waits = [record.getMessage() for record in caplog.records if "waiting" in record.getMessage()]
    assert waits == ["Slack limits the rate of chat.postMessage: waiting for 0.07 s"] * 3


@pytest.mark.parametrize("error", ["channel_not_found", "not_in_channel", "is_archived"])
def test_a_channel_that_cannot_be_posted_in_does_not_stop_the_others(
    open_slack_library: Callable[..., Library], slack: SlackService, error: str
) -> None:
    slack.script = lambda method, arguments: Failure(error) if arguments.get("channel") == "CGONE" else None
    library = open_slack_library()
    with running_bot(library) as sender:
        gone = sender.mention("rag status", channel="CGONE")
        sender.mention("rag status", channel="CGONE", thread_ts=gone)
        ts = sender.mention("rag status")
        slack.wait_for(1)
        slack.wait_for_posts("CGONE", 2)  # the second is tried when the first was given up
    assert [message["thread_ts"] for message in slack.messages] == [ts]
    entry = library.store.outbox.get(f"slack/T1/UBOT/CGONE/{gone}")
    assert entry is not None
    assert entry.state == "failed"


@pytest.mark.parametrize(
    "failure",
    [
        Failure(hang_up=True, is_done=True),
        Failure(hang_up=True),
        Failure("internal_error", 500),
        Failure("service_unavailable", 503, is_done=True),
    ],
)
def test_a_post_without_an_answer_is_looked_up_before_it_is_repeated(
    bot: StartBot, slack: SlackService, failure: Failure
) -> None:
    slack.script = fail_posts(failure)
    with bot() as sender:
        ts = sender.mention("rag status")
        slack.wait_for(1)
        sender.mention("rag status", thread_ts=ts)
        slack.wait_for(2)
    assert len(slack.in_thread(ts)) == 2
    calls = [method for method, _ in slack.calls]
    assert "conversations.replies" in calls[calls.index("chat.postMessage") :]


def test_a_message_that_is_too_long_for_slack_is_posted_as_short_text(bot: StartBot, slack: SlackService) -> None:
    slack.script = fail_posts(Failure("msg_too_long"))
    with bot() as sender:
        sender.mention("help")
        [message] = slack.wait_for(1)
    assert "blocks" not in message
    assert message["text"].endswith("…")


def test_a_revoked_token_ends_the_bot_and_its_promises_are_kept_after_a_restart(
    open_slack_library: Callable[..., Library], slack: SlackService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    library = open_slack_library()
    slack.script = fail_posts(Failure("token_revoked"))
    ts, error = "", None
    try:
        with running_bot(library) as sender:
            ts = sender.mention("rag status")
            assert sender.ended.wait(30)
    except BaseExceptionGroup as group:
        [error] = _leaves(group)
    assert isinstance(error, SettingsError)
    assert "token_revoked" in error.message
    assert slack.messages == []
    with running_bot(library):
        slack.wait_for(1)
    assert len(slack.in_thread(ts)) == 1
    assert BOT_TOKEN not in caplog.text


def test_a_bot_without_the_right_to_read_a_thread_still_posts(bot: StartBot, slack: SlackService) -> None:
    fail_post = fail_posts(Failure(hang_up=True))
    slack.script = lambda method, arguments: (
        Failure("missing_scope") if method == "conversations.replies" else fail_post(method, arguments)
    )
    with bot() as sender:
        sender.mention("rag status")
        slack.wait_for(1)
    assert len(slack.messages) == 1


def unfinished(text: str, attempts: int = 0, *, age: float = 0.0) -> OutboxEntry:
    """Return a command that a bot has taken, and was working on when it was killed."""
    request = {
        "kind": "message", "user": "U1", "channel": "C1", "ts": "1.000001", "thread_ts": "1.000001", "text": text,
    }  # fmt: skip
    key = "slack/T1/UBOT/C1/1.000001"
    return OutboxEntry(key, "slack/T1/UBOT", "C1/1.000001", "1.000001", request, time.time() - age, attempts=attempts)


def test_a_crawl_that_was_interrupted_is_announced_once_runs_again_and_says_so(
    open_slack_library: Callable[..., Library], slack: SlackService
) -> None:
    with Site({"/": html("<main><p>目次です。</p></main>")}) as site:
        library = open_slack_library(BUNKO_SLACK_WRITE_USERS="U1", BUNKO_CRAWL_ALLOWED_HOSTS=site.host)
        entry = unfinished(f"rag crawl <{site.url('/')}>", attempts=1)
        library.store.outbox.add(entry)
        payload = {"key": entry.key, "part": "start"}
        slack.messages.append({
            "channel": "C1", "thread_ts": "1.000001", "ts": "2.000001", "user": BOT_USER,
            "text": "クロールを開始しました... (リンク収集中)",
            "metadata": {"event_type": "bunko_reply", "event_payload": payload},
        })  # fmt: skip
        with running_bot(library):
            _, done = slack.wait_for(2)
    assert done["text"] == ("└─ 完了: 1ページ / 1チャンク / エラー: 0件\n（再起動したため、もう一度実行しました。）")
    assert len(slack.messages) == 2


def test_work_that_ended_the_bot_three_times_is_given_up_with_a_sentence(
    open_slack_library: Callable[..., Library], slack: SlackService
) -> None:
    library = open_slack_library()
    library.store.outbox.add(unfinished("rag status", attempts=3))
    with running_bot(library):
        [message] = slack.wait_for(1)
    assert message["text"] == "エラー: 処理に失敗しました。管理者に連絡してください。"


def test_a_reply_is_given_up_after_a_day_and_forgotten_after_the_configured_time(
    open_slack_library: Callable[..., Library], slack: SlackService
) -> None:
    slack.script = lambda method, arguments: Failure("fatal_error", 503) if method == "chat.postMessage" else None
    library = open_slack_library(BUNKO_SLACK_KEEP_DAYS="3")
    outbox, day = library.store.outbox, 86_400.0
    entry = unfinished("rag status", age=2 * day)
    outbox.add(entry)
    outbox.add(replace(entry, key="next", position="1.000002", created_at=time.time()))
    outbox.add(replace(entry, key="old", thread="C9/1", state="done", created_at=time.time() - 4 * day))
    with running_bot(library):
        slack.wait_for_posts("C1", 2)  # the second is tried when the first was given up
    states = {key: stored and stored.state for key in (entry.key, "next", "old") for stored in [outbox.get(key)]}
    assert states == {entry.key: "failed", "next": "answered", "old": None}


def test_of_two_processes_of_a_bot_one_answers_and_the_other_takes_over(
    open_slack_library: Callable[..., Library], slack: SlackService
) -> None:
    with running_bot(open_slack_library()) as second:
        with running_bot(open_slack_library()) as first:
            for number, sender in enumerate([first, second, first, second], 1):
                sender.mention("rag status")
                slack.wait_for(number)
        second.mention("rag status")
        slack.wait_for(5)
    assert len({message["thread_ts"] for message in slack.messages}) == 5
    assert len(slack.messages) == 5


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in _leaves(part)]
