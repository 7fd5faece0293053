"""Prepare a tool for an import, or say why it cannot be imported in a certain mode."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypedDict

from bunko.errors import LibraryError, LibraryMismatch
from bunko.library import catalog
from bunko.library.build_config import ToolConfig
from bunko.library.paths import LibraryPaths
from bunko.observer import Observer
from bunko.protocols import Store
from bunko.types import Tool
from bunko.types.tool_options import ToolOptions

ImportMode = Literal["new", "replace", "update"]


class ImportOptions(TypedDict, total=False):
    """How an import of tools runs."""

    workers: int | None  # the maximum number of processes; None: one for each core
    on: str  # where documents are prepared: local, ray, ray:auto or ray://HOST:PORT
    observer: Observer
    keep_going: bool  # report a tool that fails and continue with the next one


def prepare_tool(
    store: Store,
    config: ToolConfig,
    paths: LibraryPaths,
    name: str,
    mode: ImportMode,
    options_of: Callable[[Tool], ToolOptions],
) -> Tool:
    """Return the tool as it will be after the import; raise if it cannot be imported that way."""
    tool = catalog.get_tool(store, name)
    if mode == "new" and tool.imported_at:
        command, flags = f"bunko import -n {shlex.quote(tool.name)} --mode", paths.cli_flags()
        raise LibraryError(
            f"{tool.name} is already imported",
            hint=f"To import its changes:\n  {command} update{flags}\nTo rebuild it:\n  {command} replace{flags}",
        )
    result = replace(tool, options=options_of(tool))
    if (
        mode != "replace"
        and result.options != tool.options
        and config.holds_documents(tool)
        and config.new_chunker_settings(result)
        not in (config.new_chunker_settings(tool), config.chunker_settings(tool))
    ):
        raise LibraryMismatch(
            f"{tool.name} was imported with another chunker, and a tool cannot mix two chunkers",
            hint="Use --mode replace to rebuild it with the new one.",
        )
    return result
