"""Call Slack's Web API: wait when it asks for that, and tell apart what may be tried again."""

from __future__ import annotations

import http.client
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

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
