"""Check that the source of a tool is there before its documents are compared with it."""

from __future__ import annotations

import shlex

from bunko.errors import SourceError
from bunko.library.commands import move_command
from bunko.library.paths import LibraryPaths
from bunko.protocols import Source, Store
from bunko.types import Tool


def check_source_exists(store: Store, source: Source, tool: Tool, paths: LibraryPaths) -> None:
    """Raise if a source has vanished as a whole: its documents were not deleted one by one, so the index is kept."""
    indexed_uris = store.documents.uris(tool.id, limit=1)
    if not source.has_vanished(indexed_uris):
        return
    choices = f"or if it has moved: {move_command(paths, tool)}"
    if paths.docs_dir is None:
        choices = f"delete the tool (bunko tool delete -n {shlex.quote(tool.name)}{paths.cli_flags()}), {choices}"
    if not indexed_uris:
        raise SourceError(
            f"{tool.source}, the source of {tool.name}, does not exist or cannot be read",
            hint=f"Restore it, {choices}",
        )
    raise SourceError(
        f"{tool.source} is missing or empty, but {tool.name} has documents from it",
        hint=f"The index is kept. Restore the folder, {choices}",
    )
