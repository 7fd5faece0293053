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
    from bunko.llm.client import Chat
    from bunko.search.summaries import Summary

_log = logging.getLogger("bunko.library")

_MOST_KEPT = 1000  # answers of one kind
_YEAR = 31_536_000.0  # seconds; a summary is as true as the texts that are part of its name
_NOBODY = (
    "No chat model is set. Set chat.provider to openrouter, openai, lmstudio or ollama, and the key it wants: see "
    "docs/memos.md."
)


class Telling:
    """Whom the settings let a search ask; nobody, unless they name somebody."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._chats: dict[str, Chat] = {}

    def rewritten(self, query: str, asked: bool | None) -> tuple[str, str]:
        """Return better words for a query, or none, and what to tell whoever asked; not said: as the settings say."""
        own = self._settings.rewrite
        if not (own.enabled if asked is None else asked):
            return "", ""
        chat = self._chat("rewrite")
        if chat is None:
            return "", f"The query was searched as it is. {_NOBODY}"
        from bunko.llm.rewrite import rewritten

        return rewritten(query, chat, _Kept(self._store, "rewrite", own.cache_seconds))

    def summary(self, answer: Answer) -> Summary:
        """Return what an answer's hits say together, as the settings say; what went wrong is among its notices."""
        from bunko.search.summaries import summary

        found = summary(answer.hits, answer.searched)
        own = self._settings.summarize
        if own.provider == "rule" or not answer.hits:
            return found
        chat = self._chat("summarize")
        if chat is None:
            notice = f"The summary was made by rules. {_NOBODY}"
        else:
            from bunko.llm.summarize import retold

            kept = _Kept(self._store, "summary", _YEAR)
            found, notice = retold(found, answer.hits, answer.query, chat, kept, most=own.max_input_chars)
        answer.notices += [notice] if notice else []
        return found

    def _chat(self, section: str) -> Chat | None:
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
                preferences=self._preferences() if who.provider == "openrouter" else {},
            )
        return self._chats[section]

    def _preferences(self) -> dict[str, Any]:
        who = self._settings.chat
        found = {
            "order": list(who.provider_order), "sort": who.provider_sort,
            "allow_fallbacks": who.allow_fallbacks, "data_collection": who.data_collection,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value not in (None, [])}


class _Kept:
    """Answers of one kind in the library, each for so many seconds; where it cannot be written, none are kept."""

    def __init__(self, store: Store, kind: str, seconds: float) -> None:
        self._store, self._kind, self._seconds = store, kind, seconds

    def get(self, key: bytes) -> str | None:
        return self._store.answer(self._kind, key, time()) if self._seconds else None

    def put(self, key: bytes, value: str) -> None:
        at = time()
        if self._seconds:
            try:
                self._store.put_answer(self._kind, key, value, at=at, until=at + self._seconds, most=_MOST_KEPT)
            except BunkoError as error:
                _log.warning("What the chat model said was not kept: %s", error.message)
