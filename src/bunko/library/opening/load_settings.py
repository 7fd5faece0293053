"""Load the settings of a library without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bunko.errors import SettingsError
from bunko.library.opening.paths import LibraryPaths, paths_for_file, paths_for_folder, user_config_folder
from bunko.settings import LoadedSettings, Settings, load_settings
from bunko.types.records import DatabaseServer, StoreAddress


def load_library_settings(
    paths: LibraryPaths,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
    current_folder: Path | None = None,
    all_providers: bool = False,
) -> LoadedSettings:
    """Load the settings of a library from the folder of its documents, its own folder, or the user's config folder.

    Files in `current_folder` may set what a documents folder may. With `all_providers`, the settings of all installed
    embedding providers are loaded.
    """
    user_folder = user_config_folder()
    config_folders = [paths.folder, user_folder]
    if paths.docs_dir is not None:
        config_folders.insert(0, paths.docs_dir)
    known_folders = [*config_folders, *([config.parent] if config else [])]
    if current_folder is not None and current_folder.resolve() in {folder.resolve() for folder in known_folders}:
        current_folder = None
    return load_settings(
        flags=flags or {},
        environ=environ,
        config=config,
        config_folders=config_folders,
        dotenv_folders=[paths.folder],
        untrusted_folder=paths.docs_dir,
        trusted_folders=[user_folder],
        current_folder=current_folder,
        all_providers=all_providers,
    )


def paths_from_settings(paths: LibraryPaths, loaded: LoadedSettings) -> LibraryPaths:
    """Return the library named by a config file, unless a flag or the environment named one.

    The config file in a library folder may name its database; a config file among the documents may not.
    """
    base = loaded.config_file.parent if loaded.config_file else Path()
    if paths.is_explicit:
        in_library = (
            paths.docs_dir is None and base == paths.folder and paths_for_folder(base).database == paths.database
        )
        from_file = loaded.config_file is not None and str(loaded.config_file) in loaded.origins["database.path"]
        if not (in_library and from_file and loaded.settings.database.path):
            return paths
        return replace(
            paths_for_file(base / Path(loaded.settings.database.path).expanduser()), from_flag=paths.from_flag
        )
    if loaded.settings.library.path:
        return paths_for_folder(base / Path(loaded.settings.library.path).expanduser())
    if loaded.settings.database.path:
        return paths_for_file(base / Path(loaded.settings.database.path).expanduser())
    return paths


def check_database_flag(paths: LibraryPaths, loaded: LoadedSettings) -> None:
    """Raise an error if --database names a file, but settings that are not its own choose a server."""
    if not (paths.from_flag and paths.is_file_path) or loaded.settings.storage.kind != "postgres":
        return
    origin = loaded.origins["storage.url"]
    if origin.startswith("environment ") or str(user_config_folder()) in origin:
        raise SettingsError(
            f"--database names a file, but storage.kind is postgres ({origin})",
            hint="Set BUNKO_STORAGE_KIND=sqlite to use the file, or leave out --database to use the server.",
        )


def store_address(paths: LibraryPaths, settings: Settings) -> StoreAddress:
    """Return where the settings say that a library is stored."""
    storage = settings.storage
    server = DatabaseServer(storage.url or "", storage.schema, storage.password, storage.pool_size)
    return StoreAddress(storage.kind, paths.database, server if storage.kind == "postgres" else None)
