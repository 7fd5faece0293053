"""Tell the user about source code that is read without a parser."""

from __future__ import annotations

from bunko.library.build_config import ToolConfig
from bunko.readers import code
from bunko.sources.gitignore import named_endings
from bunko.types import Tool


def parser_notices(config: ToolConfig, tool: Tool) -> list[str]:
    """Return a notice if a tool reads source code and no parser for it is installed."""
    names = (*config.scan_settings(tool).file_extensions(), *named_endings(tool.options.include))
    endings = {f".{name.removeprefix('.')}" for name in names}
    if endings.isdisjoint(code.suffixes()) or code.has_parser():
        return []
    return [
        f"The source code of {tool.name} is divided by its lines. To divide it by definitions, install a parser with"
        f' pip install "bunko[code]", then rebuild: {config.rebuild_command(tool)}'
    ]
