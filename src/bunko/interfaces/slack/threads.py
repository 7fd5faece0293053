"""Answer the questions of Slack's threads; each thread is a conversation of its own."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

from bunko.interfaces.chat.answering import Answerer, ChatModelEndpoint
from bunko.interfaces.chat.conversation import SEARCH_TOOLS, Exchange
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.setup import ChatTools
from bunko.library.library import Library
from bunko.types.answers import CheckedAnswer

_log = logging.getLogger("bunko.slack")

_MAX_CONVERSATIONS = 200  # kept in memory; others are restored from the outbox


class ThreadAnswers:
    """Answers questions, thread by thread, with one model and the same tools for all."""

    def __init__(self, library: Library, model: ChatModelEndpoint | None, tools: ChatTools) -> None:
        self._library, self._model, self._tools = library, model, tools
        self._answerers: OrderedDict[str, Answerer] = OrderedDict()

    async def answer(self, question: str, thread: str, history: Sequence[tuple[str, str]]) -> CheckedAnswer | None:
        """Return the verified answer; None if there is neither a model nor a library to search.

        `history` has the questions and answers of the thread, without citations, for a bot that was restarted.
        """
        can_search = await self._can_search()
        if self._model is None and not can_search:
            return None
        answer = await self._answerer(thread, history).ask(question)
        if not answer.model and not can_search:  # the tools are off, so that nothing may be quoted either
            for notice in answer.notices:
                _log.warning("%s", notice)
            return None
        return answer

    async def _can_search(self) -> bool:
        manager = self._tools.manager
        return manager is not None and any(tool.tool.name in SEARCH_TOOLS for tool in await manager.tools())

    def _answerer(self, thread: str, history: Sequence[tuple[str, str]]) -> Answerer:
        answerer = self._answerers.pop(thread, None)
        if answerer is None:
            # Without tools, a model still answers, and every statement of it is marked.
            tools = self._tools if self._tools.manager is not None else ChatTools(MCPManager([]))
            # Anyone in Slack may ask.
            answerer = Answerer(self._library, self._model, tools, may_change=False)
            if answerer.conversation is not None:
                answerer.conversation.restore([Exchange(past, answer, 1) for past, answer in history], ())
        self._answerers[thread] = answerer
        while len(self._answerers) > _MAX_CONVERSATIONS:
            self._answerers.popitem(last=False)
        return answerer
