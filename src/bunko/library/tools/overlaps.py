"""Tell which tools read files of each other's folders."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools.build_config import ToolConfig
from bunko.protocols import Store
from bunko.sources import find_kind
from bunko.sources.gitignore import PathPatterns
from bunko.types import Tool


def overlap_notices(
    paths: LibraryPaths, store: Store, config: ToolConfig, tool: Tool, other_tools: Sequence[Tool]
) -> list[str]:
    """Return a notice for each active tool that reads files of a tool's source, or whose files the tool reads."""
    notices = []
    for other in other_tools:
        if not (other.active and other.source and tool.source) or other.id == tool.id:
            continue
        if other.source == tool.source:
            if documents := _shared_documents(config, tool, other):
                notices.append(f"{other.name} reads {tool.source} too. {_consequence(documents, tool, other)}")
        elif _reads(store, config, outer=other, inner=tool):
            command = _exclude_command(paths, outer=other, inner=tool)
            notices.append(
                f"{tool.source} is inside {other.source}, the folder of {other.name}."
                f" {_consequence('Its documents are', tool, other)} To read it as {tool.name} only: {command}"
            )
        elif _reads(store, config, outer=tool, inner=other):
            notice = (
                f"{tool.source} contains {other.source}, the folder of {other.name}."
                f" {_consequence(f'The documents of {other.name} are', tool, other)}"
            )
            if not other.options.include:
                command = _exclude_command(paths, outer=tool, inner=other)
                notice = f"{notice} To leave it out of {tool.name}: {command}"
            notices.append(notice)
    return notices


def _shared_documents(config: ToolConfig, tool: Tool, other: Tool) -> str:
    """Return which documents of a tool are those of another of the same source, as a subject; empty if none."""
    if tool.kind == other.kind and tool.options.include == other.options.include == ():
        return "Its documents are"
    uris, other_uris = ({entry.uri for entry in config.source(each).scan({}).added} for each in (tool, other))
    shared = uris & other_uris
    if not shared:
        return ""
    return (
        "Its documents are"
        if shared == uris
        else f"{len(shared)} of its documents {'is' if len(shared) == 1 else 'are'}"
    )


def _consequence(documents: str, tool: Tool, other: Tool) -> str:
    # A document and the memos in it are different texts, so both are shown.
    ending = "; a search over all tools shows each once." if tool.kind == other.kind else "."
    return f"{documents} in both tools{ending}"


def _exclude_command(paths: LibraryPaths, *, outer: Tool, inner: Tool) -> str:
    """Return the command that lets a tool leave out the source of another."""
    location = Path(inner.source)
    pattern = f"/{location.relative_to(outer.source).as_posix()}{'/' if location.is_dir() else ''}"
    exclude = [argument for glob in (*outer.options.exclude, pattern) for argument in ("--exclude", glob)]
    return shlex.join(["bunko", "tool", "update", "-n", outer.name, *exclude]) + paths.cli_flags()


def _reads(store: Store, config: ToolConfig, *, outer: Tool, inner: Tool) -> bool:
    """Return whether the folder of a tool contains the source of another and leaves it out by no rule."""
    source, root = Path(inner.source), Path(outer.source)
    if source == root or not source.is_relative_to(root):
        return False
    scan, uri = config.scan_settings(outer), PurePosixPath(source.relative_to(root).as_posix())
    is_folder = source.is_dir()
    folders = [uri, *uri.parents[:-1]] if is_folder else list(uri.parents[:-1])
    if not {folder.name for folder in folders}.isdisjoint(name.rstrip("/") for name in scan.exclude_dirs):
        return False
    excluded = PathPatterns(outer.options.exclude)
    if any(excluded.verdict(str(path), path.name, is_folder=is_folder or path != uri) for path in (uri, *folders)):
        return False
    kind = find_kind(outer.kind)
    if not is_folder and (kind is None or kind.uses_extensions) and not uri.name.lower().endswith(scan.endings()):
        return False
    # What was imported shows what .gitignore and --include leave out.
    prefix = f"{uri}/" if is_folder else str(uri)
    if outer.options.include and not outer.imported_at:
        return any(entry.uri.startswith(prefix) for entry in config.source(outer).scan({}).added)
    if not outer.imported_at or not config.source(inner).scan({}).added:
        return True
    return any(imported.startswith(prefix) for imported in store.documents.fingerprints(outer.id))
