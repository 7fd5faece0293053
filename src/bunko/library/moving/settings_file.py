"""Choose the config file that says where a library is, and change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bunko.errors import LibraryReadOnly, SettingsError
from bunko.library.opening.paths import LibraryPaths, user_config_folder
from bunko.runtime.temporary_files import replace_text
from bunko.settings import CONFIG_NAMES, LoadedSettings
from bunko.settings.edit import edit_config
from bunko.settings.files import ConfigFile, find_configs

_LIBRARY_SUFFIXES = (".db", ".sqlite")


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A config file, and its text with some settings changed."""

    path: Path
    text: str
    copied_from: Path | None = None  # the file whose other settings a new one contains

    def write(self) -> Path | None:
        """Write the file; return a backup of what it had before."""
        try:
            return replace_text(self.path, self.text)
        except OSError as error:
            raise LibraryReadOnly(
                f"Cannot write {self.path}: {error.strerror or error}",
                hint="Check its permissions, then run the same command again.",
            ) from error


def plan_change(
    paths: LibraryPaths,
    loaded: LoadedSettings,
    config: Path | None,
    changes: Mapping[str, str | None],
    *,
    place_keys: Sequence[str],
) -> SettingsChange:
    """Return the change of the config file in which settings of this library, and of no other one, belong.

    `paths` is the library as flags and the environment name it; `place_keys` are settings that tell libraries apart.
    """
    _check_origins(loaded, [key for key, value in changes.items() if value is not None])
    if config is not None:
        return _change_file(config, changes)
    if paths.is_among_documents:
        raise SettingsError(
            f"{paths.docs_dir} is a documents folder, whose files may not choose an engine or a server",
            hint="Add the folder to your own library with bunko add, or name a settings file with --config.",
        )
    if paths.is_file_path and any(
        path.suffix in _LIBRARY_SUFFIXES and path != paths.database for path in paths.folder.glob("*.*")
    ):
        raise SettingsError(
            f"{paths.folder} has other library files, to which its settings would apply too",
            hint="Move this file to a folder of its own, or name a settings file with --config.",
        )
    if library_config := find_config(paths.folder):
        return _change_file(library_config.path, changes)
    user_config = find_config(user_config_folder())
    new_file = paths.folder / CONFIG_NAMES[0]
    if user_config is None:
        return SettingsChange(new_file, edit_config(new_file, "", changes))
    if any(str(user_config.path) in loaded.origins.get(key, "") for key in (*changes, *place_keys)):
        return _change_file(user_config.path, changes)
    # One file counts: the new one has to say what the user's says, which stays as it is for other libraries.
    if (
        user_config.path.suffix != ".toml"
        or (user_config.path.parent / ".env").exists()
        or _has_relative_files(user_config)
    ):
        raise SettingsError(
            f"{user_config.path} applies to all your libraries, and this one has no settings file of its own",
            hint=f"Write {new_file} with what this library needs of it (bunko init shows all settings), then move.",
        )
    text = edit_config(new_file, read_text(user_config.path), changes)
    return SettingsChange(new_file, text, copied_from=user_config.path)


def find_config(folder: Path) -> ConfigFile | None:
    """Return the config file of a folder."""
    return next(iter(find_configs([folder], lambda _: False, [])), None)


def _change_file(path: Path, changes: Mapping[str, str | None]) -> SettingsChange:
    return SettingsChange(path, edit_config(path, read_text(path), changes))


def read_text(path: Path) -> str:
    """Read a config file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror or error}", hint="Check the name and the permissions."
        ) from error


def _check_origins(loaded: LoadedSettings, keys: Sequence[str]) -> None:
    """Raise an error if something sets one of these settings that a config file does not override."""
    for key in keys:
        origin = loaded.origins.get(key, "default")
        source = origin.rpartition(" of ")[2]
        if source.startswith(("environment ", ".env ", "flag")):
            raise SettingsError(
                f"{key} is set by {source}, which a settings file does not override",
                hint="Remove it there, write it into bunko.toml of the library, and run the same command again.",
            )


def _has_relative_files(config: ConfigFile) -> bool:
    """Return whether a file names others by paths that begin at its own folder."""
    return any(
        str(name).endswith(("_file", "_dir", "path")) and isinstance(value, str) and not value.startswith(("/", "~"))
        for content in config.table.values()
        if isinstance(content, dict)
        for name, value in content.items()
    )
