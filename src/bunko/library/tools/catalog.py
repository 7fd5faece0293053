"""Add, find, change and delete the tools of a library."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bunko.errors import IndexFailure, SettingsError, SourceError, UnknownName, name_taken_error
from bunko.library.tools.assistant_names import (
    MAX_STORED_NAME_LENGTH,
    assistant_name,
    choose_alias,
    clean_name,
    is_safe,
    shown_name,
)
from bunko.protocols import Index, Store
from bunko.runtime.timing import now
from bunko.sources import find_kind
from bunko.text.labels import clean_label
from bunko.types import Tool
from bunko.types.build_info import NOT_BUILT
from bunko.types.tool_options import NO_OPTIONS, Extract, ToolOptions

_log = logging.getLogger("bunko.library")

# Prefix of the shadow tool that a rebuild writes to; the names of users' tools never start with it.
SHADOW_PREFIX = "~"
# Assistants read every description with every call; `bunko tool check` warns of shorter ones already.
MAX_DESCRIPTION_LENGTH = 1000
ToolNames = str | Sequence[str] | None  # of one tool, of several, or of all active ones
ADDRESS_SCHEME = "bunko"  # of a document as a resource: bunko://tool/path


def tools(store: Store) -> list[Tool]:
    """Return all tools sorted by name, without the shadow tools of rebuilds."""
    return [tool for tool in store.tools.all() if not tool.name.startswith(SHADOW_PREFIX)]


def get_tool(store: Store, name: str) -> Tool:
    """Return the tool of a name, its own or the one that assistants see, or raise an error that lists all tools."""
    return _get_tool(tools(store), name)


def _get_tool(candidates: Sequence[Tool], name: str) -> Tool:
    if tool := find_tool(candidates, name):
        return tool
    raise unknown_tool_error(name, _list_names(candidates))


def unknown_tool_error(name: str, names: str) -> UnknownName:
    """Return the error for a name that no tool has."""
    return UnknownName(f"There is no tool called {name!r}", hint=f"Tools of this library: {names}.")


def find_tool(candidates: Sequence[Tool], name: str) -> Tool | None:
    """Return the tool of that name, else the one that assistants see by that name."""
    by_name = next((tool for tool in candidates if tool.name == name), None)
    return by_name or next((tool for tool in candidates if assistant_name(tool) == name), None)


def _list_names(candidates: Sequence[Tool]) -> str:
    return ", ".join(map(shown_name, candidates)) or "none yet"


def select_tools(store: Store, names: ToolNames) -> list[Tool]:
    """Return the tools to search: those of a name or of several, or all active ones."""
    return select_from(tools(store), names)


def select_from(candidates: Sequence[Tool], names: ToolNames) -> list[Tool]:
    """Return those of these tools that are named, or without names the active ones."""
    if names is None:
        return [tool for tool in candidates if tool.active]
    selected = [_get_tool(candidates, name) for name in ([names] if isinstance(names, str) else names)]
    return list({tool.id: tool for tool in selected}.values())


def local_tools(store: Store) -> list[Tool]:
    """Return the active tools that this machine imports: all but those of other machines with the same server."""
    return [tool for tool in tools(store) if tool.active and store.tools.is_local(tool.id)]


def resolve_tool(store: Store, name: str | None) -> Tool:
    """Return the tool of that name, or the only tool if no name is given."""
    if name is not None:
        return get_tool(store, name)
    candidates = tools(store)
    if len(candidates) != 1:
        names = _list_names(candidates)
        raise UnknownName("No tool was named", hint=f"Choose one with -n. Tools of this library: {names}.")
    return candidates[0]


def _with_alias(tool: Tool, existing_tools: Sequence[Tool]) -> Tool:
    return replace(tool, options=replace(tool.options, alias=choose_alias(tool.name, existing_tools)))


class Tools:
    """The tools of a library, to list, add and change; nothing is imported here."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return tools(self._store)

    def get(self, name: str) -> Tool:
        """Return the tool of a name, its own or the one that assistants see, or raise an error that lists all tools."""
        return _get_tool(self(), name)

    def add(
        self,
        name: str,
        description: str,
        source: Path | None,
        *,
        kind: str = "folder",
        options: ToolOptions = NO_OPTIONS,
    ) -> Tool:
        """Register a folder or file as a tool, or a tool of web pages, which has no source; nothing is imported yet."""
        existing_tools = self()
        _check_name(existing_tools, name)
        _check_patterns((*options.include, *options.exclude))
        tool = Tool(name, kind, _check_description(description), _resolve_source(kind, source), created_at=now())
        return self._store.tools.put(_with_alias(replace(tool, options=options), existing_tools))

    def copy(self, tool: Tool) -> Tool:
        """Register a copy of another library's tool; nothing is imported yet."""
        existing_tools = self()
        _check_name(existing_tools, tool.name)
        tool = _with_alias(tool, existing_tools)
        new = replace(tool, id=0, created_at=now(), imported_at="", checked_at="", built=NOT_BUILT)
        return self._store.tools.put(new)

    def update(
        self,
        name: str,
        *,
        description: str | None = None,
        source: Path | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        extract: Extract | None = None,
    ) -> Tool:
        """Change a tool's description, source or options; the next import applies them to the index."""
        tool = self.get(name)
        _check_patterns((*(include or ()), *(exclude or ())))
        options = tool.options
        options = replace(
            options,
            include=options.include if include is None else tuple(include),
            exclude=options.exclude if exclude is None else tuple(exclude),
            extract=extract or options.extract,
        )
        tool = replace(tool, options=options)
        if description is not None:
            tool = replace(tool, description=_check_description(description))
        if source is not None:
            tool = replace(tool, source=_resolve_source(tool.kind, source))
        return self._store.tools.put(tool)

    def set_active(self, name: str, *, active: bool) -> Tool:
        """Show a tool to assistants or hide it; its index stays."""
        return self._store.tools.put(replace(self.get(name), active=active))


