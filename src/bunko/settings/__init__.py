"""Settings from flags, environment, `.env` and config files: `load` gives them with their origins."""

from bunko.settings.load import Loaded, load
from bunko.settings.page import reference
from bunko.settings.tree import SETTINGS, Setting, Settings

__all__ = ["SETTINGS", "Loaded", "Setting", "Settings", "load", "reference"]
