"""Answer the questions of a Slack thread: with the chat model of the settings, or with quotes without one."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import anyio.to_thread

from bunko.errors import BunkoError, UnknownName
from bunko.interfaces.chat.conversation import ChatModelServer, Conversation, Exchange
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.setup import chat_limits
from bunko.library.library import Library
from bunko.llm.ask import clean_answer
from bunko.remote import RemoteEndpoint, RemoteFailure, explain_failure
from bunko.search.request import SearchRequest
from bunko.search.verify_answer import verify_sentences
from bunko.types.answers import AnswerSource, CheckedAnswer, CitationState

_log = logging.getLogger("bunko.slack")

_MAX_CONVERSATIONS = 200  # kept in memory; others are restored from the library
_SEARCH_TOOLS = ("search", "rag_search")


class ChatModelEndpoint(ChatModelServer, RemoteEndpoint, Protocol):
    """A chat model whose failures can be explained."""


class Answerer:
    """Answers questions, thread by thread; each thread remembers its own questions."""

    def __init__(
        self, library: Library, model: ChatModelEndpoint | None, manager: MCPManager | None, *, is_local: bool
    ) -> None:
        self._library, self._model, self._manager = library, model, manager
        self._is_local = is_local  # all tools are those of this library
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()

    async def can_search(self) -> bool:
        """Return whether some server searches a library."""
        if self._manager is None:
            return False
        return any(tool.tool.name in _SEARCH_TOOLS for tool in await self._manager.tools())

    async def answer(self, question: str, thread: str, history: Sequence[tuple[str, str]]) -> CheckedAnswer | None:
        """Return the verified answer; None if there is neither a model nor a library to search.

        `history` has the questions and answers of the thread, without citations, for a bot that was restarted.
        """
        if self._model is not None:
            try:
                return await self._converse(self._model, question, thread, history)
            except RemoteFailure as failure:
                message, hint = explain_failure(self._model, failure)
                _log.warning("%s. %s", message, hint)
        if not await self.can_search():
            return None
        # Asks the model once more, for an answer from one search; without a model, it quotes.
        return await anyio.to_thread.run_sync(
            lambda: self._library.answers.ask(SearchRequest(question)), abandon_on_cancel=True
        )

    async def _converse(
        self, model: ChatModelServer, question: str, thread: str, history: Sequence[tuple[str, str]]
    ) -> CheckedAnswer:
        conversation = self._conversation(model, thread, history)
        reply = await conversation.ask(question)
        text = clean_answer(reply.text, reply.sources)
        sentences = await anyio.to_thread.run_sync(
            lambda: verify_sentences(text, reply.sources, self._check_source, question=question),
            abandon_on_cancel=True,
        )
        return CheckedAnswer(
            question, sentences, reply.sources, model=model.label, notices=reply.notices,
            prompt_tokens=reply.input_tokens, answer_tokens=reply.output_tokens,
        )  # fmt: skip

    def _conversation(self, model: ChatModelServer, thread: str, history: Sequence[tuple[str, str]]) -> Conversation:
        conversation = self._conversations.pop(thread, None)
        if conversation is None:
            # No tool with side effects, whatever chat.allowed_tools says: anyone in Slack may ask.
            conversation = Conversation(
                model, self._manager or MCPManager([]), limits=chat_limits(self._library.settings)
            )
            conversation.exchanges = [Exchange(past, answer, 1) for past, answer in history]
        self._conversations[thread] = conversation
        while len(self._conversations) > _MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)
        return conversation

    def _check_source(self, source: AnswerSource) -> CitationState:
        """Return whether a passage is still as it was shown; a passage of another server is as it was shown."""
        unknown_state: CitationState = "deleted" if self._is_local else "same"
        if not source.hash:
            return "changed" if self._is_local else "same"
        for tool in dict.fromkeys((source.tool or None, None)):
            try:
                status = self._library.verify_citation(source.citation, source.hash, tool=tool).status
            except UnknownName:  # the name that assistants see, or a tool of another server
                continue
            except BunkoError as error:
                _log.warning("The citation %s was not verified: %s", source.citation, error.message)
                return "changed"
            return unknown_state if status == "deleted" else status
        return unknown_state
