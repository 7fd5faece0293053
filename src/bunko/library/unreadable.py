"""Keep documents whose files cannot be read while their tool is rebuilt."""

from __future__ import annotations

from bunko.library.build_config import ToolConfig
from bunko.protocols import Store
from bunko.types import Tool


def keep_unreadable(store: Store, config: ToolConfig, tool: Tool, shadow: Tool, missing: set[str]) -> list[str]:
    """Carry over what a rebuild misses though its file is not gone, but cannot be read or listed; return a notice."""
    if not missing:
        return []
    fingerprints = store.documents.fingerprints(tool.id)
    scan = config.source(tool).scan({uri: fingerprints[uri] for uri in missing})
    readable_uris = {entry.uri for entry in (*scan.updated, *scan.touched)}
    uris = sorted(missing - readable_uris - set(scan.deleted))
    if not uris:
        return []
    from bunko.ingest.kept_documents import keep_documents

    keep_documents(store, tool, shadow, uris, config.chunker_settings(tool), config.embedder_of(tool))
    files = "1 file" if len(uris) == 1 else f"{len(uris)} files"
    names = ", ".join(uris[:3]) + (", …" if len(uris) > 3 else "")
    return [f"{files} could not be read now and kept the text that was indexed before: {names}."]
