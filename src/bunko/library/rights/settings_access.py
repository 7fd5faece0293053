"""Let whoever runs a server change its settings file, and show what a new start would make of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import AccessDenied, SettingsError
from bunko.library.opening.user_settings import describe_override, set_setting, unset_setting, user_config_file
from bunko.library.rights.access import ASK_HINT

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.rights.access import LibraryAccess
    from bunko.settings import LoadedSettings


class SettingsAccess:
    """The settings of a library as one caller may change them: settings name files and services of the machine."""

    def __init__(self, access: LibraryAccess, library: Library) -> None:
        self._access, self._library = access, library

    @property
    def can_change(self) -> bool:
        """Whether the caller runs this process, and what it was started with is known."""
        caller = self._access.caller
        return caller.is_owner and caller.rights.writes_all and self._library.reload_settings is not None

    @property
    def file(self) -> Path:
        """The file that is changed, as by `bunko config set`."""
        return self._library.settings_file or user_config_file()

    def change(self, key: str, text: str | None) -> None:
        """Set a setting in the file, or remove it from there; open libraries keep what they were opened with."""
        if not self.can_change:
            raise AccessDenied("This token may not change the settings", hint=ASK_HINT)
        with self._access.record("config set" if text is not None else "config unset", [], {"setting": key}):
            if text is None:
                unset_setting(key, self.file)
                return
            try:
                loaded = self._load()
            except SettingsError:  # the change may be what mends them
                set_setting(key, text, self.file, None)
            else:
                set_setting(key, text, self.file, loaded)

    def next_rows(self) -> list[tuple[str, str, str]]:
        """Return key, value and origin of every setting as a new start would have them."""
        return self._load().rows()

    def override(self, key: str) -> str:
        """Return what comes before the file for a setting, in a sentence; empty if nothing does."""
        return describe_override(key, self.file, self._load())

    def _load(self) -> LoadedSettings:
        if not self.can_change or self._library.reload_settings is None:
            raise AccessDenied("This token may not change the settings", hint=ASK_HINT)
        return self._library.reload_settings()
