"""Post replies in a Slack thread, each once: what was posted before a crash is looked up and not posted again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bunko.interfaces.slack.mrkdwn import split_text
from bunko.interfaces.slack.rendering import SlackMessage
from bunko.interfaces.slack.web_api import SlackApi, SlackRefused

_log = logging.getLogger("bunko.slack")

_EVENT_TYPE = "bunko_reply"
_PAGE_SIZE, _MAX_PAGES = 200, 20
_TOO_LONG_ERRORS = ("msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format")
_SHORT_CHARS = 3000


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a channel."""

    channel: str
    ts: str  # of its first message


class Replies:
    """Posts the parts of a reply in a thread; never in the channel itself."""

    def __init__(self, api: SlackApi, bot_user: str) -> None:
        self._api, self._bot_user = api, bot_user

    async def posted_parts(self, thread: Thread, key: str) -> set[str]:
        """Return which parts of a reply Slack already has."""
        parts: set[str] = set()
        arguments: dict[str, Any] = {
            "channel": thread.channel, "ts": thread.ts, "limit": _PAGE_SIZE, "include_all_metadata": True,
        }  # fmt: skip
        for _ in range(_MAX_PAGES):
            try:
                page = await self._api.get("conversations.replies", arguments)
            except SlackRefused as refused:
                if refused.error != "thread_not_found":
                    _log.warning("What was already posted cannot be looked up: %s", refused.error)
                return parts
            for message in page.get("messages") or ():
                parts |= self._part_of(message, key)
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
            arguments["cursor"] = cursor
        return parts

    def _part_of(self, message: Mapping[str, Any], key: str) -> set[str]:
        metadata = message.get("metadata") or {}
        payload = metadata.get("event_payload") or {}
        is_own = message.get("user") == self._bot_user and metadata.get("event_type") == _EVENT_TYPE
        return {str(payload.get("part"))} if is_own and payload.get("key") == key else set()

    async def post(self, thread: Thread, key: str, part: str, message: SlackMessage) -> None:
        """Post a part of a reply; one that is too long for Slack is posted as short text."""
        arguments = {
            **message,
            "channel": thread.channel,
            "thread_ts": thread.ts,
            # Addresses in a text could tell their server what it says.
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": _EVENT_TYPE, "event_payload": {"key": key, "part": part}},
        }
        try:
            await self._api.post("chat.postMessage", arguments)
        except SlackRefused as refused:
            if refused.error not in _TOO_LONG_ERRORS:
                raise
            _log.warning("Slack refused a message (%s); it is posted as short text", refused.error)
            short = split_text(str(message["text"]), _SHORT_CHARS)[0]
            arguments = {name: value for name, value in arguments.items() if name != "blocks"}
            await self._api.post("chat.postMessage", {**arguments, "text": f"{short}\n…"})

    async def post_missing(self, thread: Thread, key: str, messages: Sequence[SlackMessage], posted: set[str]) -> None:
        """Post the parts that are not known to be posted, in order."""
        for number, message in enumerate(messages):
            if str(number) not in posted:
                await self.post(thread, key, str(number), message)
