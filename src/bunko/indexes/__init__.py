"""Build an index from the name of its engine; everything in an index is derived from a store and rebuildable."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from bunko.errors import UnknownName
from bunko.indexes.options import EngineOptions
from bunko.protocols import Index, Store

# The engines that `index.kind` offers. The memory index is a plain reference for tests.
KINDS = ("embedded", "chroma", "milvus")
_MODULES = {
    "embedded": "bunko.indexes.embedded.index",
    "chroma": "bunko.indexes.chroma.index",
    "milvus": "bunko.indexes.milvus.index",
    "memory": "bunko.indexes.memory",
}


def build(kind: str, store: Store, folder: Path | None, options: EngineOptions | None = None) -> Index:
    """Return the index of a store; `folder` is where the index may keep files, None for nowhere."""
    if kind not in _MODULES:
        raise UnknownName(f"There is no index called {kind!r}", hint=f"Set index.kind to one of: {', '.join(KINDS)}.")
    index: Index = import_module(_MODULES[kind]).build(store, folder, options or EngineOptions())
    return index
