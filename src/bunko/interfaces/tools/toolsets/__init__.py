"""Toolsets: each file is one, its name is what `--toolsets` takes, `tools()` is its door."""

NAMES = ("folder", "tools", "memos", "web")
