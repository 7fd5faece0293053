"""Build an index from the name of its engine; everything in an index is derived from a store and rebuildable."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from bunko.errors import UnknownName
from bunko.indexes.options import EngineOptions
from bunko.protocols import Index, Store

KINDS = ("embedded", "chroma", "milvus")  # the engines that `index.kind` offers


def build(kind: str, store: Store, folder: Path | None, options: EngineOptions | None = None) -> Index:
    """Return the index of a store; `folder` is where the index may keep files, None for nowhere."""
    if kind not in KINDS:
        raise UnknownName(f"There is no index called {kind!r}", hint=f"Set index.kind to one of: {', '.join(KINDS)}.")
    index: Index = import_module(f"bunko.indexes.{kind}.index").build(store, folder, options or EngineOptions())
    return index
