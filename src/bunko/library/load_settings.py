"""Load the settings of a library without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bunko.library.paths import LibraryPaths, user_config_folder
from bunko.settings import LoadedSettings, load_settings


def load_library_settings(
    paths: LibraryPaths,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
    all_providers: bool = False,
) -> LoadedSettings:
    """Load the settings of a library from the folder of its documents, its own folder, or the user's config folder.

    With `all_providers`, the settings of all installed embedding providers are loaded.
    """
    user_folder = user_config_folder()
    config_folders = [paths.folder, user_folder]
    if paths.docs_dir is not None:
        config_folders.insert(0, paths.docs_dir)
    return load_settings(
        flags=flags or {},
        environ=environ,
        config=config,
        config_folders=config_folders,
        dotenv_folders=[paths.folder],
        untrusted_folder=paths.docs_dir,
        trusted_folders=[user_folder],
        all_providers=all_providers,
    )
