"""Serve the tools over the Model Context Protocol.

A server answers a handshake before a client asks for documents: `mcp.resources` is imported at its first use.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.interfaces.mcp import resources as resources
else:

    def __getattr__(name: str) -> ModuleType:
        if name != "resources":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
