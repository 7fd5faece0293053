"""Write the commands that messages name, with the arguments of a library and a tool."""

from __future__ import annotations

import shlex

from bunko.library.paths import LibraryPaths
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


def vector_command(paths: LibraryPaths, tool: Tool) -> str:
    """Return the command that computes the vectors of a tool with the embedder of the settings."""
    if tool.options.embedder == "none":  # chosen when it was imported
        return shlex.join(["bunko", "build", "--input", tool.source, *paths.cli_arguments()])
    selection = [] if paths.docs_dir is not None else ["-n", tool.name]
    return shlex.join(["bunko", "reembed", *selection, *paths.cli_arguments()])
