"""Translate failures of remote services into messages that never contain a key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

if TYPE_CHECKING:
    from openai import OpenAI

NOT_READY_STATUS = -1  # in place of an HTTP status: nothing was sent, because the service is not set up
UNUSABLE_STATUS = -2  # the service answered, but not with what was asked for
_MAX_MESSAGE_CHARS = 300
# Services have no common status for a request that is too large. Some use 500, none of them 429.
_SIZE_STATUSES = (400, 413, 422, 500)
_SIZE_WORDS = re.compile(
    r"too (?:large|long|many)|context length|context size|array length|payload size|in one batch"
    r"|batch size|max(?:imum)?\b.{0,20}\btokens|tokens?\b.{0,20}\blimit|exceeds? .{0,30}\b(?:length|limit|size|tokens)",
    re.IGNORECASE,
)


class RemoteFailure(Exception):
    """A failed request with the message of the service; status 0 means that no complete response arrived."""

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.retry_after = message, status, retry_after

    def is_transient(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status in (0, 429) or self.status >= 500

    def is_too_large(self) -> bool:
        """Return whether a smaller request may succeed."""
        return self.status == 413 or (self.status in _SIZE_STATUSES and bool(_SIZE_WORDS.search(self.message)))

    def without_traceback(self) -> RemoteFailure:
        """Return a copy without traceback and cause, which may contain a key."""
        return RemoteFailure(self.message, status=self.status, retry_after=self.retry_after)


class RemoteEndpoint(Protocol):
    """The parts of a remote service that error messages need."""

    label: str
    address: str
    secret: str
    fix: str  # hint for when it rejects the credentials


def explain_failure(service: RemoteEndpoint, failure: RemoteFailure, *, name: str = "") -> tuple[str, str]:
    """Return a message about the service, under `name` or its label, and a hint; no key or password is in them."""
    name = name or service.label
    status, address = failure.status, strip_credentials(service.address)
    detail = " ".join(failure.message.encode("utf-8", "ignore").decode().split())  # lone surrogates cannot be printed
    if service.secret:
        detail = detail.replace(service.secret, "********")
    detail = detail[:_MAX_MESSAGE_CHARS]
    if status == NOT_READY_STATUS:
        return f"{name} is not available: {detail}", ""
    if status == UNUSABLE_STATUS:
        return (
            f"{name} gave no usable answer: {detail}",
            f"Check the model in the settings, and that {address} serves it.",
        )
    if not status:
        return f"{name} did not answer: {detail}", f"Check that {address} is up."
    if status in (401, 403):
        return f"{name} rejected the credentials ({status}): {detail}", service.fix
    if 300 <= status < 400:
        return f"{name} redirects to another address ({status})", f"Set the base_url that it should be, not {address}."
    if status == 402:
        return f"{name} requires payment (402): {detail}", "Check the account's credit."
    if status == 429:
        delay = f" in {failure.retry_after:.0f} s" if failure.retry_after else " later"
        return f"{name} is rate limiting requests (429): {detail}", f"Try again{delay}."
    if status >= 500:
        return (
            f"{name} failed ({status}): {detail}",
            f"Check that {address} is up and serves the model, or try again later.",
        )
    hint = f"Check the model in the settings, and that {address} serves it."
    return f"{name} rejected the request ({status}): {detail}", hint


_CREDENTIALS = re.compile(r"(?<=//)([^/?#]*)@")


def strip_credentials(address: str) -> str:
    """Return an address without user name, password and query parameters."""
    return _CREDENTIALS.sub("", address).partition("?")[0]


def credentials_in(address: str) -> str:
    """Return the `user:password` part of an address, or an empty string."""
    match = _CREDENTIALS.search(address)
    return unquote(match[1]) if match else ""


def key_problem(secret: str) -> str:
    """Return what is wrong with a key that cannot be sent, without showing it, or an empty string."""
    if secret.isascii() and secret.isprintable():
        return ""
    return "the key contains a character that is not allowed in a key"


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds to wait from a Retry-After header, which is a number or a date."""
    if not value:
        return None
    try:
        return max(float(value), 0.0) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        from email.utils import parsedate_to_datetime

        return max(parsedate_to_datetime(value).timestamp() - time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def openai_client(address: str, secret: str, timeout: float) -> OpenAI:
    """Return a client for an OpenAI-compatible server that never retries by itself."""
    from openai import DefaultHttpxClient, OpenAI

    # Without a key, the SDK would send OPENAI_API_KEY to whatever server the address names. It would also follow a
    # redirect, which takes the texts to somebody else.
    http_client = DefaultHttpxClient(follow_redirects=False)
    return OpenAI(api_key=secret or "none", base_url=address, timeout=timeout, max_retries=0, http_client=http_client)


@contextmanager
def translate_openai_errors() -> Iterator[None]:
    """Raise errors of the OpenAI SDK and of its connection inside the block as `RemoteFailure`."""
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
        raise RemoteFailure(system_message(error) or str(error) or type(error).__name__) from error


def system_message(error: BaseException) -> str:
    """Return what the system says about a connection that failed, of which an SDK says less, or with its number."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            # The numbers of errors of a name server are negative.
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return ""


def _server_message(body: object, default: str) -> str:
    """Return the error message from a response body, in any of the shapes that servers use."""
    if isinstance(body, dict):
        for name in ("message", "error", "detail"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return default
