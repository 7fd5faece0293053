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

from bunko.remote import Failure, explained, openai_client, openai_failures
from bunko.text.hidden_chars import clean

if TYPE_CHECKING:
    from openai import OpenAI


class Preset(NamedTuple):
    """A server that is known by name."""

    model: str = ""  # the default; empty: nobody can know what a user's own server has
    key: str = ""  # the name of its key in the environment; a server on this machine needs none


PRESETS = {
    "openrouter": Preset("openai/gpt-4o-mini", "OPENROUTER_API_KEY"),
    "openai": Preset("gpt-4o-mini", "OPENAI_API_KEY"),
    "lmstudio": Preset(),
    "ollama": Preset(),
}

_LARGEST = 1_000_000  # bytes of an answer; the longest that is asked for has a hundredth of that
_WAIT = 0.5  # seconds before the second attempt, where the service names no time
# Who just failed is left alone for a while, so that not every search waits for the time limit.
_REST, _LONGEST_REST = 30.0, 600.0
_NOT_READY = -1  # in place of a status: nothing was sent, something is missing on this side
_ABOUT_THIS_TEXT = (400, 413, 422)  # statuses that say nothing about the next request
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:i['’]?m |i am )?(?:very |so )?sorry\b|i (?:can(?:['’]?t|not)|am unable|won['’]t)\b|as an ai\b"
    r"|申し訳|すみません|ごめんなさい|(?:その|この)?(?:ご)?(?:質問|要求|リクエスト)には(?:お答え|お応え|対応)",
    re.IGNORECASE,
)


class Answers(Protocol):
    """Where answers are kept for a while."""

    def get(self, key: bytes) -> str | None:
        """Return what was answered before, if that is still worth something."""

    def put(self, key: bytes, value: str) -> None:
        """Keep an answer; where that is not possible, it is not."""


class Chat:
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
        own = PRESETS[provider].key
        self.fix = f"Set {own} to a key that is valid there." if own else "Set chat.api_key to what it wants."
        self._provider, self._model, self._timeout, self._clock = provider, model, timeout, clock
        self._asked: dict[str, Any] = {"model": model}
        # OpenAI's newer models know only the newer name, and most other servers only the older one.
        self._asked["max_completion_tokens" if provider == "openai" else "max_tokens"] = max_tokens
        if temperature is not None:
            self._asked["temperature"] = temperature
        if preferences:
            self._asked["extra_body"] = {"provider": dict(preferences)}
        self._made: OpenAI | None = None
        self._lock = Lock()
        self._resting = 0.0  # until then

    def __repr__(self) -> str:
        return f"Chat({self.label})"

    def key(self, *parts: str) -> bytes:
        """Return a name for the answer to these texts: it changes with everything that the answer depends on."""
        whole = json.dumps([self.label, self.address, self._asked, *parts], sort_keys=True)
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()

    def trouble(self, failure: Failure) -> str:
        """Return what happened and what to do next, as sentences for whoever waits for something else."""
        if failure.status == _NOT_READY:
            return f"{self.label} cannot be asked: {failure.message}."
        message, hint = explained(self, failure)
        return clean(f"{message.rstrip('.')}. {hint}")

    def ask(self, role: str, text: str) -> str:
        """Return what the model says, without hidden characters and thoughts, or raise a Failure.

        Never later than the time limit: looking up a name and slow drops of an answer count too, so that another thread
        asks, and is left to itself when the time is over.
        """
        left = self._resting - self._clock()
        if left > 0:
            raise Failure(f"it failed a moment ago, and is asked again in {left:.0f} s")
        box: SimpleQueue[str | BaseException] = SimpleQueue()
        over = Event()
        messages = [{"role": "system", "content": role}, {"role": "user", "content": text}]
        found: str | BaseException
        try:
            client = self._client()  # before the clock runs: its package takes a second to load

            def work() -> None:
                try:
                    box.put(self._patient(client, messages, over))
                except BaseException as error:
                    box.put(error)

            Thread(target=work, name="chat", daemon=True).start()
            found = box.get(timeout=self._timeout)
        except Failure as failure:
            found = failure
        except Empty:
            over.set()
            found = Failure(f"no answer within {self._timeout:g} s")
        if isinstance(found, Failure):
            if found.status not in _ABOUT_THIS_TEXT:
                self._resting = self._clock() + min(found.wait or _REST, _LONGEST_REST)
            raise found.alone()
        if isinstance(found, BaseException):
            raise found
        return found

    def _patient(self, client: OpenAI, messages: list[dict[str, str]], over: Event) -> str:
        """Ask, and ask once more where that may help and there is time for it."""
        try:
            return self._once(client, messages, over)
        except Failure as failure:
            wait = _WAIT if failure.wait is None else failure.wait
            if not failure.is_passing() or wait > self._timeout / 2 or over.wait(wait):
                raise
        return self._once(client, messages, over)

    def _once(self, client: OpenAI, messages: list[dict[str, str]], over: Event) -> str:
        body = bytearray()
        create: Any = client.chat.completions.with_streaming_response.create
        with openai_failures(), create(messages=messages, **self._asked) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _LARGEST or over.is_set():
                    raise Failure("the answer does not end")
        return _said(bytes(body))

    def _client(self) -> OpenAI:
        with self._lock:
            if self._made is None:
                if not self._model:
                    raise Failure("no model is set, choose one with chat.model", status=_NOT_READY)
                if PRESETS[self._provider].key and not self.secret:
                    raise Failure("there is no key", status=401)
                try:
                    with openai_failures():
                        self._made = openai_client(self.address, self.secret, self._timeout)
                except ImportError:
                    missing = 'the package openai is missing, pip install "bunko[openai]" brings it'
                    raise Failure(missing, status=_NOT_READY) from None
            return self._made


def is_nonsense(said: str) -> bool:
    """Say whether something is no answer in words: nothing, a refusal, or code that only a program can read."""
    return not said.strip("\"'`*_.,。、… \n") or said[0] in "{[<" or "```" in said or bool(_REFUSAL.match(said))


def _said(body: bytes) -> str:
    try:
        found = json.loads(body)
        if isinstance(found.get("error"), dict):  # OpenRouter says so after it has begun to answer well
            code = found["error"].get("code")
            raise Failure(str(found["error"].get("message", "")), status=code if isinstance(code, int) else 0)
        choice = found["choices"][0]
        text = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Failure("its answer cannot be read") from None
    if not isinstance(text, str):
        raise Failure("its answer holds no text")
    text = clean(_THOUGHT.sub("", text).encode("utf-8", "ignore").decode()).strip()
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
) -> Chat:
    """Return a chat with a provider's model, else with the one that is usual there."""
    return Chat(
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
