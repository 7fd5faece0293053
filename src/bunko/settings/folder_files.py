"""Filter what the config file and `.env` of a documents folder set, and say what was ignored."""

from __future__ import annotations

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
    """The settings files in a documents folder, which may come from somebody else."""

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
        parts = []
        for file, keys in self._ignored.items():
            shown = ", ".join(keys[:_MAX_KEYS_SHOWN])
            more = f" and {len(keys) - _MAX_KEYS_SHOWN} more" if len(keys) > _MAX_KEYS_SHOWN else ""
            parts.append(f"{shown}{more} in {file}")
        if not parts:
            return []
        return [
            f"Ignored: {'; '.join(parts)}. A documents folder may not set this; use your own settings, the environment"
            " or --config."
        ]
