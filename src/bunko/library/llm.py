"""The settings and a library in, what a chat model adds to its searches out: better words, and summaries."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError
from bunko.protocols import Store
from bunko.settings import Settings
from bunko.types import Answer

if TYPE_CHECKING:
    from bunko.llm.client import ChatModel
    from bunko.search.summaries import Summary

_log = logging.getLogger("bunko.library")

_MAX_CACHED_ANSWERS = 1000  # answers of one kind
_YEAR_SECONDS = 31_536_000.0  # seconds; a summary is as true as the texts that are part of its name
_NO_MODEL_MESSAGE = (
    "No chat model is set. Set chat.provider to openrouter, openai, lmstudio or ollama, and the key it wants: see "
    "docs/memos.md."
)


class ChatModels:
    """Whom the settings let a search ask; nobody, unless they name somebody."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._chats: dict[str, ChatModel] = {}

    def rewrite_query(self, query: str, enabled: bool | None) -> tuple[str, str]:
        """Return better words for a query, or none, and what to tell whoever asked; not said: as the settings say."""
        own = self._settings.rewrite
        if not (own.enabled if enabled is None else enabled):
            return "", ""
        chat = self._get_chat("rewrite")
        if chat is None:
            return "", f"The query was searched as it is. {_NO_MODEL_MESSAGE}"
        from bunko.llm.rewrite import rewrite_query

        return rewrite_query(query, chat, _AnswerCache(self._store, "rewrite", own.cache_seconds))

    def summarize_answer(self, answer: Answer) -> Summary:
        """Return what an answer's hits say together, as the settings say; what went wrong is among its notices."""
        from bunko.search.summaries import summarize_hits

        found = summarize_hits(answer.hits, answer.searched_query)
        own = self._settings.summarize
        if own.provider == "rule" or not answer.hits:
            return found
        chat = self._get_chat("summarize")
        if chat is None:
            notice = f"The summary was made by rules. {_NO_MODEL_MESSAGE}"
        else:
            from bunko.llm.summarize import summarize_with_model

            kept = _AnswerCache(self._store, "summary", _YEAR_SECONDS)
            found, notice = summarize_with_model(
                found, answer.hits, answer.query, chat, kept, max_chars=own.max_input_chars
            )
        answer.notices += [notice] if notice else []
        return found

    def _get_chat(self, section: str) -> ChatModel | None:
        """Return the chat model for one purpose, made at its first use."""
        who, own, embedding = self._settings.chat, getattr(self._settings, section), self._settings.embedding
        if who.provider is None:
            return None
        if section not in self._chats:
            from bunko.llm.client import build

            key = who.api_key
            if not key and not who.base_url:  # a provider's key is for that provider
                key = getattr(embedding, f"{who.provider}_api_key", "")
            self._chats[section] = build(
                who.provider,
                address=who.base_url or getattr(embedding, f"{who.provider}_base_url"),
                model=own.model or who.model,
                api_key=key,
                timeout=own.timeout,
                max_tokens=own.max_tokens,
                temperature=own.temperature,
                preferences=self._provider_preferences() if who.provider == "openrouter" else {},
            )
        return self._chats[section]

    def _provider_preferences(self) -> dict[str, Any]:
        who = self._settings.chat
        found = {
            "order": list(who.provider_order), "sort": who.provider_sort,
            "allow_fallbacks": who.allow_fallbacks, "data_collection": who.data_collection,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value not in (None, [])}


class _AnswerCache:
    """Answers of one kind in the library, each for so many seconds; where it cannot be written, none are kept."""

    def __init__(self, store: Store, kind: str, lifetime_seconds: float) -> None:
        self._store, self._kind, self._lifetime_seconds = store, kind, lifetime_seconds

    def get(self, key: bytes) -> str | None:
        return self._store.cached_answer(self._kind, key, time()) if self._lifetime_seconds else None

    def put(self, key: bytes, value: str) -> None:
        now = time()
        if self._lifetime_seconds:
            try:
                self._store.cache_answer(
                    self._kind, key, value, now=now, expires_at=now + self._lifetime_seconds, limit=_MAX_CACHED_ANSWERS
                )
            except BunkoError as error:
                _log.warning("What the chat model said was not kept: %s", error.message)
