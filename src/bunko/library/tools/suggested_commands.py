"""Write the commands that messages name, with the arguments of a library and a tool."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from bunko.library.opening.paths import LibraryPaths
from bunko.sources import find_kind
from bunko.types import Tool


def rebuild_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that builds a tool with the current settings."""
    if paths.docs_dir is not None:
        return shlex.join(["bunko", "reindex", *paths.cli_arguments(), "--force"])
    return shlex.join(["bunko", "import", "-n", tool.name, "--mode", "replace", *paths.cli_arguments()])


def update_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that imports the changes of a tool."""
    if paths.docs_dir is not None:
        return shlex.join(["bunko", "reindex", *paths.cli_arguments()])
    return shlex.join(["bunko", "import", "-n", tool.name, "--mode", "update", *paths.cli_arguments()])


def import_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that imports the first documents of a tool."""
    kind = find_kind(tool.kind)
    if paths.docs_dir is not None:
        command = "bunko reindex"
    elif kind is not None and kind.root == "none":
        command = f"{kind.import_command} -n {shlex.quote(tool.name)}"
    else:
        command = f"bunko import -n {shlex.quote(tool.name)}"
    return command + paths.cli_flags()


def enable_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that shows a tool to assistants again."""
    return f"bunko tool enable -n {shlex.quote(tool.name)}{paths.cli_flags()}"


def include_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that chooses again which files a tool includes."""
    patterns = [argument for pattern in tool.options.include for argument in ("--include", pattern)]
    return shlex.join(["bunko", "tool", "update", "-n", tool.name, *patterns, *paths.cli_arguments()])


def move_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that tells a tool where its folder or file is now."""
    if paths.docs_dir is not None:
        new_paths = replace(paths, docs_dir=Path("PATH"))
        return shlex.join(["bunko", "reindex", *new_paths.cli_arguments()])
    return f"bunko tool update -n {shlex.quote(tool.name)} -s PATH{paths.cli_flags()}"


def vector_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that computes the vectors of a tool with the embedder of the settings."""
    if tool.options.embedder == "none":  # chosen when it was imported
        return shlex.join(["bunko", "build", "--input", tool.source, *paths.cli_arguments()])
    selection = [] if paths.docs_dir is not None else ["-n", tool.name]
    return shlex.join(["bunko", "reembed", *selection, *paths.cli_arguments()])
