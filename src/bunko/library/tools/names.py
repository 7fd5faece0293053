"""Find the names of a library's tools without opening it: shells ask for them at each Tab."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bunko import stores
from bunko.library.opening.load_settings import load_library_settings, paths_from_settings, store_address
from bunko.library.opening.paths import DOCUMENTS_TOOL, LibraryPaths
from bunko.library.tools.catalog import SHADOW_PREFIX


def tool_names(paths: LibraryPaths, *, environ: Mapping[str, str], config: Path | None = None) -> list[str]:
    """Return the names of a library's tools without creating or changing a file."""
    loaded = load_library_settings(paths, environ=environ, config=config)
    address = store_address(paths_from_settings(paths, loaded), loaded.settings)
    names = stores.tool_names(*address)
    if paths.is_among_documents and address.server is None:
        return [name for name in names if name == DOCUMENTS_TOOL]
    return [name for name in names if not name.startswith(SHADOW_PREFIX)]
