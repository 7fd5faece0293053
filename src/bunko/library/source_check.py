"""Check that the source of a tool is there before its documents are compared with it."""

from __future__ import annotations

import shlex

from bunko.errors import SourceError
from bunko.protocols import Source, Store
from bunko.types import Tool


def check_source_exists(store: Store, source: Source, tool: Tool, cli_flags: str) -> None:
    """Raise if a source has vanished as a whole: its documents were not deleted one by one, so the index is kept."""
    indexed_uris = store.documents.uris(tool.id, limit=1)
    if not source.has_vanished(indexed_uris):
        return
    delete_command = f"bunko tool delete -n {shlex.quote(tool.name)}{cli_flags}"
    if not indexed_uris:
        raise SourceError(
            f"{tool.source}, the source of {tool.name}, does not exist or cannot be read",
            hint=f"Restore it, or delete the tool: {delete_command}",
        )
    raise SourceError(
        f"{tool.source} is missing or empty, but {tool.name} has documents from it",
        hint=f"The index is kept. Restore the folder, or delete the tool: {delete_command}",
    )
