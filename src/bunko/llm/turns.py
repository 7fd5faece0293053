"""Hold a conversation with a chat model: stream its words, and collect the calls of tools that it asks for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.lowlevel

from bunko.llm.client import ChatConnection
from bunko.runtime.installation import install_command
from bunko.runtime.remote import NOT_READY_STATUS, UNUSABLE_STATUS, RemoteFailure, translate_openai_errors
from bunko.text.labels import remove_hidden_chars
from bunko.text.token_count import estimate_tokens

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

MAX_BYTES = 50_000_000  # a streamed token takes about 250


async def limit_length(response: httpx2.Response) -> None:
    """Count the bytes of a response while it is read; the SDK would keep a line without end in memory."""
    from httpx2 import AsyncByteStream

    stream = cast(AsyncByteStream, response.stream)

    class LimitedStream(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            length = 0
            async for part in stream:
                length += len(part)
                if length > MAX_BYTES:
                    raise RemoteFailure("the answer is too long", status=UNUSABLE_STATUS)
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = LimitedStream()
    await anyio.lowlevel.checkpoint()


_Part = TypeVar("_Part")
Message = dict[str, Any]  # in the form of the chat completions API

_MAX_TEXT_CHARS = 200_000
_MAX_CALLS = 32
_MAX_ARGUMENT_CHARS = 100_000
_THINK_START, _THINK_END = ("<think>", "<thinking>"), ("</think>", "</thinking>")
# What servers answer to a request with tools for a model that cannot call any.
_NO_TOOLS_WORDS = ("tool", "function")
# A server that is busy is asked once more, if it wants no longer wait than a reader has patience for.
_RETRY_STATUSES = (429, 500, 502, 503, 504)
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.5, 5.0


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call of a tool that a model asks for; the arguments are its own text, which may not be JSON."""

    id: str
    name: str
    arguments: str

    def parse_arguments(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a JSON object."""
        try:
            arguments = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            return None
        return arguments if isinstance(arguments, dict) else None


@dataclass(slots=True)
class Turn:
    """What a model said in one turn."""

    text: str = ""
    calls: list[RequestedCall] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0
    is_cut: bool = False  # it reached the limit of its length
    is_lost: bool = False  # the server stopped sending before it said that the turn is over

    def message(self) -> Message:
        """Return the turn as a message of the conversation."""
        message: Message = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        return message


class ChatServer:
    """A chat model on an OpenAI-compatible server that streams its answers."""

    def __init__(
        self,
        connection: ChatConnection,
        *,
        request_options: Mapping[str, Any],  # the model, limits and preferences of every request
        timeout: float,  # seconds until the next piece of an answer
    ) -> None:
        self.label, self.fix = connection.label, connection.fix
        self.address, self.secret = connection.address, connection.secret
        self._connection, self._request_options, self._timeout = connection, dict(request_options), timeout
        self._cached_client: AsyncOpenAI | None = None

    async def turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        on_text: Callable[[str], None] = lambda text: None,
    ) -> Turn:
        """Return the model's next turn; `on_text` gets its words as they come. Raise RemoteFailure if it fails."""
        options = {**self._request_options, "messages": list(messages), "stream": True}
        options["stream_options"] = {"include_usage": True}
        if tools:
            options["tools"] = list(tools)
        collector = _TurnCollector(on_text)
        try:
            await self._request(options, collector)
        except RemoteFailure as failure:
            wait = _RETRY_SECONDS if failure.retry_after is None else failure.retry_after
            is_busy = failure.status in _RETRY_STATUSES and not (tools and rejects_tools(failure))
            if not is_busy or collector.has_begun or wait > _MAX_RETRY_SECONDS:
                raise
            await anyio.sleep(wait)
            await self._request(options, collector)
        turn = collector.finish()
        if not turn.input_tokens:  # a server that does not count
            turn.input_tokens = estimate_tokens(json.dumps([list(messages), list(tools)], ensure_ascii=False))
            turn.output_tokens = estimate_tokens(turn.text + "".join(call.arguments for call in turn.calls))
        return turn

    async def _request(self, options: Mapping[str, Any], collector: _TurnCollector) -> None:
        create: Any = self._client().chat.completions.create
        with translate_openai_errors():
            async with await create(**options) as stream:
                async for chunk in _within(stream, self._timeout):
                    collector.add(chunk)

    def _client(self) -> AsyncOpenAI:
        if self._cached_client is None:
            self._connection.check()
            try:
                from openai import AsyncOpenAI, DefaultAsyncHttpxClient
            except ImportError:
                missing = f"the package openai is not installed; run: {install_command('openai')}"
                raise RemoteFailure(missing, status=NOT_READY_STATUS) from None
            # Without a key, the SDK would send OPENAI_API_KEY to whatever server the address names.
            with translate_openai_errors():
                self._cached_client = AsyncOpenAI(
                    api_key=self.secret or "none",
                    base_url=self.address,
                    timeout=self._timeout,
                    max_retries=0,
                    # A redirect would take the question and what was found for it to somebody else.
                    http_client=DefaultAsyncHttpxClient(
                        follow_redirects=False, event_hooks={"response": [limit_length]}
                    ),
                )
        return self._cached_client

    async def close(self) -> None:
        """Close the connections."""
        if self._cached_client is not None:
            await self._cached_client.close()


def rejects_tools(failure: RemoteFailure) -> bool:
    """Return whether a server says that its model cannot call tools."""
    if failure.is_too_large():  # OpenAI counts the tokens of the functions in this message
        return False
    return failure.status in (400, 404, 422, 500, 501) and any(
        word in failure.message.lower() for word in _NO_TOOLS_WORDS
    )


async def _within(stream: Any, timeout: float) -> AsyncIterator[Any]:
    """Yield the chunks of a stream; a server that sends nothing for too long, or only keeps the line alive, fails."""
    iterator = stream.__aiter__()
    while True:
        with anyio.move_on_after(timeout) as limit:
            try:
                chunk = await anext(iterator)
            except StopAsyncIteration:
                return
            except RecursionError:
                raise RemoteFailure("its answer cannot be parsed", status=UNUSABLE_STATUS) from None
        if limit.cancelled_caught:
            raise RemoteFailure(f"it sent nothing for {timeout:g} s")
        yield chunk


class _TurnCollector:
    """Puts the pieces of a streamed turn together."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._text = _WithoutThinking(on_text)
        self._calls: dict[int, dict[str, str]] = {}
        self._turn = Turn(is_lost=True)
        self.has_begun = False

    def add(self, chunk: Any) -> None:
        error = getattr(chunk, "error", None)
        if error:  # OpenRouter may report an error after a successful start
            details = error if isinstance(error, dict) else {}
            code = details.get("code")
            raise RemoteFailure(str(details.get("message", error)), status=code if isinstance(code, int) else 0)
        if usage := getattr(chunk, "usage", None):
            self._turn.input_tokens = max(_part(usage, "prompt_tokens", int), 0)
            self._turn.output_tokens = max(_part(usage, "completion_tokens", int), 0)
        for choice in _part(chunk, "choices", list):
            delta, finish_reason = getattr(choice, "delta", None), _part(choice, "finish_reason", str)
            self.has_begun = self.has_begun or delta is not None
            self._turn.is_lost = self._turn.is_lost and not finish_reason
            self._turn.is_cut = self._turn.is_cut or finish_reason == "length"
            self._text.add(_part(delta, "content", str))
            for call in _part(delta, "tool_calls", list):
                self._add_call(call)

    def _add_call(self, piece: Any) -> None:
        # Some servers send each call whole and number all of them 0: another id starts another call.
        index, call_id, function = _part(piece, "index", int), _part(piece, "id", str), getattr(piece, "function", None)
        previous = self._calls.get(index)
        if previous and call_id and previous["id"] and call_id != previous["id"]:
            index = max(self._calls) + 1
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        call["id"] = call_id or call["id"]
        call["name"] += _part(function, "name", str)
        call["arguments"] += _part(function, "arguments", str)
        if len(self._calls) > _MAX_CALLS or len(call["arguments"]) > _MAX_ARGUMENT_CHARS:
            raise RemoteFailure("it asked for too many or too long calls of tools", status=UNUSABLE_STATUS)

    def finish(self) -> Turn:
        if not self.has_begun:  # a web page, or an answer that is not streamed
            raise RemoteFailure("it sent no stream of chat completions", status=UNUSABLE_STATUS)
        self._turn.text = self._text.finish()
        self._turn.calls = [
            RequestedCall(call["id"] or f"call_{index}", call["name"], call["arguments"])
            for index, call in sorted(self._calls.items())
        ]
        return self._turn


def _part(value: object, name: str, kind: type[_Part]) -> _Part:
    """Return a part of what a server sent, or nothing of its kind: the SDK does not check what servers send."""
    part = getattr(value, name, None)
    return part if isinstance(part, kind) else kind()


class _WithoutThinking:
    """Passes streamed text on without hidden characters and without the thoughts that some models begin with."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._pending, self._parts, self._length = "", [""], 0
        self._state = "start"  # then "thinking", then "text"

    def add(self, text: str) -> None:
        self._pending += text
        if self._state == "start":
            head = self._pending.lstrip()
            if not head or any(tag.startswith(head.lower()) and head.lower() != tag for tag in _THINK_START):
                return  # it may still become the start of a thought
            self._state = "thinking" if head.lower().startswith(_THINK_START) else "text"
        if self._state == "thinking":
            for tag in _THINK_END:
                position = self._pending.lower().find(tag)
                if position >= 0:
                    self._pending, self._state = self._pending[position + len(tag) :].lstrip(), "text"
                    break
            else:
                self._pending = self._pending[-(_MAX_TEXT_CHARS // 10) :]
                return
        self._emit(self._pending)
        self._pending = ""

    def _emit(self, text: str) -> None:
        text = remove_hidden_chars(text.encode("utf-8", "ignore").decode())
        if not text:
            return
        self._length += len(text)
        if self._length > _MAX_TEXT_CHARS:
            raise RemoteFailure("the answer is too long", status=UNUSABLE_STATUS)
        self._parts.append(text)
        self._on_text(text)

    def finish(self) -> str:
        if self._state == "start":
            self._emit(self._pending)
        return "".join(self._parts).strip()
