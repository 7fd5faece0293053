"""Settings from flags, environment, `.env` and config files: `load` gives them with their origins."""

from bunko.settings.load import Loaded, load
from bunko.settings.page import reference
from bunko.settings.sources import CONFIG_NAMES
from bunko.settings.starter import starter
from bunko.settings.tree import SETTINGS, Setting, Settings

__all__ = ["CONFIG_NAMES", "SETTINGS", "Loaded", "Setting", "Settings", "load", "reference", "starter"]
