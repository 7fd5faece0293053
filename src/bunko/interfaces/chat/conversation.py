"""Let a chat model answer questions with tools, within limits on rounds, tokens, time and money."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol

import anyio

from bunko.errors import BunkoError
from bunko.interfaces.chat import prompts
from bunko.interfaces.chat.mcp_manager import MCPManager, OfferedTool
from bunko.interfaces.chat.servers import MCPServerError
from bunko.interfaces.chat.sources import ShownSources
from bunko.llm.turns import Message, RequestedCall, Turn, rejects_tools
from bunko.runtime.remote import RemoteFailure
from bunko.text.token_count import estimate_tokens
from bunko.types.answers import AnswerSource

_log = logging.getLogger("bunko.chat")

SEARCH_TOOLS = ("search", "rag_search")  # for models that cannot call tools, or do not

Permission = Literal["yes", "ask", "no"]
Confirm = Callable[[str, Mapping[str, Any]], Awaitable[bool]]
# Returns the arguments of a search for other wordings of a question, and a notice.
FindWordings = Callable[[str], Awaitable[tuple[Mapping[str, Any], str]]]


class ChatModelServer(Protocol):
    """A model that takes turns in a conversation."""

    label: str

    async def turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        on_text: Callable[[str], None] = lambda text: None,
    ) -> Turn:
        """Return its next turn, or raise RemoteFailure."""


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """What one answer may cost, and how much of the conversation a model is reminded of."""

    rounds: int = 6  # of calls of tools
    tokens: int = 100_000  # read and written by the model
    seconds: float = 120.0
    cost: float | None = None  # in the currency of the prices
    history_tokens: int = 8_000
    input_price: float = 0.0  # of a million tokens
    output_price: float = 0.0

    def warnings(self) -> list[str]:
        """Return which limit cannot hold."""
        has_prices = self.input_price or self.output_price
        if self.cost is None or has_prices:
            return []
        return ["chat.max_cost limits nothing without prices: set chat.input_price and chat.output_price."]


@dataclass(slots=True)
class ChatEvents:
    """What to tell about an answer while it is made."""

    on_text: Callable[[str], None] = lambda text: None
    on_call: Callable[[str, Mapping[str, Any]], None] = lambda name, arguments: None
    on_restart: Callable[[], None] = lambda: None  # what was streamed so far was not the answer
    confirm: Confirm | None = None  # asks the user about a call; None: there is no user to ask


@dataclass(slots=True)
class ChatReply:
    """What a model answered, before it is verified."""

    text: str = ""
    sources: list[AnswerSource] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)  # the names of the tools that were called
    withheld: set[str] = field(default_factory=set)  # tools that have changed, and are only announced
    search_tool: str = ""  # what the library can be searched with; empty: nothing
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer, as later questions see them."""

    question: str
    answer: str
    first_source: int  # the number of the first source that was shown for it

    def messages(self) -> list[Message]:
        """Return the exchange as messages."""
        return [{"role": "user", "content": self.question}, {"role": "assistant", "content": self.answer}]


