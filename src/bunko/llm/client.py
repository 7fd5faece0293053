"""Connect to any OpenAI-compatible server, and ask its chat model within a time limit."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from bunko.runtime.installation import install_command
from bunko.runtime.remote import (
    NOT_READY_STATUS,
    RemoteEndpoint,
    RemoteFailure,
    explain_failure,
    key_problem,
    openai_client,
    strip_credentials,
    translate_openai_errors,
)
from bunko.text.labels import remove_hidden_chars

if TYPE_CHECKING:
    from openai import OpenAI


class ChatPreset(NamedTuple):
    """A server with a preset name."""

    model: str = ""  # the default model; empty for local servers, whose models are unknown
    key_variable: str = ""  # the environment variable of its key; a local server needs none


PRESETS = {
    "openrouter": ChatPreset("openai/gpt-4o-mini", "OPENROUTER_API_KEY"),
    "openai": ChatPreset("gpt-4o-mini", "OPENAI_API_KEY"),
    "lmstudio": ChatPreset(),
    "ollama": ChatPreset(),
}


@dataclass(frozen=True, slots=True)
class ChatConnection:
    """A model of a provider, and how it is reached."""

    provider: str
    model: str
    address: str
    secret: str = field(default="", repr=False)
    needs_key: bool = True  # if the provider does; a server at another address may need none
    preferences: Mapping[str, Any] = field(default_factory=dict)  # OpenRouter's provider preferences

    @property
    def label(self) -> str:
        """The name of the model, for people."""
        return f"{self.provider}:{self.model}" if self.model else self.provider

    @property
    def fix(self) -> str:
        """What to do if the server rejects the key."""
        return f"Set {PRESETS[self.provider].key_variable or 'chat.api_key'} to a valid key."

    def request_options(self, *, max_tokens: int, temperature: float | None) -> dict[str, Any]:
        """Return what every request has; a temperature of None is the default of the server."""
        # OpenAI's newer models accept only the newer name, and most other servers only the older one.
        length_name = "max_completion_tokens" if self.provider == "openai" else "max_tokens"
        options: dict[str, Any] = {"model": self.model, length_name: max_tokens}
        if temperature is not None:
            options["temperature"] = temperature
        if self.preferences:
            options["extra_body"] = {"provider": dict(self.preferences)}
        return options

    def check(self) -> None:
        """Raise RemoteFailure if nothing can be sent."""
        if not self.model:
            raise RemoteFailure("no model is set; set chat.model", status=NOT_READY_STATUS)
        if not self.address.startswith(("http://", "https://")):
            raise RemoteFailure("chat.base_url must begin with http:// or https://", status=NOT_READY_STATUS)
        if not _is_address(self.address):
            shown = strip_credentials(self.address)
            raise RemoteFailure(f"{shown} is not an address; set chat.base_url", status=NOT_READY_STATUS)
        if self.needs_key and PRESETS[self.provider].key_variable and not self.secret:
            raise RemoteFailure("there is no key", status=401)
        if problem := key_problem(self.secret):
            raise RemoteFailure(problem, status=401)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that cannot be one
        return False


_MAX_ANSWER_BYTES = 1_000_000  # the longest answer requested has a hundredth of that
RETRY_SECONDS = 0.5  # before the second attempt, if the service names no time
# After a failure the server is not asked for a while, so that not every search waits for the time limit.
_COOLDOWN_SECONDS, _MAX_COOLDOWN_SECONDS = 30.0, 600.0
_TEXT_ERROR_STATUSES = (400, 413, 422)  # statuses caused by this request's text; the next request may succeed
_TOO_LARGE_HINT = "Give the model a longer context, or use another one."
_THINKING_BLOCK = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:i['’]?m |i am )?(?:very |so )?sorry\b|i (?:can(?:['’]?t|not)|am unable|won['’]t)\b|as an ai\b"
    r"|申し訳|すみません|ごめんなさい|(?:その|この)?(?:ご)?(?:質問|要求|リクエスト)には(?:お答え|お応え|対応)",
    re.IGNORECASE,
)


class AnswerCache(Protocol):
    """Caches answers."""

    def get(self, key: bytes) -> str | None:
        """Return the cached answer, or None if there is none or it has expired."""

    def put(self, key: bytes, value: str) -> None:
        """Store an answer; failures are ignored."""


class ChatModel:
    """A model on a server, with its request options."""

    def __init__(
        self,
        connection: ChatConnection,
        *,
        timeout: float,
        max_tokens: int,
        temperature: float | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.label, self.fix = connection.label, connection.fix
        self.address, self.secret = connection.address, connection.secret
        self._connection, self._timeout, self._clock = connection, timeout, clock
        self._request_options = connection.request_options(max_tokens=max_tokens, temperature=temperature)
        self._cached_client: OpenAI | None = None
        self._lock = Lock()
        self._cooldown_until = 0.0

    def __repr__(self) -> str:
        return f"ChatModel({self.label})"

    def cache_key(self, *parts: str) -> bytes:
        """Return the cache key of the answer to these texts; it covers everything the answer depends on."""
        request = json.dumps([self.label, self.address, self._request_options, *parts], sort_keys=True)
        return hashlib.sha256(request.encode("utf-8", "surrogatepass")).digest()

    def ask(self, system_prompt: str, text: str) -> str:
        """Return the model's answer without hidden characters and thinking, or raise `RemoteFailure`.

        The time limit includes DNS lookups and answers that trickle in, so the request runs in another thread, which
        is abandoned when the time is up.
        """
        cooldown_left = self._cooldown_until - self._clock()
        if cooldown_left > 0:
            raise RemoteFailure(f"it failed recently and will be tried again in {cooldown_left:.0f} s")
        results: SimpleQueue[str | BaseException] = SimpleQueue()
        timed_out = Event()
        messages = [{"role": "system", "content": system_prompt}, {"role": "user", "content": text}]
        result: str | BaseException
        try:
            client = self._client()  # before the time limit starts: the package takes a second to load

            def work() -> None:
                try:
                    results.put(self._ask_with_retry(client, messages, timed_out))
                except BaseException as error:
                    results.put(error)

            Thread(target=work, name="chat", daemon=True).start()
            result = results.get(timeout=self._timeout)
        except RemoteFailure as failure:
            result = failure
        except Empty:
            timed_out.set()
            result = RemoteFailure(f"no answer within {self._timeout:g} s")
        if isinstance(result, RemoteFailure):
            if result.status not in _TEXT_ERROR_STATUSES:
                self._cooldown_until = self._clock() + min(
                    result.retry_after or _COOLDOWN_SECONDS, _MAX_COOLDOWN_SECONDS
                )
            raise result.without_traceback()
        if isinstance(result, BaseException):
            raise result
        return result

    def _ask_with_retry(self, client: OpenAI, messages: list[dict[str, str]], stop_event: Event) -> str:
        """Ask, and retry once if the failure is transient and there is time."""
        try:
            return self._ask_once(client, messages, stop_event)
        except RemoteFailure as failure:
            wait = RETRY_SECONDS if failure.retry_after is None else failure.retry_after
            if not failure.is_transient() or wait > self._timeout / 2 or stop_event.wait(wait):
                raise
        return self._ask_once(client, messages, stop_event)

    def _ask_once(self, client: OpenAI, messages: list[dict[str, str]], stop_event: Event) -> str:
        body = bytearray()
        create: Any = client.chat.completions.with_streaming_response.create
        with translate_openai_errors(), create(messages=messages, **self._request_options) as response:
            for block in response.iter_bytes():
                body += block
                if len(body) > _MAX_ANSWER_BYTES or stop_event.is_set():
                    raise RemoteFailure("the answer is too long")
        return _parse_answer(bytes(body))

    def _client(self) -> OpenAI:
        with self._lock:
            if self._cached_client is None:
                self._connection.check()
                try:
                    with translate_openai_errors():
                        self._cached_client = openai_client(self.address, self.secret, self._timeout)
                except ImportError:
                    missing = f"the package openai is not installed; run: {install_command('openai')}"
                    raise RemoteFailure(missing, status=NOT_READY_STATUS) from None
            return self._cached_client


def is_nonsense(answer: str) -> bool:
    """Return whether an answer is not usable text: it is empty, a refusal, or code."""
    return not answer.strip("\"'`*_.,。、… \n") or answer[0] in "{[<" or "```" in answer or bool(_REFUSAL.match(answer))


def _parse_answer(body: bytes) -> str:
    try:
        response = json.loads(body)
        if isinstance(response.get("error"), dict):  # OpenRouter may report an error after a successful start
            code = response["error"].get("code")
            raise RemoteFailure(str(response["error"].get("message", "")), status=code if isinstance(code, int) else 0)
        choice = response["choices"][0]
        text = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise RemoteFailure("its answer cannot be parsed") from None
    if not isinstance(text, str):
        raise RemoteFailure("its answer contains no text")
    text = remove_hidden_chars(_THINKING_BLOCK.sub("", text).encode("utf-8", "ignore").decode()).strip()
    return f"{text}…" if text and choice.get("finish_reason") == "length" else text


def describe_failure(service: RemoteEndpoint, failure: RemoteFailure) -> str:
    """Return what went wrong with a chat model and what to do next, as sentences for a notice."""
    message, hint = explain_failure(service, failure)
    if failure.is_too_large():
        hint = _TOO_LARGE_HINT
    return remove_hidden_chars(f"{message.rstrip('.')}. {hint}".rstrip())