def adapt_foreign_tool(
    store: Store,
    tool: Tool,
    *,
    name: str,
    description: str | None,
    source: Path | None,
    replace_existing: bool,
) -> Tool:
    """Return another library's tool as it will be registered here; it follows no folder unless `source` is given.

    A search imports the files of a tool's folder, so a path written by somebody else must not choose that folder.
    """
    existing_tools = tools(store)
    existing = next((candidate for candidate in existing_tools if candidate.name == name), None)
    if existing is None:
        _check_name(existing_tools, name)
    elif not replace_existing:
        raise SettingsError(
            f"A tool named {name!r} already exists", hint="Replace it with --replace, or choose another name with -n."
        )
    alias = choose_alias(name, existing_tools) if existing is None else existing.options.alias
    return replace(
        tool,
        name=name,
        options=replace(tool.options, alias=alias),
        description=_check_description(tool.description if description is None else description),
        source="" if source is None else str(_resolve_folder(source)),
        active=tool.active if existing is None else existing.active,
        created_at=now(),
    )


def rename_tool(store: Store, name: str, new_name: str) -> Tool:
    """Give a tool and its unfinished rebuild another name; documents, vectors and index stay as they are."""
    tool = get_tool(store, name)
    other_tools = [other for other in tools(store) if other.id != tool.id]
    if any(other.name == new_name for other in other_tools):
        raise name_taken_error(new_name)
    _check_name(other_tools, new_name)
    renamed = _with_alias(replace(tool, name=new_name), other_tools)
    shadows = [
        replace(shadow, name=SHADOW_PREFIX + new_name)
        for shadow in store.tools.all()
        if shadow.name == SHADOW_PREFIX + tool.name
    ]
    store.tools.rename(renamed, *shadows)
    return renamed


def delete_tool(store: Store, name: str) -> None:
    """Delete a tool and its index; its folder is not touched."""
    tool = get_tool(store, name)
    for candidate in store.tools.all():
        if candidate.name in (tool.name, SHADOW_PREFIX + tool.name):
            store.tools.drop(candidate.id)


