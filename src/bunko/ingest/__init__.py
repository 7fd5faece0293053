"""Read sources into a store: scan, read, chunk, embed, write.

What an import needs is loaded at its first use: a search has the library ready to import, and seldom does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bunko.ingest.preparer import LocalPreparer, open_preparer
    from bunko.ingest.run import ImportRun
    from bunko.ingest.stored import embed_missing, ingest_texts, keep_documents
    from bunko.ingest.watched import WatchedFolders

_MODULES = {
    "ImportRun": "run",
    "LocalPreparer": "preparer",
    "WatchedFolders": "watched",
    "embed_missing": "stored",
    "ingest_texts": "stored",
    "keep_documents": "stored",
    "open_preparer": "preparer",
}
__all__ = [
    "ImportRun",
    "LocalPreparer",
    "WatchedFolders",
    "embed_missing",
    "ingest_texts",
    "keep_documents",
    "open_preparer",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
