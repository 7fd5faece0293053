"""Toolsets: each file is one, its name is what `--toolsets` takes, `tools()` is its door."""

NAMES = ("folder", "tools", "memos", "web")
# Accepted in a configuration, so that it need not change later; it has no tools yet.
EMPTY = ("web",)
