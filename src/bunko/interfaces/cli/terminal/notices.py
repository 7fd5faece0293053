"""Print notices about an answer to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.terminal.printing import print_stderr
from bunko.library.opening.last_build import last_build_command

if TYPE_CHECKING:
    from bunko.library.library import Library


def print_notices(library: Library, notices: Iterable[str]) -> None:
    """Print notices to stderr, without those that were printed when the library was opened."""
    for notice in notices:
        if notice not in library.notices:
            print_notice(notice)


def print_notice(notice: str) -> None:
    """Print a notice to stderr; a terminal would break its lines within words."""
    if not sys.stderr.isatty():
        print_stderr(notice)
        return
    terminal.tables.print_message(notice, console=terminal.tables.new_console(stderr=True))


def print_empty_library(library: Library, query: str) -> None:
    """Say which library was searched if nothing named it and it is empty, and name the one that was built last."""
    if library.paths.is_explicit or any(library.documents.stored.uris(tool.id, limit=1) for tool in library.tools()):
        return
    print_stderr(f"{library.paths.display_path} was searched, and it is empty.")
    if command := last_build_command(query):
        print_stderr(f"Search the library that was built last: {command}")
