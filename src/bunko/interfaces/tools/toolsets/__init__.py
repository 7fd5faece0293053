"""Toolsets: each file is one, its name is what `--toolsets` takes, `tools()` is its door."""

TOOLSET_NAMES = ("folder", "tools", "memos", "web")
