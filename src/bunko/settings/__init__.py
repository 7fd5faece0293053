"""Settings from flags, environment, `.env` and config files: `load` gives them with their origins."""

from bunko.settings.docs import reference
from bunko.settings.files import CONFIG_NAMES
from bunko.settings.load import Loaded, load
from bunko.settings.schema import SETTINGS, Setting, Settings
from bunko.settings.starter import starter

__all__ = ["CONFIG_NAMES", "SETTINGS", "Loaded", "Setting", "Settings", "load", "reference", "starter"]
