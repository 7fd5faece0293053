"""Load settings from flags, the environment, `.env` and config files."""

from bunko.settings.files import CONFIG_NAMES
from bunko.settings.load import LoadedSettings, load_settings
from bunko.settings.providers import all_settings
from bunko.settings.schema import Settings
from bunko.settings.setting import Setting

__all__ = [
    "CONFIG_NAMES",
    "LoadedSettings",
    "Setting",
    "Settings",
    "all_settings",
    "load_settings",
]
