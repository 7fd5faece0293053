"""Events from Slack: which are taken, that each is handled once, and in which order."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from bunko.errors import LibraryError
from bunko.library.library import Library
from bunko.types.records import OutboxEntry
from tests.chat.chat_service import Reply, Request, chat_service, last_question
from tests.slack.conftest import StartBot
from tests.slack.running_bot import running_bot
from tests.slack.slack_service import BOT_ID, BOT_USER, SIGNING_SECRET, SlackService

MENTION = {
    "type": "app_mention",
    "user": "U1",
    "channel": "C1",
    "ts": "1600000000.000001",
    "text": "<@UBOT> rag status",
}


def direct(**more: Any) -> dict[str, Any]:
    event = {"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "text": "rag status"}
    return {**event, "ts": "1600000000.000002", **more}


def test_an_event_that_slack_sends_again_is_handled_once(bot: StartBot, slack: SlackService) -> None:
    with bot() as sender:
        assert sender.send_event(MENTION, event_id="Ev1") == 200
        retry = {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"}
        assert sender.send_event(MENTION, event_id="Ev1", headers=retry) == 200
        slack.wait_for(1)
        assert sender.send_event(MENTION, event_id="Ev2", headers=retry) == 200
        sender.mention("rag status")
        messages = slack.wait_for(2)
    assert len(messages) == 2
    assert len(slack.in_thread(MENTION["ts"])) == 1


@pytest.mark.parametrize(
    ("secret", "age", "status"),
    [
        ("another-secret", 0, 401),
        (SIGNING_SECRET, 301, 401),
        (SIGNING_SECRET, -400, 401),
        (SIGNING_SECRET, 240, 200),
    ],
)
def test_a_wrong_or_stale_signature_is_refused(
    bot: StartBot, slack: SlackService, secret: str, age: float, status: int
) -> None:
    body = json.dumps({"type": "event_callback", "team_id": "T1", "event": MENTION, "event_id": "Ev1"})
    with bot() as sender:
        assert sender.send(body, secret=secret, sent_at=time.time() - age) == status
        assert sender.send(body, headers={"x-slack-signature": ""}) == 401
        sender.mention("rag status")
        slack.wait_for(2 if status == 200 else 1)
    assert len(slack.in_thread(MENTION["ts"])) == (status == 200)


def test_a_request_that_nobody_signed_is_refused_without_a_traceback(
    bot: StartBot, caplog: pytest.LogCaptureFixture
) -> None:
    with bot() as sender:
        for headers in (
            {"x-slack-request-timestamp": "abc"}, {"x-slack-request-timestamp": "9" * 5000},
            {"x-slack-request-timestamp": "²"}, {"x-slack-signature": "é"},
        ):  # fmt: skip
            assert sender.send("{}", headers=headers) == 401
        for body in ("[1]", "null", '{"type": "event_callback", "event": {"user": 5}}', "{x", "[" * 100_000):
            assert sender.send(body, secret="another-secret") in (400, 401)
    assert "Traceback" not in caplog.text


def test_a_direct_message_is_answered_in_its_thread(bot: StartBot, slack: SlackService) -> None:
    with bot() as sender:
        assert sender.send_event(direct()) == 200
        [message] = slack.wait_for(1)
    assert (message["channel"], message["thread_ts"]) == ("D1", "1600000000.000002")
    assert message["text"].startswith("ナレッジベース統計:")


@pytest.mark.parametrize(
    "event",
    [
        direct(bot_id="B2"),
        direct(bot_id=BOT_ID, user=BOT_USER),
        direct(user=BOT_USER),
        direct(user="USLACKBOT"),
        direct(subtype="message_changed", message={"text": "rag status", "user": "U1"}),
        direct(subtype="message_deleted"),
        direct(subtype="bot_message"),
        direct(channel_type="channel", channel="C1"),
        {**direct(), "user": None},
        {**MENTION, "bot_id": "B2"},
        {"type": "reaction_added", "user": "U1"},
    ],
)
def test_what_no_person_has_asked_the_bot_is_acknowledged_and_not_answered(
    bot: StartBot, slack: SlackService, event: dict[str, Any]
) -> None:
    with bot() as sender:
        assert sender.send_event(event) == 200
        ts = sender.mention("rag status")
        slack.wait_for(1)
    assert [message["thread_ts"] for message in slack.messages] == [ts]


def test_slack_can_verify_the_address_of_the_bot(bot: StartBot) -> None:
    with bot() as sender:
        assert sender.send(json.dumps({"type": "url_verification", "challenge": "c"})) == 200
        assert sender.send("x" * 1_100_000) == 413


@pytest.mark.parametrize("body", ["{", "[" * 100_000, "5", "null", "[]", "payload=%7B"])
def test_what_is_no_request_of_slack_is_refused_without_an_error_of_the_bot(
    bot: StartBot, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    kind = "application/x-www-form-urlencoded" if body.startswith("payload") else "application/json"
    with bot() as sender:
        assert sender.send(body, kind=kind) == 400
        assert sender.send(body, kind=kind, secret="another-secret") == 401
        assert sender.send(body, kind=kind, headers={"x-slack-request-timestamp": "abc"}) == 401
        assert sender.send(body, kind=kind, headers={"x-slack-signature": "v0=\xff"}) == 401
    assert "Traceback" not in caplog.text


def test_a_request_that_never_ends_is_given_up(
    bot: StartBot, slack: SlackService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.interfaces.slack.bot.BODY_SECONDS", 0.2)
    with bot() as sender:
        address = urlsplit(sender.url)
        with socket.create_connection((address.hostname, address.port or 0), timeout=10) as connection:
            connection.sendall(b"POST /slack/events HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_an_event_that_cannot_be_stored_is_not_acknowledged(
    open_slack_library: Callable[..., Library], slack: SlackService, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_slack_library()
    add, failures = library.store.outbox.add, [1, 1]

    def fail_twice(entry: OutboxEntry) -> bool:
        if failures:
            failures.pop()
            raise LibraryError("The disk is full", hint="Free some space.")
        return add(entry)

    monkeypatch.setattr(library.store.outbox, "add", fail_twice)
    with running_bot(library) as sender:
        assert [sender.send_event(MENTION) for _ in range(3)] == [500, 500, 200]
        slack.wait_for(1)
    assert len(slack.messages) == 1


def test_threads_are_answered_in_order_and_a_slow_model_does_not_delay_other_threads(
    bot: StartBot, slack: SlackService
) -> None:
    released = threading.Event()

    def script(request: Request) -> Reply:
        question = last_question(request)
        if question == "slow":
            assert released.wait(60)
        return Reply(f"Answer to {question}")

    with chat_service() as service:
        service.script = script
        settings = {"BUNKO_CHAT_PROVIDER": "ollama", "BUNKO_CHAT_MODEL": "m", "BUNKO_CHAT_BASE_URL": service.address}
        with bot(**settings) as sender:
            slow = sender.mention("slow")
            sender.mention("second", thread_ts=slow)
            sender.mention("third", thread_ts=slow)
            others = [sender.mention(f"other {number}") for number in range(3)]
            messages = slack.wait_for(3)
            assert {message["thread_ts"] for message in messages} == set(others)
            released.set()
            slack.wait_for(6)
    answers = [message["text"].partition(" :warning:")[0] for message in slack.in_thread(slow)]
    assert answers == ["Answer to slow", "Answer to second", "Answer to third"]


def test_a_crawl_is_announced_while_all_workers_are_busy(bot: StartBot, slack: SlackService) -> None:
    released = threading.Event()

    def script(request: Request) -> Reply:
        assert released.wait(60)
        return Reply("Done.")

    with chat_service() as service:
        service.script = script
        settings = {"BUNKO_CHAT_PROVIDER": "ollama", "BUNKO_CHAT_MODEL": "m", "BUNKO_CHAT_BASE_URL": service.address}
        with bot(**settings, BUNKO_SLACK_WORKERS="1", BUNKO_SLACK_WRITE_USERS="U1") as sender:
            sender.mention("slow")
            ts = sender.mention("rag crawl <http://127.0.0.1/>")
            [started] = slack.wait_for(1)
            assert (started["thread_ts"], started["text"]) == (ts, "クロールを開始しました... (リンク収集中)")
            released.set()
            slack.wait_for(3)
    assert slack.in_thread(ts)[1]["text"].startswith("エラー: クロールに失敗しました。\n原因: ")


@pytest.mark.slow
def test_fifty_mentions_at_once_are_all_answered_and_none_twice(bot: StartBot, slack: SlackService) -> None:
    with chat_service() as service:
        service.script = lambda request: Reply(f"Answer to {last_question(request)}")
        settings = {"BUNKO_CHAT_PROVIDER": "ollama", "BUNKO_CHAT_MODEL": "m", "BUNKO_CHAT_BASE_URL": service.address}
        with bot(**settings) as sender, ThreadPoolExecutor(10) as pool:
            events = [{**MENTION, "ts": f"1600000000.{number:06}", "text": f"q{number}"} for number in range(50)]

            def send(event: dict[str, Any]) -> tuple[int, bool]:
                sent_at = time.monotonic()
                return sender.send_event(
                    event
                ), time.monotonic() - sent_at < 3  # seconds, in which Slack wants an answer

            assert list(pool.map(send, [event for event in events for _ in range(2)])) == [(200, True)] * 100
            slack.wait_for(50)
            sender.mention("last")
            messages = slack.wait_for(51)
    assert len(messages) == 51
    answers = {message["thread_ts"]: message["text"].partition(" :warning:")[0] for message in messages[:50]}
    assert answers == {event["ts"]: f"Answer to {event['text']}" for event in events}


@pytest.mark.parametrize("text", ["\ud800 rag status", "rag\x00 status"])
def test_characters_that_cannot_be_stored_do_not_keep_a_message_from_being_answered(
    bot: StartBot, slack: SlackService, text: str
) -> None:
    event = {**MENTION, "text": f"<@UBOT> {text}"}
    with bot() as sender:
        assert sender.send_event(event) == 200
        slack.wait_for(1)
