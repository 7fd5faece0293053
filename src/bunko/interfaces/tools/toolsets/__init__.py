"""Toolsets: one module each, named as in `--toolsets`, that declares its tools as `TOOLSET`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from bunko.errors import SettingsError
from bunko.interfaces.tools.jobs import JOB_TOOL_NAME
from bunko.interfaces.tools.tool import LIST_TOOL_NAME, READ_TOOL_NAME, ToolDefinition
from bunko.library.tools.assistant_names import choose_alias

if TYPE_CHECKING:
    from bunko.library.access import LibraryAccess
    from bunko.library.library import Library
    from bunko.settings import Settings
    from bunko.types import Tool as LibraryTool

# Found without importing them: most commands need none of them.
ALL_TOOLSETS = "all"
TOOLSET_NAMES: tuple[str, ...] = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@dataclass(frozen=True, slots=True)
class ToolsetContext:
    """What the tools of a toolset depend on."""

    subject: str  # what is searched, in words
    settings: Settings | None  # None while the library is not open
    library_tools: Sequence[LibraryTool]  # the active ones, for the toolset `tools`
    tool_choices: Mapping[str, str]  # their names, by the ones that assistants see
    searched_kinds: Sequence[str]  # kinds of documents that other selected toolsets search
    exceeds_schema_budget: Callable[[Sequence[ToolDefinition]], bool]


@dataclass(frozen=True, slots=True)
class Toolset:
    """A group of tools that a server can offer."""

    name: str
    description: str
    tool_names: tuple[str, ...]  # of all tools that do not depend on the library
    build_tools: Callable[[ToolsetContext], list[ToolDefinition]]
    section: str = ""  # of the kinds of documents that its tools are about; empty: all of them


def parse_toolsets(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of toolsets as given on a command line or in the settings, or raise an error."""
    names = [name.strip() for text in names for name in text.split(",") if name.strip()]
    for name in names:
        if name not in (ALL_TOOLSETS, *TOOLSET_NAMES):
            known = ", ".join((*TOOLSET_NAMES, ALL_TOOLSETS))
            raise SettingsError(f"Unknown toolset {name[:80]!r}", hint=f"Choose from: {known}.")
    return TOOLSET_NAMES if ALL_TOOLSETS in names else tuple(dict.fromkeys(names))


def load_toolset(name: str) -> Toolset:
    """Return the toolset of that name."""
    toolset: Toolset = import_module(f"{__name__}.{name}").TOOLSET
    return toolset


@cache
def reserved_names() -> frozenset[str]:
    """Return the names that a library's tools may not have, because toolsets have tools of these names."""
    names = {JOB_TOOL_NAME, READ_TOOL_NAME, LIST_TOOL_NAME}
    return frozenset(names.union(*(load_toolset(name).tool_names for name in TOOLSET_NAMES)))


def is_reserved(name: str) -> bool:
    """Return whether a tool of a library may not have this name, because a built-in tool has it."""
    return name.lower() in reserved_names()


def check_tool_name(library: Library | LibraryAccess, name: str) -> None:
    """Raise an error if a new tool of the library would have the name of a built-in tool."""
    tools = library.tools()
    if any(tool.name == name for tool in tools):
        return
    alias = choose_alias(name, tools)
    if alias and is_reserved(alias):
        raise SettingsError(
            f"Assistants would see {name!r} as {alias}, the name of a built-in tool", hint="Choose another name."
        )
    if is_reserved(name):
        raise SettingsError(f"{name!r} is the name of a built-in tool", hint="Choose another name.")
