"""Names, descriptions and folders in, the registry of tools out: what may be called how, and what a tool is made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bunko.errors import SettingsError, SourceError, UnknownName
from bunko.protocols import Store
from bunko.timing import now
from bunko.types import Tool

# What tools of a library may not be called, because assistants know a tool of that name already.
RESERVED_NAMES = frozenset(
    """
    search reindex verify job query_memos list_tags get_recent_memos rag_search rag_add rag_crawl rag_delete rag_stats
    """.split()
)
# What is searched as memos are: dated entries, many to a file.
MEMO_KINDS = ("memos", "jsonl")
# Begins the name of what a rebuild is collected under; no tool's own name does.
SHADOW_PREFIX = "~"
MAX_NAME_LENGTH = 40
MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS = 512, 4096  # in tokens
_UNSAFE_CHARS = re.compile(r"[^a-zA-Z0-9_-]+")


def safe_name(name: str) -> str:
    """Return a name as every client accepts it: letters, digits, _ and -, at most 40; empty if nothing is left."""
    return _UNSAFE_CHARS.sub("_", name).strip("_")[:MAX_NAME_LENGTH]


def public_name(name: str) -> str:
    """Return what assistants see a tool of a name as: just that where every client accepts it."""
    plain = safe_name(name)
    return plain if plain and plain == name else hashed_name(name)


def hashed_name(name: str) -> str:
    """Return a name that every client accepts, with a mark of the real one: it stays the same every time."""
    plain, mark = safe_name(name), hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[: MAX_NAME_LENGTH - 7]}_{mark}" if plain else f"tool_{mark}"


def tools(store: Store) -> list[Tool]:
    """Return all tools, by name, without what a rebuild is collecting."""
    return [tool for tool in store.tools() if not tool.name.startswith(SHADOW_PREFIX)]


def get_tool(store: Store, name: str) -> Tool:
    """Return one tool, or say which there are."""
    known = tools(store)
    for tool in known:
        if tool.name == name:
            return tool
    names = ", ".join(tool.name for tool in known) or "none yet"
    raise UnknownName(f"There is no tool called {name!r}", hint=f"Tools of this library: {names}.")


def select_tools(store: Store, name: str | None) -> list[Tool]:
    """Return the tools a question is for: the one of that name, or all active ones."""
    return [tool for tool in tools(store) if tool.active] if name is None else [get_tool(store, name)]


def resolve_tool(store: Store, name: str | None) -> Tool:
    """Return one tool: the one of that name, or the only one there is."""
    if name is not None:
        return get_tool(store, name)
    known = tools(store)
    if len(known) != 1:
        names = ", ".join(tool.name for tool in known) or "none yet"
        raise UnknownName("Which tool is meant?", hint=f"Name one with -n. Tools of this library: {names}.")
    return known[0]


def add_tool(
    store: Store,
    name: str,
    description: str,
    source: Path | None,
    *,
    kind: str = "folder",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    extract: str | None = None,
    embedder: str | None = None,  # none: no vectors for this tool
    chunker_options: Mapping[str, Any] | None = None,  # as `recut` gives it
) -> Tool:
    """Register a folder or a file under a name, or web pages, which have none; nothing is imported yet."""
    _check_name(store, name)
    given = {"include": list(include), "exclude": list(exclude), "extract": extract, "embedder": embedder}
    options = {key: value for key, value in given.items() if value} | dict(chunker_options or {})
    made = Tool(
        name, kind, _clean_description(description), _resolve_source(kind, source), created_at=now(), options=options
    )
    return store.put_tool(made)


def copy_tool(store: Store, tool: Tool) -> Tool:
    """Register a tool of another library here, with nothing imported yet."""
    _check_name(store, tool.name)
    return store.put_tool(replace(tool, id=0, created_at=now(), imported_at="", checked_at="", built={}))


def adapt_foreign_tool(
    store: Store,
    tool: Tool,
    *,
    name: str,
    source: Path | None,
    replace_existing: bool,
    matches_folder: Callable[[Path], bool],
) -> Tool:
    """Return a tool of another library as it will be here: called so, and following a folder the user knows of."""
    old = next((one for one in tools(store) if one.name == name), None)
    if old is None:
        _check_name(store, name)
    elif not replace_existing:
        raise SettingsError(
            f"There is a tool {name!r} already", hint="Replace it with --replace, or choose another name with -n."
        )
    if source is not None:
        followed = str(_resolve_folder(source))
    elif old is not None and Path(old.source).is_dir():
        followed = old.source
    elif not Path(tool.source).is_dir() or matches_folder(Path(tool.source)):
        followed = tool.source
    else:
        # A search brings in what the folder holds: what somebody else wrote into a file must not choose it.
        raise SourceError(
            f"{tool.name} was made from {tool.source}, which is here too but holds none of its documents",
            hint="Say with -s which folder it is to follow.",
        )
    active = tool.active if old is None else old.active
    described = _clean_description(tool.description)
    return replace(tool, name=name, description=described, source=followed, active=active, created_at=now())


def update_tool(
    store: Store,
    name: str,
    *,
    description: str | None = None,
    source: Path | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    extract: str | None = None,
) -> Tool:
    """Change what a tool says, its folder, or what it takes from it; what is indexed follows at the next import."""
    tool = get_tool(store, name)
    given = {"include": include and list(include), "exclude": exclude and list(exclude), "extract": extract}
    options = tool.options | {key: value for key, value in given.items() if value is not None}
    tool = replace(tool, options={key: value for key, value in options.items() if value})
    if description is not None:
        tool = replace(tool, description=_clean_description(description))
    if source is not None:
        tool = replace(tool, source=_resolve_source(tool.kind, source))
    return store.put_tool(tool)


def options_with_chunker(options: Mapping[str, Any], kind: str | None, size: int, overlap: int) -> dict[str, Any]:
    """Return a tool's options with a chunker of its own; sizes are in tokens and belong to the chunker of that name."""
    rest = {key: value for key, value in options.items() if key not in ("chunker", "chunk_size", "chunk_overlap")}
    if kind != "tokens":
        return rest | ({"chunker": kind} if kind else {})
    if not (MIN_CHUNK_TOKENS <= size <= MAX_CHUNK_TOKENS and 0 <= overlap < size):
        raise SettingsError(
            f"Chunks of {size} tokens that share {overlap} are not possible",
            hint=f"Choose a size from {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS} and an overlap smaller than it.",
        )
    return rest | {"chunker": kind, "chunk_size": size, "chunk_overlap": overlap}