class Conversation:
    """A conversation with a model; each question is answered with tools, and later ones see the earlier answers."""

    def __init__(
        self,
        model: ChatModelServer,
        tools: MCPManager,
        *,
        limits: ChatLimits = ChatLimits(),
        allowed_tools: Sequence[str] = (),  # patterns of tools with side effects that may be called
        confirmed_tools: Sequence[str] = (),  # and of those that may be called after the user has agreed
        offers_tools: bool = True,  # False: the library is searched once for each question
        library_servers: Collection[str] = (),  # servers that are this library itself
        useless_tools: Collection[str] = (),  # tools of these servers that are not offered
        find_wordings: FindWordings | None = None,  # for a search of the question itself
    ) -> None:
        self._model, self._tools, self._limits = model, tools, limits
        self._allowed_tools, self._confirmed_tools = allowed_tools, confirmed_tools
        self._library_servers, self.useless_tools = library_servers, useless_tools
        self._find_wordings = find_wordings
        self.exchanges: list[Exchange] = []
        self._sources = ShownSources()
        self._offers_tools = self._can_call_tools = offers_tools
        self._time_limit: anyio.CancelScope | None = None

    @property
    def sources(self) -> list[AnswerSource]:
        """All sources that the model still sees."""
        return list(self._sources)

    def restore(self, exchanges: Sequence[Exchange], sources: Iterable[AnswerSource]) -> None:
        """Continue an earlier conversation; what the model is reminded of is limited as always."""
        self.exchanges, self._sources = list(exchanges), ShownSources(sources)

    def use_model(self, model: ChatModelServer) -> None:
        """Let another model answer from now on."""
        self._model, self._can_call_tools = model, self._offers_tools

    async def ask(
        self,
        question: str,
        events: ChatEvents | None = None,
        *,
        needs_search: Callable[[ChatReply], Awaitable[bool]] | None = None,
        reply: ChatReply | None = None,
    ) -> ChatReply:
        """Return the model's answer, or raise RemoteFailure; a question that is cancelled or fails is forgotten.

        If the model answers without a search, `needs_search` says whether to search for it and let it answer again.
        A `reply` that is given is filled in, and has the notices even if the model fails.
        """
        events, reply = events or ChatEvents(), reply if reply is not None else ChatReply()
        reply.notices += self._limits.warnings()
        first_source = self._forget_old_exchanges()
        try:
            with anyio.move_on_after(self._limits.seconds) as limit:
                self._time_limit = limit
                await self._answer_or_search(question, events, reply, needs_search)
        except BaseException:
            self._sources.drop_from(first_source)
            raise
        if limit.cancelled_caught:
            reply.notices.append(f"The answer was not finished within {self._limits.seconds:g} s.")
        reply.notices = list(dict.fromkeys(reply.notices))
        reply.sources = list(self._sources)
        if reply.text:
            self.exchanges.append(Exchange(question, reply.text, first_source))
        else:  # servers refuse an empty message
            self._sources.drop_from(first_source)
        return reply

    async def _answer_or_search(
        self,
        question: str,
        events: ChatEvents,
        reply: ChatReply,
        needs_search: Callable[[ChatReply], Awaitable[bool]] | None,
    ) -> None:
        try:
            await self._answer(question, events, reply)
        except RemoteFailure as failure:
            if not (self._can_call_tools and rejects_tools(failure)):
                raise
            self._can_call_tools = False
            reply.notices.append(f"{self._model.label} cannot call tools, so the library was searched once.")
            events.on_restart()
            await self._answer(question, events, reply)
        if self._can_call_tools and not reply.calls and needs_search is not None and reply.search_tool:
            reply.sources = list(self._sources)
            if await needs_search(reply):
                reply.text = ""
                events.on_restart()
                await self._answer(question, events, reply, search_first=True)

    def _forget_old_exchanges(self) -> int:
        """Drop the oldest exchanges over the limit, and return the number of the next source."""
        remaining, count = self._limits.history_tokens, 0
        for exchange in reversed(self.exchanges):
            remaining -= estimate_tokens(exchange.question + exchange.answer)
            if remaining < 0:
                break
            count += 1
        self.exchanges = self.exchanges[len(self.exchanges) - count :]
        next_number = self._sources.next_number
        self._sources.drop_before(self.exchanges[0].first_source if self.exchanges else next_number)
        return next_number

    async def _answer(self, question: str, events: ChatEvents, reply: ChatReply, *, search_first: bool = False) -> None:
        tools = await self._tools.tools()
        reply.withheld |= {tool.name for tool in tools if tool.has_changed}
        offered = {
            tool.name: tool for tool in tools if tool.name not in reply.withheld and self._may_call(tool, events)
        }
        system_prompt = prompts.LIBRARY_PROMPT if offered or reply.withheld else prompts.NO_LIBRARY_PROMPT
        messages: list[Message] = [{"role": "system", "content": prompts.with_date(system_prompt, date.today())}]
        for exchange in self.exchanges:
            messages += exchange.messages()
        reply.notices += [
            f"{sentence} It can be used from the next question on." for sentence in self._tools.announcements()
        ]
        reply.notices += [f"{problem}." for problem in self._tools.problems.values()]
        reply.search_tool = next((name for name in SEARCH_TOOLS if name in offered), "")
        if reply.search_tool and (search_first or not self._can_call_tools):
            results = await self._search(question, offered, events, reply)
            prompt = prompts.SEARCHED_PROMPT if self._can_call_tools else prompts.NO_TOOLS_PROMPT
            messages.append({"role": "user", "content": f"{prompt}\n\n{results}\n\nQuestion: {question}"})
        else:
            messages.append({"role": "user", "content": question})
        await self._take_turns(messages, offered if self._can_call_tools else {}, events, reply)

    async def _search(
        self, question: str, offered: Mapping[str, OfferedTool], events: ChatEvents, reply: ChatReply
    ) -> str:
        """Return the results of a search for the question itself."""
        arguments: dict[str, Any] = {"query": question}
        parameters = offered[reply.search_tool].tool.input_schema.get("properties") or {}
        if self._find_wordings is not None and "also" in parameters:
            wordings, notice = await self._find_wordings(question)
            arguments |= wordings
            reply.notices += [notice] if notice else []
        events.on_call(reply.search_tool, arguments)
        call = RequestedCall("", reply.search_tool, json.dumps(arguments))
        return await self._run_call(call, offered, events, reply)

    async def _take_turns(
        self, messages: list[Message], offered: Mapping[str, OfferedTool], events: ChatEvents, reply: ChatReply
    ) -> None:
        """Let the model call tools until it answers or a limit is reached."""
        schemas = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.tool.description,
                    "parameters": dict(tool.tool.input_schema) or {"type": "object", "properties": {}},
                },
            }
            for tool in offered.values()
        ]
        known_calls: set[tuple[str, str]] = set()

        def on_text(text: str) -> None:
            reply.text += text
            events.on_text(text)

        for round_number in range(self._limits.rounds + 1):
            limit = self._reached_limit(round_number, reply)
            if limit and schemas:
                messages.append({"role": "user", "content": prompts.ANSWER_NOW})
                reply.notices.append(_limit_notice(limit))
            turn = await self._model.turn(messages, () if limit else schemas, on_text)
            self._count(turn, reply)
            if not turn.calls or limit:
                reply.text = turn.text
                reply.notices += ["The answer was cut at the length in chat.max_tokens."] if turn.is_cut else []
                reply.notices += [f"{self._model.label} stopped in the middle; ask again."] if turn.is_lost else []
                return
            if turn.text:
                reply.text = ""
                events.on_restart()
            messages.append(turn.message())
            tokens_left = self._limits.tokens - sum(estimate_tokens(str(message["content"])) for message in messages)
            for call in turn.calls:
                content = await self._answer_call(call, offered, events, reply, known_calls)
                tokens_left -= estimate_tokens(content)
                if tokens_left < 0:  # the model reads all results at once, so that no later check would help
                    content = prompts.LEFT_OUT
                    reply.notices.append(_limit_notice("chat.max_total_tokens"))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    async def _answer_call(
        self,
        call: RequestedCall,
        offered: Mapping[str, OfferedTool],
        events: ChatEvents,
        reply: ChatReply,
        known_calls: set[tuple[str, str]],
    ) -> str:
        key = (call.name, call.arguments)
        if key in known_calls:
            return prompts.REPEATED_CALL
        known_calls.add(key)
        events.on_call(call.name, call.parse_arguments() or {})
        return await self._run_call(call, offered, events, reply)

    def permission(self, tool: OfferedTool) -> Permission:
        """Return whether the model may call a tool."""
        if tool.server in self._library_servers and tool.tool.name in self.useless_tools:
            return "no"
        if may_be_called(tool, self._allowed_tools):
            return "yes"
        return "ask" if _matches(tool.name, self._confirmed_tools) else "no"

    def _may_call(self, tool: OfferedTool, events: ChatEvents) -> bool:
        permission = self.permission(tool)
        return permission == "yes" or (permission == "ask" and events.confirm is not None)

    def _reached_limit(self, round_number: int, reply: ChatReply) -> str:
        """Return the setting whose limit is reached, so that the model must answer; empty: none."""
        if round_number == self._limits.rounds:
            return "chat.max_rounds"
        if reply.input_tokens + reply.output_tokens > self._limits.tokens:
            return "chat.max_total_tokens"
        return "chat.max_cost" if self._limits.cost is not None and reply.cost > self._limits.cost else ""

    def _count(self, turn: Turn, reply: ChatReply) -> None:
        reply.input_tokens += turn.input_tokens
        reply.output_tokens += turn.output_tokens
        reply.cost += (
            turn.input_tokens * self._limits.input_price + turn.output_tokens * self._limits.output_price
        ) / 1_000_000

    async def _run_call(
        self, call: RequestedCall, offered: Mapping[str, OfferedTool], events: ChatEvents, reply: ChatReply
    ) -> str:
        """Return the result of a call for the model; each failure is a sentence that it can act on."""
        if call.name not in offered:
            return prompts.unknown_tool(call.name, offered)
        arguments = call.parse_arguments()
        if arguments is None:
            return prompts.broken_arguments(call.name)
        reply.calls.append(call.name)
        if self.permission(offered[call.name]) == "ask" and not await self._is_confirmed(call.name, arguments, events):
            return prompts.DECLINED
        try:
            output = await self._tools.call_tool(call.name, arguments)
        except BunkoError as error:
            problem = f"{error.message}. {error.hint}".rstrip()
            reply.notices += [problem] if isinstance(error, MCPServerError) else []
            return f"{call.name} failed: {problem}"
        except Exception as error:
            _log.exception("The tool %s failed", call.name)
            return prompts.internal_error(call.name, error)
        server = offered[call.name].server
        if server in self._library_servers:
            server = ""
            reply.notices += (output.structured or {}).get("notices", [])
        return self._sources.message_for(call.name, output, server=server)

    async def _is_confirmed(self, name: str, arguments: Mapping[str, Any], events: ChatEvents) -> bool:
        """Ask the user about a call; the time that takes does not count."""
        limit = self._time_limit
        if events.confirm is None or limit is None:
            return False
        seconds_left = limit.deadline - anyio.current_time()
        limit.deadline = math.inf
        is_confirmed = await events.confirm(name, arguments)
        limit.deadline = anyio.current_time() + seconds_left
        return is_confirmed


def may_be_called(tool: OfferedTool, allowed_tools: Sequence[str]) -> bool:
    """Return whether a tool only reads, or is allowed nevertheless."""
    return tool.tool.read_only or _matches(tool.name, allowed_tools)


def _limit_notice(setting: str) -> str:
    return f"The answer was made before the model had all it asked for: the limit {setting} was reached."


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
