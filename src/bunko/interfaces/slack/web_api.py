"""Call Slack's Web API: wait when it asks for that, tell apart what may be tried again, and post each reply once."""

from __future__ import annotations

import http.client
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from bunko.interfaces.slack.rendering import SlackMessage, split_text
from bunko.runtime.remote import parse_retry_after

if TYPE_CHECKING:
    from slack_sdk import WebClient

_log = logging.getLogger("bunko.slack")

_TOKEN_ERRORS = frozenset(
    "invalid_auth not_authed account_inactive token_revoked token_expired not_allowed_token_type".split()
)
_TRANSIENT_ERRORS = frozenset(
    "fatal_error internal_error service_unavailable request_timeout team_added_to_org ratelimited rate_limited".split()
)
_TIMEOUT_SECONDS = 30
_MAX_WAITS = 20  # for one call
_DEFAULT_WAIT_SECONDS, _MAX_WAIT_SECONDS = 1.0, 300.0
_CONCURRENT_CALLS = 16
_TOKEN = re.compile(r"\bx(?:ox[a-z]|app)-[\w-]+")


class SlackRefused(Exception):
    """Slack will not do it, now or later; `error` is its code, such as channel_not_found."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class SlackTokenRejected(Exception):
    """Slack does not accept the token of the bot, so that nothing can be answered."""


class SlackAway(Exception):
    """Slack did not answer, so that it is unknown whether it did what it was asked for."""


def build_client(token: str, api_url: str) -> WebClient:
    """Return a client that never repeats a call by itself: a message could be posted twice."""
    from slack_sdk import WebClient

    return WebClient(
        token=token, base_url=f"{api_url.rstrip('/')}/", timeout=_TIMEOUT_SECONDS, retry_handlers=[], logger=_log
    )


class SlackApi:
    """Slack's Web API for one bot."""

    def __init__(self, client: WebClient) -> None:
        self.client = client
        self._limiter = anyio.CapacityLimiter(_CONCURRENT_CALLS)

    async def post(self, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method that changes something; raise SlackRefused, SlackAway or SlackTokenRejected."""
        return await self._call(method, {"json": dict(arguments)})

    async def get(self, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method that only reads."""
        return await self._call(method, {"http_verb": "GET", "params": dict(arguments)})

    async def _call(self, method: str, options: dict[str, Any]) -> dict[str, Any]:
        from slack_sdk.errors import SlackClientError

        for _ in range(_MAX_WAITS):
            try:
                response = await anyio.to_thread.run_sync(
                    lambda: self.client.api_call(method, **options), limiter=self._limiter, abandon_on_cancel=True
                )
                return dict(response.data) if isinstance(response.data, dict) else {}
            except SlackClientError as error:
                wait = _wait_seconds(method, error)
            except (OSError, http.client.HTTPException) as error:
                raise SlackAway(f"{method}: {redact(str(error) or type(error).__name__)}") from None
            _log.info("Slack limits the rate of %s: waiting for %g s", method, wait)
            await anyio.sleep(wait)
        raise SlackAway(f"{method}: ratelimited")


def _wait_seconds(method: str, error: Exception) -> float:
    """Return how long to wait before a call is repeated; raise what else has happened."""
    from slack_sdk.errors import SlackApiError

    if not isinstance(error, SlackApiError):
        raise SlackAway(f"{method}: {redact(str(error))}") from None
    data, status = error.response.data, int(error.response.status_code or 0)
    code = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status == 429 or code in ("ratelimited", "rate_limited"):
        headers = {str(name).lower(): value for name, value in dict(error.response.headers).items()}
        seconds = parse_retry_after(headers.get("retry-after"))
        return _DEFAULT_WAIT_SECONDS if seconds is None else min(seconds, _MAX_WAIT_SECONDS)
    if code in _TOKEN_ERRORS:
        raise SlackTokenRejected(f"{code} ({method})") from None
    if status >= 500 or code in _TRANSIENT_ERRORS or not code:
        raise SlackAway(f"{method}: {code or status}") from None
    raise SlackRefused(code) from None


def redact(text: str) -> str:
    """Return a text for a log, without tokens of Slack and on one line."""
    return _TOKEN.sub("********", " ".join(text.split()))[:500]


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