def set_tool_active(store: Store, name: str, *, active: bool) -> Tool:
    """Show a tool to assistants, or hide it; its index stays."""
    return store.put_tool(replace(get_tool(store, name), active=active))


def delete_tool(store: Store, name: str) -> None:
    """Remove a tool and its index; the folder is left alone."""
    tool = get_tool(store, name)
    for one in store.tools():
        if one.name in (tool.name, SHADOW_PREFIX + tool.name):
            store.drop_tool(one.id)


def _check_name(store: Store, name: str) -> None:
    plain = safe_name(name)
    if not plain or name.startswith(SHADOW_PREFIX):
        raise SettingsError(
            f"{name!r} cannot be a tool's name",
            hint="Use a letter or digit of ASCII, and no ~ at the beginning. Assistants see only such letters, digits,"
            f" _ and -, at most {MAX_NAME_LENGTH}: what else is in a name becomes _ for them.",
        )
    if plain.lower() in RESERVED_NAMES:
        raise SettingsError(f"{name!r} is the name of a tool of bunko itself", hint="Choose another name.")
    for tool in tools(store):
        if tool.name == name:
            raise SettingsError(f"There is a tool {name!r} already", hint="Change it with: bunko tool update.")
        if tool.name.lower() == name.lower():
            raise SettingsError(
                f"{name!r} and {tool.name!r} differ only in case, which assistants may not tell apart",
                hint="Choose another name.",
            )
        if safe_name(tool.name).lower() == plain.lower():
            raise SettingsError(
                f"{name!r} and {tool.name!r} would look the same to an assistant: {plain}",
                hint=f"Choose another name: assistants see letters, digits, _ and -, the first {MAX_NAME_LENGTH} of them.",  # noqa: E501
            )


def _clean_description(description: str) -> str:
    text = " ".join(description.split())
    if not text:
        raise SettingsError(
            "A tool needs a description", hint="Say what the documents are about: assistants choose tools by it."
        )
    return text


def _resolve_source(kind: str, source: Path | None) -> str:
    """Return where a source of a kind lies; all but folders may be one file, and web pages lie nowhere."""
    if kind == "web":
        if source is not None:
            raise SettingsError(
                "A tool of web pages has no folder or file", hint="Leave it out; pages come with: bunko web add URL."
            )
        return ""
    if source is None:
        raise SettingsError(f"A tool of the kind {kind} needs a folder or file", hint="Name it with --source.")
    place = source.expanduser()
    if kind == "folder" or place.is_dir():
        return str(_resolve_folder(place))
    if not place.is_file():
        raise SourceError(f"There is no file or folder {place}", hint="Check the path.")
    return str(place.resolve())


def _resolve_folder(source: Path) -> Path:
    folder = source.expanduser()
    if folder.is_file():
        raise SourceError(
            f"{folder} is a file, not a folder",
            hint="Name its folder, and the file with --include; a file of memos or JSON lines is of --kind memos or"
            " jsonl.",
        )
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}", hint="Check the path given with --source.")
    return folder.resolve()
