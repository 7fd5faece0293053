"""Answer questions in a conversation with a chat model and verify each answer; without a model, quote the documents."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, cast, get_args

import anyio
import anyio.from_thread
import anyio.to_thread

from bunko.answers.ask import clean_answer
from bunko.answers.plain_sentences import is_refusal
from bunko.errors import BunkoError, QueryError
from bunko.interfaces.chat.consent import Approve, refuse
from bunko.interfaces.chat.conversation import ChatEvents, ChatModelServer, ChatReply, Conversation
from bunko.interfaces.chat.setup import ChatTools, chat_limits, open_chat_tools, open_library_tools
from bunko.library.library import Library
from bunko.llm.client import describe_failure
from bunko.llm.turns import ChatServer
from bunko.runtime.observer import Observer
from bunko.runtime.remote import RemoteEndpoint, RemoteFailure
from bunko.search.request import MAX_WORDINGS, SearchRequest
from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedSentence, CitationState

_log = logging.getLogger("bunko.chat")

_VERIFY_TOOL = "verify"  # of a server that is bunko too
_PAGE_TOOLS = ("rag_search", "rag_stats")
_STATES: Sequence[str] = get_args(CitationState)


class ChatModelEndpoint(ChatModelServer, RemoteEndpoint, Protocol):
    """A chat model whose failures can be explained."""

    async def close(self) -> None:
        """Close its connections."""


class Answerer:
    """A conversation whose answers are verified; what no model can answer is quoted from the documents."""

    def __init__(
        self,
        library: Library,
        model: ChatModelEndpoint | None,
        tools: ChatTools,
        *,
        names: Sequence[str] = (),  # of the library's tools to answer from; empty: all
        refresh: bool = True,
        allowed_tools: Sequence[str] | None = None,  # that may change something; None: as chat.allowed_tools says
    ) -> None:
        self._library, self.tools, self._names, self._refresh = library, tools, tuple(names), refresh
        self._allowed_tools = allowed_tools
        self.model, self._models = model, [model] if model is not None else []
        self.conversation = self._new_conversation(model) if model is not None else None

    def use_model(self, model: ChatModelEndpoint) -> None:
        """Let another model answer from now on."""
        self.model = model
        self._models.append(model)
        if self.conversation is not None:
            self.conversation.use_model(model)
        else:
            self.conversation = self._new_conversation(model)

    async def close(self) -> None:
        """Close the connections to all models that were used."""
        for model in self._models:
            await model.close()

    def start_again(self) -> None:
        """Forget the conversation."""
        self.conversation = self._new_conversation(self.model) if self.model is not None else None

    def _new_conversation(self, model: ChatModelServer) -> Conversation | None:
        if self.tools.manager is None:
            return None
        chat = self._library.settings.chat
        return Conversation(
            model,
            self.tools.manager,
            limits=chat_limits(self._library.settings),
            allowed_tools=chat.allowed_tools if self._allowed_tools is None else self._allowed_tools,
            confirmed_tools=chat.confirmed_tools,
            offers_tools=self._library.settings.mcp.enabled,
            library_servers=self.tools.library_servers,
            useless_tools=self._useless_tools(),
            find_wordings=self._find_wordings,
        )

    def _useless_tools(self) -> Sequence[str]:
        """Return the tools of the library that a model cannot use.

        Its results have numbers instead of hashes, and without collected pages a search of them only misleads it.
        """
        tools = [tool for tool in self._library.tools() if not self._names or tool.name in self._names]
        has_pages = any(tool.kind == "web" for tool in tools)
        return (_VERIFY_TOOL,) if has_pages else (_VERIFY_TOOL, *_PAGE_TOOLS)

    async def prepare(self, question: str, observer: Observer) -> None:
        """Import changed files, which may take longer than a tool's call may, and report the progress."""
        request = self._request(question)
        if self._refresh and question.strip():
            await self._in_thread(lambda: self._library.answers.find_sources(request, observer=observer))

    async def ask(self, question: str, events: ChatEvents | None = None) -> CheckedAnswer:
        """Return the verified answer to a question."""
        if not question.strip():
            raise QueryError("The question is empty", hint="Ask a question in words.")
        model, conversation = self.model, self.conversation
        if model is None or conversation is None:
            return await self._quote(question)
        await self._in_thread(self._library.log_search, question, self._request(question).tool)
        conversation.useless_tools = await self._in_thread(self._useless_tools)

        async def says_more_than_it_knows(reply: ChatReply) -> bool:
            sentences = await self._verify(question, reply)
            return any(not sentence.holds or is_refusal(sentence.text) for sentence in sentences)

        reply = ChatReply()
        try:
            await conversation.ask(question, events, needs_search=says_more_than_it_knows, reply=reply)
        except RemoteFailure as failure:
            return await self._quote(question, *reply.notices, describe_failure(model, failure))
        if not any(char.isalnum() for char in reply.text):
            return await self._quote(question, *reply.notices, f"{model.label} returned no readable text.")
        sentences = await self._verify(question, reply)
        return CheckedAnswer(
            question, sentences, self._with_tool_names(reply.sources), model=model.label, notices=reply.notices,
            prompt_tokens=reply.input_tokens, answer_tokens=reply.output_tokens, cost=reply.cost,
        )  # fmt: skip

    def _request(self, question: str) -> SearchRequest:
        tool = self._names[0] if len(self._names) == 1 else self._names or None
        return SearchRequest(question, tool, refresh=self._refresh)

    async def _find_wordings(self, question: str) -> tuple[Mapping[str, Any], str]:
        """Return other wordings of a question and a passage, if the settings let a model rewrite queries."""
        rewriting, notice = await self._in_thread(self._library.answers.rewrite_question, question)
        if rewriting is None or not rewriting.words:
            return {}, notice
        passage = {"passage": rewriting.passage} if rewriting.passage else {}
        return {"also": [rewriting.words, *rewriting.also][:MAX_WORDINGS], **passage}, notice

    async def _quote(self, question: str, *reasons: str) -> CheckedAnswer:
        """Answer with sentences of the documents; the reasons say why the model does not answer."""
        request = self._request(question)
        answer = await self._in_thread(lambda: self._library.answers.ask(request, use_model=False))
        if reasons:
            notices = [*answer.notices, *reasons[:-1], f"The answer is quoted from the documents. {reasons[-1]}"]
            answer.notices = list(dict.fromkeys(notices))
        return cast(CheckedAnswer, answer)

    def _with_tool_names(self, sources: Sequence[AnswerSource]) -> list[AnswerSource]:
        """Return sources with the real names of the library's tools; a model sees names that every model accepts."""
        names = {alias: name for name, alias in self._library.assistant_names().items()}
        if len(names) == 1:
            names[""] = next(iter(names.values()))  # results do not name the only tool
        return [
            source if source.server else replace(source, tool=names.get(source.tool, source.tool)) for source in sources
        ]

    async def _verify(self, question: str, reply: ChatReply) -> list[CheckedSentence]:
        sources = self._with_tool_names(reply.sources)
        text = clean_answer(reply.text, sources)
        sentences = await self._in_thread(
            lambda: self._library.answers.verify(text, sources, question=question, check_source=self._check_source)
        )
        return cast(list[CheckedSentence], sentences)

    def _check_source(self, source: AnswerSource) -> CitationState:
        """Return whether a passage is still as it was shown; another server is asked for its own."""
        if not source.server:
            return self._library.answers.check_source(source)
        return anyio.from_thread.run(self._check_elsewhere, source)

    async def _check_elsewhere(self, source: AnswerSource) -> CitationState:
        """Return the state of a passage of another server; if that cannot tell, it is as it was shown."""
        manager = self.tools.manager
        if manager is None or not manager.has_server(source.server):
            return "unchecked"
        tool = manager.find_tool(source.server, _VERIFY_TOOL)
        if tool is None or not tool.tool.read_only or not source.hash:
            return "same"
        arguments: dict[str, Any] = {"citation": source.citation, "hash": source.hash}
        if source.tool and "tool" in (tool.tool.input_schema.get("properties") or {}):
            arguments["tool"] = source.tool
        try:
            output = await manager.call_tool(tool.name, arguments)
        except BunkoError as error:
            _log.warning("The citation %s was not verified: %s", source.citation, error.message)
            return "unchecked"
        status = (output.structured or {}).get("status")
        return cast(CitationState, status) if status in _STATES else "same"

    @staticmethod
    async def _in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)


@asynccontextmanager
async def open_answerer(
    library: Library,
    model: ChatServer | None,
    *,
    names: Sequence[str] = (),
    refresh: bool = True,
    approve: Approve = refuse,
) -> AsyncIterator[Answerer]:
    """Open what answers the questions of the one who runs this process: the model, the library and the MCP servers.

    With `names`, only these tools of the library are searched, and no other server is used.
    """
    names = [library.resolve_tool(name).name for name in names]
    if names or model is None or not library.settings.mcp.enabled:
        opened = open_library_tools(library, names)
    else:
        opened = open_chat_tools(library, approve=approve, with_library=True)
    async with opened as tools:
        answerer = Answerer(library, model, tools, names=names, refresh=refresh)
        try:
            yield answerer
        finally:
            await answerer.close()


def format_call(name: str, arguments: Mapping[str, Any], *, max_chars: int = 200) -> str:
    """Return a call of a tool on one line: rag_add(url=https://…)."""
    values = ", ".join(f"{key}={' '.join(str(value).split())}" for key, value in arguments.items())
    return f"{name}({values if len(values) <= max_chars else f'{values[:max_chars]}…'})"
