"""Tell how to enable tools that searches leave out."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.library import catalog
from bunko.library.build_config import ToolConfig
from bunko.protocols import Store
from bunko.types import Tool


def disabled_notices(store: Store, config: ToolConfig, searched: Sequence[Tool]) -> list[str]:
    """Return a notice for each disabled tool that is searched by its name, or one if no tool is enabled at all."""
    if not searched:
        hint = enable_hint(config, catalog.tools(store))
        return [f"No tool is enabled. {hint}"] if hint else []
    return [
        f"{tool.name} is disabled: assistants and searches over all tools leave it out. To enable it:"
        f" {config.enable_command(tool)}"
        for tool in searched
        if not tool.active
    ]


def enable_hint(config: ToolConfig, disabled: Sequence[Tool]) -> str:
    """Return how to enable the first of some tools; empty if there is none."""
    return f"To enable {disabled[0].name}: {config.enable_command(disabled[0])}" if disabled else ""
