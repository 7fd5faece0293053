"""Limit a library that lies among documents to the tool of that folder, and to no tokens.

Such a library may have come with the documents, from somebody else. If its other tools counted, whoever wrote it could
choose any folder of the user, and searches would return the files in it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from bunko.errors import SettingsError
from bunko.library.opening.paths import DOCUMENTS_TOOL, user_data_folder
from bunko.library.rights.user_secret import load_or_create_secret
from bunko.library.tools.catalog import SHADOW_PREFIX
from bunko.protocols import CacheStore, ToolStore
from bunko.types import Tool
from bunko.types.access import Token
from bunko.types.build_info import BuildInfo
from bunko.types.records import LoggedSearch

_NAMES = (DOCUMENTS_TOOL, SHADOW_PREFIX + DOCUMENTS_TOOL)


class DocsTools:
    """The tools of a library among documents: the tool of that folder, and the shadow tool of its rebuild."""

    def __init__(self, tools: ToolStore, docs_dir: Path) -> None:
        self._tools, self._docs_dir = tools, docs_dir
        self._last_bound: tuple[list[Tool], list[Tool]] = ([], [])

    def all(self) -> list[Tool]:
        """Return the tool of the folder, which reads that folder whatever the library says."""
        stored_tools = self._tools.all()
        last_tools, bound_tools = self._last_bound
        if stored_tools != last_tools:
            bound_tools = [self._bind(tool) for tool in stored_tools if tool.name in _NAMES]
            self._last_bound = (stored_tools, bound_tools)
        return list(bound_tools)

    def count_ignored(self) -> int:
        """Return how many tools are left out."""
        return sum(tool.name not in _NAMES for tool in self._tools.all())

    def put(self, tool: Tool) -> Tool:
        """Replace the tool of the folder; raise an error for any other."""
        return self._tools.put(self._check(tool))

    def ensure(self, tool: Tool) -> None:
        """Add the tool of the folder unless it exists; raise an error for any other."""
        self._tools.ensure(self._check(tool))

    def update_build_info(self, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""
        self._tools.update_build_info(tool_id, built=built, imported_at=imported_at)

    def rename(self, *tools: Tool) -> None:
        """Raise an error: the tool of the folder has a fixed name."""
        raise SettingsError(
            f"The tool of {self._docs_dir} cannot be renamed",
            hint="Add the folder to your own library under another name: bunko tool add.",
        )

    def claim(self, tool_id: int) -> None:
        """Record that this machine imports a tool."""
        self._tools.claim(tool_id)

    def is_local(self, tool_id: int) -> bool:
        """Return whether this machine imports a tool."""
        return self._tools.is_local(tool_id)

    def drop(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""
        self._tools.drop(tool_id)

    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of the shadow tool that a rebuild wrote, and delete that, atomically."""
        return self._tools.swap(tool, shadow)

    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store the tool of the folder with the documents of the shadow tool that an import wrote."""
        return self._tools.adopt_documents(self._check(tool), shadow)

    def _bind(self, tool: Tool) -> Tool:
        return replace(tool, kind="folder", source=str(self._docs_dir))

    def _check(self, tool: Tool) -> Tool:
        if tool.name not in _NAMES or (tool.name == DOCUMENTS_TOOL and self._bind(tool) != tool):
            raise SettingsError(
                f"The index of {self._docs_dir} is for that folder only",
                hint="Leave out --docs-dir to use your own library, or name one with --library.",
            )
        return tool


class DocsTokens:
    """The tokens of a library among documents: none, since whoever wrote it could give a token to themselves."""

    def all(self) -> list[Token]:
        """Return no tokens, whatever the library says."""
        return []

    def add(self, token: Token) -> bool:
        """Raise an error: such a library has no tokens."""
        raise SettingsError(
            "An index among documents has no tokens, because it may come from somebody else",
            hint="Add the folder to your own library, and leave out --docs-dir: bunko add DIR.",
        )

    def remove(self, name: str) -> bool:
        """Return False: there is no token."""
        return False

    def mark_used(self, name: str, used_at: str) -> bool:
        """Return True: there is no token."""
        return True

    def rename_tool(self, name: str, new_name: str) -> None:
        """Do nothing: there is no token."""

    def remove_tool(self, name: str) -> None:
        """Do nothing: there is no token."""


class DocsCache:
    """A cache whose keys depend on a secret of the user: an answer that came with the documents is never found."""

    def __init__(self, cache: CacheStore) -> None:
        self._cache = cache

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
        return self._cache.log_search(query, tool, searched_at, limit=limit)

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""
        return self._cache.logged_searches()

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""
        return self._cache.clear_searches()

    def rename_tool(self, name: str, new_name: str) -> None:
        """Make the logged searches of a tool those of its new name."""
        self._cache.rename_tool(name, new_name)

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        return self._cache.cached_answer(kind, self._own_key(key), now) if self._secret else None

    def cached_answers(self, kind: str, keys: Sequence[bytes], now: float) -> dict[bytes, str]:
        """Return the cached answers that have not expired, by key."""
        if not self._secret:
            return {}
        own_keys = {self._own_key(key): key for key in keys}
        return {own_keys[key]: text for key, text in self._cache.cached_answers(kind, list(own_keys), now).items()}

    def cache_answers(self, kind: str, answers: Mapping[bytes, tuple[str, float]], *, now: float, limit: int) -> None:
        """Cache answers, each with its expiry time, keeping `limit` per kind; wait for other processes."""
        if self._secret:
            own_answers = {self._own_key(key): answer for key, answer in answers.items()}
            self._cache.cache_answers(kind, own_answers, now=now, limit=limit)

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache a model answer, keeping `limit` per kind; return False if it was not cached."""
        return bool(self._secret) and self._cache.cache_answer(
            kind, self._own_key(key), value, now=now, expires_at=expires_at, limit=limit
        )

    @cached_property
    def _secret(self) -> bytes:
        try:
            return load_or_create_secret(user_data_folder() / "cache-key", hint="").encode()
        except SettingsError:  # without a secret nothing is cached
            return b""

    def _own_key(self, key: bytes) -> bytes:
        return hmac.digest(self._secret, key, "sha256")
