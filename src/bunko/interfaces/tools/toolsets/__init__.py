"""Toolsets: one module each, named as in `--toolsets`, whose `tools()` returns its tools."""

TOOLSET_NAMES = ("folder", "tools", "memos", "web")
