"""Search your own documents, in Japanese and English, on your own machine.

    import bunko

    with bunko.open("notes") as library:
        for hit in library.search("環境構築の方法").hits:
            print(hit.citation, hit.text)

Everything in `__all__` is public; other modules may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bunko.version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from bunko.errors import (
        BunkoError,
        EmbedderError,
        LibraryError,
        QueryError,
        SettingsError,
        SourceError,
        UnknownName,
    )
    from bunko.library.library import Library
    from bunko.library.searching.page import Page
    from bunko.search.request import SearchRequest
    from bunko.types import Answer, Hit, Report, Tool
    from bunko.types.records import Filter

__all__ = [
    "Answer",
    "BunkoError",
    "EmbedderError",
    "Filter",
    "Hit",
    "Library",
    "LibraryError",
    "Page",
    "QueryError",
    "Report",
    "SearchRequest",
    "SettingsError",
    "SourceError",
    "Tool",
    "UnknownName",
    "open",
]

# Imported at first use: `import bunko` alone loads neither numpy nor a database.
_MODULES = {
    "Answer": "bunko.types",
    "BunkoError": "bunko.errors",
    "EmbedderError": "bunko.errors",
    "Filter": "bunko.types.records",
    "Hit": "bunko.types",
    "Library": "bunko.library.library",
    "LibraryError": "bunko.errors",
    "Page": "bunko.library.searching.page",
    "QueryError": "bunko.errors",
    "Report": "bunko.types",
    "SearchRequest": "bunko.search.request",
    "SettingsError": "bunko.errors",
    "SourceError": "bunko.errors",
    "Tool": "bunko.types",
    "UnknownName": "bunko.errors",
}


def open(
    path: str | PathLike[str] | None = None,
    *,
    read_only: bool = False,
    environ: Mapping[str, str] | None = None,
    **settings: object,
) -> Library:
    """Open a folder of documents, or a library, for searching and importing.

    `path` is a folder of documents (its index is kept in `.rag-index` there), the folder or the file of a library, or
    None for the user's own library. A setting is given as section_name, for example `search_top_k=3` or
    `embedding_provider="none"`, and overrides the environment (`environ`, by default that of the process) and the
    config files. Use the library as a context manager, or close it.
    """
    import os
    from pathlib import Path

    from bunko.library.open import open_library
    from bunko.library.opening.paths import locate_from_path

    names = os.environ if environ is None else environ
    flags = {key.replace("_", ".", 1): value for key, value in settings.items()}
    paths = locate_from_path(None if path is None else Path(path), environ=names)
    return open_library(paths, environ=names, flags=flags, read_only=read_only)


if not TYPE_CHECKING:  # type checkers read the imports above

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'bunko' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
