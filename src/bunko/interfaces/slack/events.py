"""Take events from Slack: each is stored in the outbox before it is acknowledged, however often it is delivered."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bunko.interfaces.slack.rendering import BAD_ACTION, GOOD_ACTION
from bunko.text.normalise import escape_surrogates
from bunko.types.records import OutboxEntry

if TYPE_CHECKING:
    from slack_bolt import App
    from slack_sdk import WebClient

_log = logging.getLogger("bunko.slack")
_bolt_log = logging.getLogger("bunko.slack.bolt")
# Bolt reads SLACK_BOT_TOKEN by itself, and warns that the client has a token already: the same one.
_bolt_log.addFilter(lambda record: "`token` will be unused" not in record.getMessage())

# Of messages that people write; others are edits, deletions, and what Slack or other bots say.
_SUBTYPES = (None, "file_share", "thread_broadcast")
_SLACKBOT = "USLACKBOT"
_MAX_TEXT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the bot is."""

    team: str
    user: str
    bot_id: str = ""

    @property
    def name(self) -> str:
        """Name the bot in the outbox."""
        return f"slack/{self.team}/{self.user}"


def build_app(
    client: WebClient, identity: Identity, signing_secret: str, accept: Callable[[OutboxEntry], object]
) -> App:
    """Return the bolt app, which checks its token first; `accept` stores an entry.

    If that fails, Slack gets an error and sends the event again.
    """
    from slack_bolt import App

    app = App(
        client=client,
        signing_secret=signing_secret,
        # The event is acknowledged when its listener has stored it, not before.
        process_before_response=True,
        logger=_bolt_log,
    )

    def take_message(event: dict[str, object]) -> None:
        if entry := message_entry(event, identity):
            accept(entry)

    def take_direct_message(event: dict[str, object]) -> None:
        if event.get("channel_type") == "im":
            take_message(event)

    def take_click(body: dict[str, object], ack: Callable[[], object]) -> None:
        if entry := feedback_entry(body, identity):
            accept(entry)
        ack()

    app.event("app_mention")(take_message)
    app.event("message")(take_direct_message)
    app.event(re.compile(".*"))(lambda: None)  # acknowledges what the bot has no use for
    app.action(re.compile(f"{GOOD_ACTION}|{BAD_ACTION}"))(take_click)
    return app


def message_entry(event: Mapping[str, Any], identity: Identity) -> OutboxEntry | None:
    """Return what to do about a message; None if no person has written it."""
    user, channel, ts = (event.get(name) for name in ("user", "channel", "ts"))
    is_from_bot = event.get("bot_id") or event.get("bot_profile") or user in (identity.user, _SLACKBOT)
    if is_from_bot or event.get("subtype") not in _SUBTYPES or event.get("hidden"):
        return None
    if not all(isinstance(value, str) and value for value in (user, channel, ts)):
        return None
    thread_ts = event.get("thread_ts") or ts
    request = {
        "kind": "message", "user": user, "channel": channel, "ts": ts, "thread_ts": thread_ts,
        "text": escape_surrogates(str(event.get("text") or "")[:_MAX_TEXT_CHARS]),
    }  # fmt: skip
    # A message has one key even if Slack sends it as several events.
    key = f"{identity.name}/{channel}/{ts}"
    return OutboxEntry(key, identity.name, f"{channel}/{thread_ts}", str(ts), request, time.time())


def feedback_entry(body: Mapping[str, Any], identity: Identity) -> OutboxEntry | None:
    """Return what to do about a click on a button under an answer."""
    try:
        action, user = body["actions"][0], body["user"]["id"]
        answer_key, action_ts = str(action["value"]), str(action["action_ts"])
        _, channel, _ = answer_key.rsplit("/", 2)
        thread_ts = body["container"].get("thread_ts") or body["container"]["message_ts"]
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        _log.warning("A click on a button was ignored, because Slack described it in another way than expected")
        return None
    if not answer_key.startswith(f"{identity.name}/"):
        return None
    request = {
        "kind": "feedback", "user": user, "answer": answer_key, "good": action.get("action_id") == GOOD_ACTION,
    }  # fmt: skip
    # In the thread of the answer, so that the answer itself is finished before.
    key = f"{answer_key}/{user}/{action_ts}"
    return OutboxEntry(key, identity.name, f"{channel}/{thread_ts}", action_ts, request, time.time())
