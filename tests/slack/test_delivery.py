"""Replies when Slack limits, refuses or does not answer: none is lost, none is posted twice, no token is logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from bunko.errors import SettingsError
from bunko.interfaces.slack import dispatcher
from bunko.library.library import Library
from tests.slack.conftest import StartBot
from tests.slack.running_bot import running_bot
from tests.slack.slack_service import BOT_TOKEN, Failure, Script, SlackService


def fail_posts(*failures: Failure | None) -> Script:
    """Let the first posts fail."""
    remaining = list(failures)

    def script(method: str, arguments: dict[str, Any]) -> Failure | None:
        return remaining.pop(0) if method == "chat.postMessage" and remaining else None

    return script


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_FIRST_DELAY_SECONDS", 0.02)


def test_a_limited_rate_is_waited_for_as_long_as_slack_says(
    bot: StartBot, slack: SlackService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bunko.slack")
    slack.script = fail_posts(*[Failure("ratelimited", 429, {"Retry-After": "0.07"})] * 3)
    with bot() as sender:
        ts = sender.mention("rag status")
        slack.wait_for(1)
    assert len(slack.in_thread(ts)) == 1
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
    ("failure", "lookups"),
    [
        (Failure(hang_up=True, is_done=True), 1),
        (Failure(hang_up=True), 1),
        (Failure("internal_error", 500), 1),
        (Failure("service_unavailable", 503, is_done=True), 1),
    ],
)
def test_a_post_without_an_answer_is_looked_up_before_it_is_repeated(
    bot: StartBot, slack: SlackService, failure: Failure, lookups: int
) -> None:
    slack.script = fail_posts(failure)
    with bot() as sender:
        ts = sender.mention("rag status")
        slack.wait_for(1)
        sender.mention("rag status", thread_ts=ts)
        slack.wait_for(2)
    assert len(slack.in_thread(ts)) == 2
    assert sum(method == "conversations.replies" for method, _ in slack.calls) == lookups


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


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in _leaves(part)]
