"""Search folders, memo logs and web pages from an AI assistant."""

__version__ = "0.1.0"
