"""Tell how to enable tools that searches leave out."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.errors import UnknownName
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig
from bunko.library.tools.suggested_commands import enable_command
from bunko.protocols import Store
from bunko.sources import find_kind
from bunko.types import Tool


def disabled_notices(store: Store, config: ToolConfig, searched: Sequence[Tool]) -> list[str]:
    """Return a notice for each disabled tool that is searched by its name, or one if no tool is enabled at all."""
    if not searched:
        hint = _enable_hint(config, catalog.tools(store))
        return [f"No tool is enabled. {hint}"] if hint else []
    return [
        f"{tool.name} is disabled: assistants and searches over all tools leave it out. To enable it:"
        f" {enable_command(config.paths, tool)}"
        for tool in searched
        if not tool.active
    ]


def no_tool_error(store: Store, config: ToolConfig, kinds: Sequence[str]) -> UnknownName:
    """Return the error for a search of some kinds of which no tool is active."""
    kind = find_kind(kinds[0])
    import_hint = f"Import one with: {kind.import_command if kind else 'bunko import'}."
    other_library = " If another library has one, name it with --library DIR." if config.is_default_library else ""
    disabled = [tool for tool in catalog.tools(store) if tool.kind in kinds]
    return UnknownName(
        f"This library has no active tool of kind {' or '.join(kinds)}",
        hint=_enable_hint(config, disabled) or import_hint + other_library,
    )


def _enable_hint(config: ToolConfig, disabled: Sequence[Tool]) -> str:
    """Return how to enable the first of some tools; empty if there is none."""
    return f"To enable {disabled[0].name}: {enable_command(config.paths, disabled[0])}" if disabled else ""
