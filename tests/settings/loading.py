"""Write config files and load settings in tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError
from bunko.settings import LoadedSettings, load_settings


def write_file(folder: Path, name: str, text: str) -> Path:
    """Write a file, with its folder, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode())
    return path


def setting_value(loaded: LoadedSettings, key: str) -> object:
    """Return the value of a setting by its key."""
    section, _, name = key.partition(".")
    return getattr(getattr(loaded.settings, section), name)


def load_error(match: str, **sources: Any) -> SettingsError:
    """Return the error of loading these sources; its message must match."""
    with pytest.raises(SettingsError, match=match) as caught:
        load_settings(**{"environ": {}, **sources})
    return caught.value
