"""Filter what the config file and `.env` of a folder that is not trusted set, and say what was ignored."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bunko.errors import SettingsError
from bunko.settings.folder_limits import FOLDER_LIMITS
from bunko.settings.keyfile import KeyFile
from bunko.settings.setting import Setting
from bunko.settings.validate import check_value
from bunko.text.labels import clean_label

_MAX_KEYS_SHOWN = 12
_MAX_KEY_CHARS = 60


class FolderFiles:
    """The settings files in a documents folder or the current folder, which may come from somebody else."""

    def __init__(self, folder: Path | None, trusted_folders: Sequence[Path]) -> None:
        self._folder, self._trusted_folders = folder, trusted_folders
        self._ignored: dict[Path, list[str]] = {}  # what was ignored, by file
        self._replaced: dict[str, tuple[Path, str, object, str]] = {}  # by key: file, origin, old value, old origin

    def contain(self, folder: Path) -> bool:
        """Return whether files in this folder belong to the documents folder, so that they are not the user's own."""
        if self._folder is None or folder in self._trusted_folders:
            return False
        # A library inside the folder of documents was perhaps shipped with it.
        return folder.is_relative_to(self._folder) or folder.resolve().is_relative_to(self._folder.resolve())

    def filter(
        self, assignments: Iterable[tuple[str, object, str]], file: Path, declared: Mapping[str, Setting]
    ) -> Iterator[tuple[str, object, str]]:
        """Yield the assignments that a documents folder may make; remember the others, unless they change nothing."""
        for key, value, origin in assignments:
            setting, limit = declared.get(key), FOLDER_LIMITS.get(key)
            try:
                checked = None if setting is None else check_value(setting, value, origin)
            except SettingsError:
                setting = None
            is_known = setting is not None and not isinstance(value, KeyFile)
            if is_known and limit is not None and limit.accepts(checked):
                yield key, value, origin
            elif setting is None or not is_known or checked != setting.default:
                self._ignore(file, key, limit.text if limit else "")

    def replace(self, key: str, file: Path, origin: str, old_value: object, old_origin: str) -> None:
        """Remember which value of the user a documents folder replaces."""
        self._replaced[key] = (file, origin, old_value, old_origin)

    def restore(self, keys: Iterable[str], values: dict[str, object], origins: dict[str, str]) -> None:
        """Undo what a documents folder set, because it does not go together with another value."""
        for key in keys:
            file, origin, old_value, old_origin = self._replaced.get(key, (Path(), "", None, ""))
            if origin and origins[key] == origin:
                values[key], origins[key] = old_value, old_origin
                self._ignore(file, key)

    def _ignore(self, file: Path, key: str, limit: str = "") -> None:
        text = clean_label(key, _MAX_KEY_CHARS) + (f" ({limit})" if limit else "")
        keys = self._ignored.setdefault(file, [])
        if text not in keys:
            keys.append(text)

    def notices(self) -> list[str]:
        """Return one line about everything that was ignored, or none."""
        parts = [f"{_list_keys(keys)} in {file}" for file, keys in self._ignored.items()]
        if not parts:
            return []
        return [
            f"Ignored: {'; '.join(parts)}. A documents folder may not set this; use your own settings, the environment"
            " or --config."
        ]

    def notices_about_current_folder(self, origins: Mapping[str, str]) -> list[str]:
        """Return a line for each file that names what was read from it, and one that names what was not."""
        read: dict[Path, list[str]] = {}
        for key, (file, origin, _, _) in self._replaced.items():
            if origins[key] == origin:
                read.setdefault(file, []).append(key)
        lines = [f"Read from {file}: {_list_keys(keys)}." for file, keys in read.items()]
        for file, keys in self._ignored.items():
            remedy = f"To use the whole file: --config {shlex.quote(str(file))}"
            if file.name == ".env":
                remedy = "Set it in the environment, or in the .env of the library."
            lines.append(f"Not read from {file}: {_list_keys(keys)}. The current folder may not set this. {remedy}")
        return lines


def _list_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MAX_KEYS_SHOWN} more" if len(keys) > _MAX_KEYS_SHOWN else ""
    return ", ".join(keys[:_MAX_KEYS_SHOWN]) + more
