"""Find out in which language the user reads messages."""

from __future__ import annotations

import os

from bunko.errors import BunkoError
from bunko.messages import set_language

_VARIABLE = "BUNKO_DISPLAY_LANGUAGE"


def detect_language() -> None:
    """Choose the language by the environment or the user's own config file, before a library is open."""
    set_language(os.environ.get(_VARIABLE) or _language_of_user())


def _language_of_user() -> str | None:
    """Return the language in the user's own config file; one that cannot be read is reported when it is loaded."""
    from bunko.library.opening.paths import user_config_folder

    folder = user_config_folder()
    try:
        texts = [path.read_bytes() for path in folder.iterdir() if path.suffix in (".toml", ".yaml")]
    except OSError:
        return None
    if not any(b"language" in text for text in texts):
        return None  # the settings take time to load, and `--help` should not
    from bunko.settings.files import CONFIG_NAMES, read_config

    path = next((path for name in CONFIG_NAMES if (path := folder / name).is_file()), folder)
    try:
        display = read_config(path).get("display")
    except BunkoError:
        return None
    return display.get("language") if isinstance(display, dict) else None
