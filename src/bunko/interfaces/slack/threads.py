"""Answer the questions of Slack's threads; each thread is a conversation of its own."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

from bunko.interfaces.chat.answering import Answerer, ChatModelEndpoint
from bunko.interfaces.chat.conversation import SEARCH_TOOLS, Exchange, may_be_called
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.servers import CURRENT_CALLER
from bunko.interfaces.chat.setup import ChatTools
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.rights import Sender
from bunko.library.library import Library
from bunko.llm.rewrite import NOT_REWRITTEN_NOTICE
from bunko.types.access import Rights
from bunko.types.answers import CheckedAnswer

_log = logging.getLogger("bunko.slack")

_MAX_CONVERSATIONS = 200  # kept in memory; others are restored from the outbox


class ThreadAnswers:
    """Answers questions, thread by thread, with one model and what may be read in the channel."""

    def __init__(self, library: Library, model: ChatModelEndpoint | None, tools: ChatTools) -> None:
        self._library, self._model, self._tools = library, model, tools
        self._messages = Messages.from_settings(library.settings)
        self._answerers: OrderedDict[str, Answerer] = OrderedDict()

    async def answer(
        self, question: str, thread: str, sender: Sender, history: Sequence[tuple[str, str]]
    ) -> CheckedAnswer | None:
        """Return the verified answer; None if there is neither a model nor a library to search.

        `history` has the questions and answers of the thread, without citations, for a bot that was restarted.
        """
        caller = sender.caller(self._library.settings.slack.tools)
        CURRENT_CALLER.set(caller)
        tools = self._tools.limited_to(caller.rights)
        can_search = await _can_search(tools)
        if self._model is None and not can_search:
            return None
        answer = await self._answerer(thread, caller.rights, tools, history).ask(question)
        if self._model is not None and not answer.model:
            for notice in answer.notices:
                _log.warning("%s", notice)
            # Everyone in Slack reads this: no address, and nothing of what the server says about the key.
            answer.notices = [self._messages.say("model_failed", model=self._model.label)]
        for notice in [notice for notice in answer.notices if notice.startswith(NOT_REWRITTEN_NOTICE)]:
            _log.warning("%s", notice)  # for the same reason
            answer.notices.remove(notice)
        if not answer.model and not can_search:  # the tools are off, so that nothing may be quoted either
            return None
        return answer

    async def warn_about_tools(self) -> None:
        """Log which servers have tools, but none that the model may call; most servers do not say which only read."""
        if self._model is None or self._tools.manager is None:
            return
        allowed_tools = self._library.settings.slack.allowed_tools
        servers: dict[str, bool] = {}
        for tool in await self._tools.manager.tools():
            servers[tool.server] = servers.get(tool.server, False) or may_be_called(tool, allowed_tools)
        for server in [server for server, has_callable in servers.items() if not has_callable]:
            _log.warning(
                "The model may call no tool of the MCP server %s: none says that it only reads. "
                "Name those that everyone in Slack may use in slack.allowed_tools.",
                server,
            )

    def _answerer(self, thread: str, rights: Rights, tools: ChatTools, history: Sequence[tuple[str, str]]) -> Answerer:
        answerer = self._answerers.pop(thread, None)
        if answerer is None:
            # Without tools, a model still answers, and every statement of it is marked.
            tools = tools if tools.manager is not None else ChatTools(MCPManager([]))
            library = self._library if rights.writes_all else self._library.limited_to(rights.can_read)
            # Anyone in Slack may ask, so that chat.allowed_tools does not hold here.
            allowed_tools = self._library.settings.slack.allowed_tools
            answerer = Answerer(library, self._model, tools, allowed_tools=allowed_tools)
            if answerer.conversation is not None:
                answerer.conversation.restore([Exchange(past, answer, 1) for past, answer in history], ())
        self._answerers[thread] = answerer
        while len(self._answerers) > _MAX_CONVERSATIONS:
            self._answerers.popitem(last=False)
        return answerer


async def _can_search(tools: ChatTools) -> bool:
    manager = tools.manager
    return manager is not None and any(tool.tool.name in SEARCH_TOOLS for tool in await manager.tools())
