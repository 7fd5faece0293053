"""bunko: folders, memo logs and web pages become something an assistant can search."""

__version__ = "0.1.0"
