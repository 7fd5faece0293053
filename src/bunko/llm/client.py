"""A role and a text in, what a chat model says out: any OpenAI-compatible server, within a time limit or not at all."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bunko.remote import RemoteFailure, explain_failure, openai_client, translate_openai_errors
from bunko.text.hidden_chars import remove_hidden_chars

if TYPE_CHECKING:
    from openai import OpenAI


class ChatPreset(NamedTuple):
    """A server that is known by name."""

    model: str = ""  # the default; empty: nobody can know what a user's own server has
    key_variable: str = ""  # the name of its key in the environment; a server on this machine needs none


PRESETS = {
    "openrouter": ChatPreset("openai/gpt-4o-mini", "OPENROUTER_API_KEY"),
    "openai": ChatPreset("gpt-4o-mini", "OPENAI_API_KEY"),
    "lmstudio": ChatPreset(),
    "ollama": ChatPreset(),
}

_MAX_ANSWER_BYTES = 1_000_000  # bytes of an answer; the longest that is asked for has a hundredth of that
_RETRY_SECONDS = 0.5  # seconds before the second attempt, where the service names no time
# Who just failed is left alone for a while, so that not every search waits for the time limit.
_COOLDOWN_SECONDS, _MAX_COOLDOWN_SECONDS = 30.0, 600.0
_NOT_READY_STATUS = -1  # in place of a status: nothing was sent, something is missing on this side
_TEXT_ERROR_STATUSES = (400, 413, 422)  # statuses that say nothing about the next request
_THINKING_BLOCK = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:i['’]?m |i am )?(?:very |so )?sorry\b|i (?:can(?:['’]?t|not)|am unable|won['’]t)\b|as an ai\b"
    r"|申し訳|すみません|ごめんなさい|(?:その|この)?(?:ご)?(?:質問|要求|リクエスト)には(?:お答え|お応え|対応)",
    re.IGNORECASE,
)


class AnswerCache(Protocol):
    """Where answers are kept for a while."""

    def get(self, key: bytes) -> str | None:
        """Return what was answered before, if that is still worth something."""

    def put(self, key: bytes, value: str) -> None:
        """Keep an answer; where that is not possible, it is not."""


class ChatModel:
    """One model on one server, and how it is asked."""

    def __init__(
        self,
        provider: str,
        *,
        model: str,
        address: str,
        secret: str,
        timeout: float,
        max_tokens: int,
        temperature: float | None,
        preferences: Mapping[str, Any],  # which of its own providers OpenRouter may choose
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.label = f"{provider}:{model}"
        self.address, self.secret = address, secret
        own = PRESETS[provider].key_variable
        self.fix = f"Set {own} to a key that is valid there." if own else "Set chat.api_key to what it wants."
        self._provider, self._model, self._timeout, self._clock = provider, model, timeout, clock
        self._request_options: dict[str, Any] = {"model": model}
        # OpenAI's newer models know only the newer name, and most other servers only the older one.
        self._request_options["max_completion_tokens" if provider == "openai" else "max_tokens"] = max_tokens
        if temperature is not None:
            self._request_options["temperature"] = temperature
        if preferences:
            self._request_options["extra_body"] = {"provider": dict(preferences)}
        self._cached_client: OpenAI | None = None
        self._lock = Lock()
        self._cooldown_until = 0.0  # until then

    def __repr__(self) -> str:
        return f"ChatModel({self.label})"

    def cache_key(self, *parts: str) -> bytes:
        """Return a name for the answer to these texts: it changes with everything that the answer depends on."""
        whole = json.dumps([self.label, self.address, self._request_options, *parts], sort_keys=True)
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()

    def describe_failure(self, failure: RemoteFailure) -> str:
        """Return what happened and what to do next, as sentences for whoever waits for something else."""
        if failure.status == _NOT_READY_STATUS:
            return f"{self.label} cannot be asked: {failure.message}."
        message, hint = explain_failure(self, failure)
        return remove_hidden_chars(f"{message.rstrip('.')}. {hint}")

    def ask(self, system_prompt: str, text: str) -> str:
        """Return what the model says, without hidden characters and thoughts, or raise a Failure.

        Never later than the time limit: looking up a name and slow drops of an answer count too, so that another thread
        asks, and is left to itself when the time is over.
        """
        left = self._cooldown_until - self._clock()
        if left > 0:
            raise RemoteFailure(f"it failed a moment ago, and is asked again in {left:.0f} s")
        box: SimpleQueue[str | BaseException] = SimpleQueue()
        over = Event()
        messages = [{"role": "system", "content": system_prompt}, {"role": "user", "content": text}]
        found: str | BaseException
        try:
            client = self._client()  # before the clock runs: its package takes a second to load

            def work() -> None:
                try:
                    box.put(self._ask_with_retry(client, messages, over))
                except BaseException as error:
                    box.put(error)

            Thread(target=work, name="chat", daemon=True).start()
            found = box.get(timeout=self._timeout)
        except RemoteFailure as failure:
            found = failure
        except Empty:
            over.set()
            found = RemoteFailure(f"no answer within {self._timeout:g} s")
        if isinstance(found, RemoteFailure):
            if found.status not in _TEXT_ERROR_STATUSES:
                self._cooldown_until = self._clock() + min(
                    found.retry_after or _COOLDOWN_SECONDS, _MAX_COOLDOWN_SECONDS
                )
            raise found.without_traceback()
        if isinstance(found, BaseException):
            raise found
        return found

    def _ask_with_retry(self, client: OpenAI, messages: list[dict[str, str]], stop_event: Event) -> str:
        """Ask, and ask once more where that may help and there is time for it."""
        try:
            return self._ask_once(client, messages, stop_event)
        except RemoteFailure as failure:
            wait = _RETRY_SECONDS if failure.retry_after is None else failure.retry_after
            if not failure.is_transient() or wait > self._timeout / 2 or stop_event.wait(wait):
                raise
        return self._ask_once(client, messages, stop_event)

    def _ask_once(self, client: OpenAI, messages: list[dict[str, str]], stop_event: Event) -> str:
        body = bytearray()
        create: Any = client.chat.completions.with_streaming_response.create
        with translate_openai_errors(), create(messages=messages, **self._request_options) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _MAX_ANSWER_BYTES or stop_event.is_set():
                    raise RemoteFailure("the answer does not end")
        return _parse_answer(bytes(body))

    def _client(self) -> OpenAI:
        with self._lock:
            if self._cached_client is None:
                if not self._model:
                    raise RemoteFailure("no model is set, choose one with chat.model", status=_NOT_READY_STATUS)
                if PRESETS[self._provider].key_variable and not self.secret:
                    raise RemoteFailure("there is no key", status=401)
                try:
                    with translate_openai_errors():
                        self._cached_client = openai_client(self.address, self.secret, self._timeout)
                except ImportError:
                    missing = 'the package openai is missing, pip install "bunko[openai]" brings it'
                    raise RemoteFailure(missing, status=_NOT_READY_STATUS) from None
            return self._cached_client


def is_nonsense(answer: str) -> bool:
    """Say whether something is no answer in words: nothing, a refusal, or code that only a program can read."""
    return not answer.strip("\"'`*_.,。、… \n") or answer[0] in "{[<" or "```" in answer or bool(_REFUSAL.match(answer))


def _parse_answer(body: bytes) -> str:
    try:
        found = json.loads(body)
        if isinstance(found.get("error"), dict):  # OpenRouter says so after it has begun to answer well
            code = found["error"].get("code")
            raise RemoteFailure(str(found["error"].get("message", "")), status=code if isinstance(code, int) else 0)
        choice = found["choices"][0]
        text = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise RemoteFailure("its answer cannot be read") from None
    if not isinstance(text, str):
        raise RemoteFailure("its answer holds no text")
    text = remove_hidden_chars(_THINKING_BLOCK.sub("", text).encode("utf-8", "ignore").decode()).strip()
    return f"{text}…" if text and choice.get("finish_reason") == "length" else text


def build(
    provider: str,
    *,
    address: str,
    model: str | None = None,
    api_key: str = "",
    timeout: float = 10.0,
    max_tokens: int = 200,
    temperature: float | None = 0.0,
    preferences: Mapping[str, Any] | None = None,
    clock: Callable[[], float] = monotonic,
) -> ChatModel:
    """Return a chat with a provider's model, else with the one that is usual there."""
    return ChatModel(
        provider,
        model=model or PRESETS[provider].model,
        address=address.rstrip("/"),
        secret=api_key,
        timeout=timeout,
        max_tokens=max_tokens,
        temperature=temperature,
        preferences=preferences or {},
        clock=clock,
    )
