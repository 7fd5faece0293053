"""Names, descriptions and folders in, the registry of tools out: what may be called how, and what a tool is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bunko.errors import SettingsError, SourceError, UnknownName
from bunko.protocols import Store
from bunko.timing import now
from bunko.types import Tool

# What tools of a library may not be called, because assistants know a tool of that name already.
RESERVED = frozenset(
    """
    search reindex verify job query_memos list_tags get_recent_memos rag_search rag_add rag_crawl rag_delete rag_stats
    """.split()
)
# Begins the name of what a rebuild is collected under; no tool's own name does.
SHADOW = "~"
LONGEST = 40
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")


def safe(name: str) -> str:
    """Return a name as every client accepts it: letters, digits, _ and -, at most 40; empty if nothing is left."""
    return _UNSAFE.sub("_", name).strip("_")[:LONGEST]


def tools(store: Store) -> list[Tool]:
    """Return all tools, by name, without what a rebuild is collecting."""
    return [tool for tool in store.tools() if not tool.name.startswith(SHADOW)]


def named(store: Store, name: str) -> Tool:
    """Return one tool, or say which there are."""
    known = tools(store)
    for tool in known:
        if tool.name == name:
            return tool
    names = ", ".join(tool.name for tool in known) or "none yet"
    raise UnknownName(f"There is no tool called {name!r}", hint=f"Tools of this library: {names}.")


def add(
    store: Store,
    name: str,
    description: str,
    source: Path,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Tool:
    """Register a folder under a name; nothing is imported yet."""
    _check_name(store, name)
    options: dict[str, Any] = {}
    if include:
        options["include"] = list(include)
    if exclude:
        options["exclude"] = list(exclude)
    made = Tool(name, "folder", _described(description), str(_folder(source)), created_at=now(), options=options)
    return store.put_tool(made)


def update(store: Store, name: str, *, description: str | None = None, source: Path | None = None) -> Tool:
    """Change a tool's description or folder; what is indexed follows at the next import."""
    tool = named(store, name)
    if description is not None:
        tool = replace(tool, description=_described(description))
    if source is not None:
        tool = replace(tool, source=str(_folder(source)))
    return store.put_tool(tool)


def activate(store: Store, name: str, *, active: bool) -> Tool:
    """Show a tool to assistants, or hide it; its index stays."""
    return store.put_tool(replace(named(store, name), active=active))


def delete(store: Store, name: str) -> None:
    """Remove a tool and its index; the folder is left alone."""
    tool = named(store, name)
    for one in store.tools():
        if one.name in (tool.name, SHADOW + tool.name):
            store.drop_tool(one.id)


def _check_name(store: Store, name: str) -> None:
    plain = safe(name)
    if not plain or name.startswith(SHADOW):
        raise SettingsError(
            f"{name!r} cannot be a tool's name",
            hint=f"Use letters, digits, _ and -, at most {LONGEST}: assistants accept nothing else.",
        )
    if plain.lower() in RESERVED:
        raise SettingsError(f"{name!r} is the name of a tool of bunko itself", hint="Choose another name.")
    for tool in tools(store):
        if tool.name == name:
            raise SettingsError(f"There is a tool {name!r} already", hint="Change it with: bunko tool update.")
        if safe(tool.name).lower() == plain.lower():
            raise SettingsError(
                f"{name!r} and {tool.name!r} would both be {plain!r} to an assistant", hint="Choose another name."
            )


def _described(description: str) -> str:
    text = " ".join(description.split())
    if not text:
        raise SettingsError(
            "A tool needs a description", hint="Say what the documents are about: assistants choose tools by it."
        )
    return text


def _folder(source: Path) -> Path:
    folder = source.expanduser()
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}", hint="Check the path given with --source.")
    return folder.resolve()
