"""Trouble with a remote service in, a failure in that service's own words out, and how to tell a user without a key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

if TYPE_CHECKING:
    from openai import OpenAI

_MAX_MESSAGE_CHARS = 300
# Services have no common code for this. Some use 500, none of them 429.
_SIZE_STATUSES = (400, 413, 422, 500)
_SIZE_WORDS = re.compile(
    r"too (?:large|long|many)|context length|context size|array length|payload size|in one batch"
    r"|batch size|max(?:imum)?\b.{0,20}\btokens|tokens?\b.{0,20}\blimit|exceeds? .{0,30}\b(?:length|limit|size|tokens)",
    re.IGNORECASE,
)


class RemoteFailure(Exception):
    """A request that failed, in the words of its service: status 0 means that no whole answer came."""

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.retry_after = message, status, retry_after

    def is_transient(self) -> bool:
        """Say whether the same request may succeed later."""
        return self.status in (0, 429) or self.status >= 500

    def is_too_large(self) -> bool:
        """Say whether a smaller request may succeed."""
        return self.status == 413 or (self.status in _SIZE_STATUSES and bool(_SIZE_WORDS.search(self.message)))

    def without_traceback(self) -> RemoteFailure:
        """Return it without its traceback and its cause: those may hold a key."""
        return RemoteFailure(self.message, status=self.status, retry_after=self.retry_after)


class RemoteEndpoint(Protocol):
    """A service as a user knows it."""

    label: str
    address: str
    secret: str
    fix: str  # what to set when it does not know who asks


def explain_failure(service: RemoteEndpoint, failure: RemoteFailure) -> tuple[str, str]:
    """Return what happened and what to do next; no key and no password is in either."""
    status, address = failure.status, strip_credentials(service.address)
    said = " ".join(failure.message.encode("utf-8", "ignore").decode().split())  # lone surrogates cannot be printed
    if service.secret:
        said = said.replace(service.secret, "********")
    said = said[:_MAX_MESSAGE_CHARS]
    if not status:
        return f"{service.label} did not answer: {said}", f"Check that {address} is up."
    if status in (401, 403):
        return f"{service.label} does not let us in ({status}): {said}", service.fix
    if status == 402:
        return f"{service.label} wants to be paid (402): {said}", "Check the credit of the account."
    if status == 429:
        until = f" in {failure.retry_after:.0f} s" if failure.retry_after else " later"
        return f"{service.label} is asked too often (429): {said}", f"Run the command again{until}."
    hint = f"Check the model in the settings, and that {address} serves it."
    return f"{service.label} refused ({status}): {said}", hint


_CREDENTIALS = re.compile(r"(?<=//)([^/?#]*)@")


def strip_credentials(address: str) -> str:
    """Return an address without the name, the password and the parameters that may be in it."""
    return _CREDENTIALS.sub("", address).partition("?")[0]


def credentials_in(address: str) -> str:
    """Return the name and the password that stand in an address, with a colon between; mostly nothing."""
    found = _CREDENTIALS.search(address)
    return unquote(found[1]) if found else ""


def key_problem(secret: str) -> str:
    """Return what is wrong with a key that could not even be sent, without showing it; nothing if all is well."""
    return "" if secret.isascii() and secret.isprintable() else "the key holds a character that no key has"


def parse_retry_after(value: str | None) -> float | None:
    """Return how many seconds a Retry-After header asks for: it holds a number or a date."""
    if not value:
        return None
    try:
        return max(float(value), 0.0) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def openai_client(address: str, secret: str, timeout: float) -> OpenAI:
    """Return a client of a server that speaks as OpenAI does; it never tries again by itself."""
    from openai import OpenAI

    # Given none, the SDK would send OPENAI_API_KEY, whoever listens at the address.
    return OpenAI(api_key=secret or "none", base_url=address, timeout=timeout, max_retries=0)


@contextmanager
def translate_openai_errors() -> Iterator[None]:
    """Let what the OpenAI SDK raises inside be a Failure, or what its connection does while an answer is read."""
    from httpx2 import HTTPError, InvalidURL
    from openai import APIStatusError, OpenAIError

    try:
        yield
    except APIStatusError as error:
        wait = parse_retry_after(error.response.headers.get("retry-after"))
        raise RemoteFailure(
            _server_message(error.body, error.message), status=error.status_code, retry_after=wait
        ) from error
    except (OpenAIError, HTTPError, InvalidURL, ValueError) as error:
        raise RemoteFailure(str(error) or type(error).__name__) from error


def _server_message(body: object, default: str) -> str:
    """Return what a server says went wrong, of the shapes that servers use."""
    if isinstance(body, dict):
        for name in ("message", "error", "detail"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return default
