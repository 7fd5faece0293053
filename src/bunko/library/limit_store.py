"""Limit a store to the tools that somebody may read."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import cast

from bunko.protocols import Store, ToolStore
from bunko.types import Tool


def limit_store(store: Store, can_read: Callable[[str], bool]) -> Store:
    """Return a store in which only some tools exist, for whatever reads; to write, use the whole store."""
    limited = copy(store)
    # Only what a search needs: a limited list must never decide which tools to write or delete.
    limited.tools = cast("ToolStore", _ReadableTools(store.tools, can_read))
    return limited


class _ReadableTools:
    """The tools of a library that somebody may read."""

    def __init__(self, tools: ToolStore, can_read: Callable[[str], bool]) -> None:
        self._tools, self._can_read = tools, can_read

    def all(self) -> list[Tool]:
        """Return these tools, sorted by name."""
        return [tool for tool in self._tools.all() if self._can_read(tool.name)]
