"""Keep documents whose files cannot be read while their tool is rebuilt."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.library.build_config import ToolConfig
from bunko.protocols import Store
from bunko.types import Tool


def keep_unreadable(store: Store, config: ToolConfig, tool: Tool, shadow: Tool, missing: set[str]) -> list[str]:
    """Carry over what a rebuild misses though its file is not gone, but cannot be read or listed; return the uris."""
    if not missing:
        return []
    known = {uri: fingerprint for uri, fingerprint in store.documents.fingerprints(tool.id).items() if uri in missing}
    scan = config.source(tool).scan(known)
    readable = [entry.uri for entry in (*scan.updated, *scan.touched)]
    kept = sorted(known.keys() - {*scan.deleted, *readable})
    if kept:
        from bunko.ingest.kept_documents import keep_documents

        keep_documents(store, tool, shadow, kept, config.chunker_settings(tool), config.embedder_of(tool))
    return kept


def kept_notices(uris: Sequence[str]) -> list[str]:
    """Return a notice about documents that were carried over."""
    if not uris:
        return []
    files = "1 file" if len(uris) == 1 else f"{len(uris)} files"
    shown = ", ".join(uris[:3]) + (", …" if len(uris) > 3 else "")
    return [f"{files} could not be read now and kept the text that was indexed before: {shown}."]