def drop_index(index: Index, tool: Tool) -> None:
    """Delete what an index holds of a deleted tool; a server that is away keeps its copy, which nobody searches."""
    try:
        index.drop(tool.id)
    except IndexFailure as failure:
        _log.warning("The index still holds %s: %s", tool.name, failure.message)


def check_new_name(store: Store, name: str) -> None:
    """Raise an error if a new tool may not have this name."""
    _check_name(tools(store), name)


def _check_name(existing_tools: Sequence[Tool], name: str) -> None:
    if name != clean_name(name):
        raise SettingsError(
            f"{clean_name(name)!r} was given with line breaks, invisible characters or more than"
            f" {MAX_STORED_NAME_LENGTH} characters",
            hint="Choose another name.",
        )
    # An emoji is a name too.
    has_letter = any(char.isalnum() or unicodedata.category(char) == "So" for char in name)
    if name.startswith(SHADOW_PREFIX) or not has_letter:
        raise SettingsError(
            f"{name!r} cannot be a tool's name", hint="Use at least one letter or digit, and no ~ at the beginning."
        )
    for tool in existing_tools:
        if tool.name == name:
            raise SettingsError(f"A tool named {name!r} already exists", hint="Change it with: bunko tool update.")
        if tool.name.lower() == name.lower():
            raise SettingsError(
                f"{name!r} and {tool.name!r} differ only in case, which assistants may ignore",
                hint="Choose another name.",
            )
        if is_safe(name) and assistant_name(tool).lower() == name.lower():
            raise SettingsError(
                f"{name!r} and {tool.name!r} would look the same to an assistant: {assistant_name(tool)}",
                hint="Choose another name.",
            )


def clean_description(description: str) -> str:
    """Return a description as assistants may see it, whoever wrote it."""
    return clean_label(description, MAX_DESCRIPTION_LENGTH)


def _check_patterns(patterns: Sequence[str]) -> None:
    """Raise an error if a pattern leads out of the folder; with only such ones, an import would empty the tool."""
    for pattern in patterns:
        parts = re.split(r"[/\\]", pattern.strip().removeprefix("!"))
        if not pattern.strip() or "\0" in pattern or {".", ".."} & set(parts) or re.fullmatch(r"~|[A-Za-z]:", parts[0]):
            raise SettingsError(
                f"{pattern[:200]!r} matches no file in the folder of a tool",
                hint="Write patterns from the folder of the tool on: *.md or guide/**.",
            )


def _check_description(description: str) -> str:
    text = clean_label(description, len(description))
    if not text:
        raise SettingsError(
            "A tool needs a description", hint="Say what the documents are about. Assistants choose tools by it."
        )
    if len(text) > MAX_DESCRIPTION_LENGTH:
        raise SettingsError(
            f"The description has {len(text):,} characters, more than {MAX_DESCRIPTION_LENGTH:,}",
            hint="Shorten it: assistants read it with every call.",
        )
    return text


def _resolve_source(kind: str, source: Path | None) -> str:
    """Return the absolute path of a source; empty for a kind that has none, such as web pages."""
    declared = find_kind(kind)
    if declared is not None and declared.root == "none":
        if source is not None:
            raise SettingsError(
                f"A tool of {declared.label} has no folder or file",
                hint=f"Leave out --source. Add {declared.noun[1]} with: {declared.import_command}.",
            )
        return ""
    if source is None:
        raise SettingsError(f"A tool of kind {kind} needs a folder or file", hint="Give it with --source.")
    path = source.expanduser()
    if path.is_dir() or (declared is not None and declared.root == "folder"):
        return str(_resolve_folder(path))
    if not path.is_file():
        raise SourceError(f"There is no file or folder {path}", hint="Check the path.")
    return str(path.resolve())


def _resolve_folder(source: Path) -> Path:
    folder = source.expanduser()
    if folder.is_file():
        raise SourceError(
            f"{folder} is a file, not a folder",
            hint="Give its folder, and the file with --include. For a file of memos or JSON lines, use --kind memos or"
            " jsonl.",
        )
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}", hint="Check the path given with --source.")
    return folder.resolve()
