"""Rewrite queries and summarise answers with a chat model."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError
from bunko.protocols import Store
from bunko.runtime.activity import report_lookup
from bunko.settings import Settings
from bunko.types import Answer

if TYPE_CHECKING:
    from bunko.llm.client import ChatConnection, ChatModel
    from bunko.llm.rewrite import Rewriting
    from bunko.search.summaries import Summary

_log = logging.getLogger("bunko.library")

_MAX_CACHED_ANSWERS = 1000  # of one kind
_YEAR_SECONDS = 31_536_000.0  # a summary is keyed by its texts, so it does not become outdated
_NO_MODEL_MESSAGE = (
    "No chat model is set. Choose openrouter or openai, and set its API key, or lmstudio or ollama, for example: "
    "bunko config set chat.provider ollama"
)


class ChatModels:
    """The chat models that the settings name; none by default."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._chats: dict[str, ChatModel] = {}

    def rewrite_query(self, query: str, enabled: bool | None) -> tuple[Rewriting | None, str]:
        """Return other words for a query, None if it is not rewritten, and a notice; `enabled=None`: as is set."""
        settings = self._settings.rewrite
        if not (settings.enabled if enabled is None else enabled):
            return None, ""
        chat = self._get_chat("rewrite")
        if chat is None:
            return None, f"The query was not rewritten. {_NO_MODEL_MESSAGE}"
        from bunko.llm.rewrite import rewrite_query

        return rewrite_query(query, chat, _AnswerCache(self._store, "rewrite", settings.cache_seconds))

    def summarize_answer(self, answer: Answer) -> Summary:
        """Summarise the hits of an answer as the settings say; failures are added to the answer's notices."""
        from bunko.search.summaries import summarize_hits

        summary = summarize_hits(answer.hits, answer.searched_query)
        settings = self._settings.summarize
        if settings.provider == "rule" or not answer.hits:
            return summary
        chat = self._get_chat("summarize")
        if chat is None:
            notice = f"The summary was written by rules. {_NO_MODEL_MESSAGE}"
        else:
            from bunko.llm.summarize import summarize_with_model

            cache = _AnswerCache(self._store, "summary", _YEAR_SECONDS)
            summary, notice = summarize_with_model(
                summary, answer.hits, answer.query, chat, cache, max_chars=settings.max_input_chars
            )
        answer.notices += [notice] if notice else []
        return summary

    def ask_model(self) -> ChatModel | None:
        """Return the chat model that answers questions; None if no provider is set."""
        return self._get_chat("chat")

    def _get_chat(self, section: str) -> ChatModel | None:
        """Return the chat model of a settings section, built at first use; None if no provider is set."""
        if section not in self._chats:
            purpose = getattr(self._settings, section)
            connection = chat_connection(self._settings, purpose.model)
            if connection is None:
                return None
            from bunko.llm.client import ChatModel

            self._chats[section] = ChatModel(
                connection, timeout=purpose.timeout, max_tokens=purpose.max_tokens, temperature=purpose.temperature
            )
        return self._chats[section]


def chat_connection(settings: Settings, model: str | None = None) -> ChatConnection | None:
    """Return the chat model of the settings, or another model of the same provider; None if no provider is set."""
    from bunko.llm.client import PRESETS, ChatConnection

    chat, embedding = settings.chat, settings.embedding
    if chat.provider is None:
        return None
    secret = chat.api_key
    if not secret and not chat.base_url:  # a provider's key is sent to that provider only
        secret = getattr(embedding, f"{chat.provider}_api_key", "")
    return ChatConnection(
        chat.provider,
        model or chat.model or PRESETS[chat.provider].model,
        (chat.base_url or getattr(embedding, f"{chat.provider}_base_url")).rstrip("/"),
        secret,
        needs_key=not chat.base_url,
        preferences=_provider_preferences(settings) if chat.provider == "openrouter" else {},
    )


def _provider_preferences(settings: Settings) -> dict[str, Any]:
    chat = settings.chat
    preferences = {
        "order": list(chat.provider_order), "sort": chat.provider_sort,
        "allow_fallbacks": chat.allow_fallbacks, "data_collection": chat.data_collection,
    }  # fmt: skip
    return {name: value for name, value in preferences.items() if value not in (None, [])}


class _AnswerCache:
    """Cached answers of one kind in the library; nothing is cached if the library cannot be written."""

    def __init__(self, store: Store, kind: str, lifetime_seconds: float) -> None:
        self._store, self._kind, self._lifetime_seconds = store, kind, lifetime_seconds

    def get(self, key: bytes) -> str | None:
        if not self._lifetime_seconds:
            return None
        answer = self._store.cache.cached_answer(self._kind, key, time())
        report_lookup(self._kind, is_hit=answer is not None)
        return answer

    def put(self, key: bytes, value: str) -> None:
        timestamp = time()
        if self._lifetime_seconds:
            try:
                self._store.cache.cache_answer(
                    self._kind,
                    key,
                    value,
                    now=timestamp,
                    expires_at=timestamp + self._lifetime_seconds,
                    limit=_MAX_CACHED_ANSWERS,
                )
            except BunkoError as error:
                _log.warning("The answer of the chat model was not cached: %s", error.message)
