"""What people see at a terminal and what commands print into a pipe: tables, results, progress, screens.

A command that draws only at a terminal uses a module as `terminal.tables`: it is imported at its first use, because the
libraries that draw take time to load.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.interfaces.cli.terminal import finder as finder
    from bunko.interfaces.cli.terminal import progress_bars as progress_bars
    from bunko.interfaces.cli.terminal import render as render
    from bunko.interfaces.cli.terminal import render_answer as render_answer
    from bunko.interfaces.cli.terminal import render_results as render_results
    from bunko.interfaces.cli.terminal import tables as tables
else:
    _LAZY = ("finder", "progress_bars", "render", "render_answer", "render_results", "tables")

    def __getattr__(name: str) -> ModuleType:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
