"""Connect the MCP servers of a list, if the package that reaches them is there."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from bunko.interfaces.chat.server_config import ServerConfig

if TYPE_CHECKING:
    from bunko.interfaces.chat.mcp_client import ServerConnection

SERVERS_LOG = "bunko.chat.servers"  # its messages are also notices of answers


def has_client() -> bool:
    """Return whether the package is there that other MCP servers are reached with."""
    try:
        from mcp import Client  # noqa: F401 - version 1 has none
    except ImportError:
        return False
    return True


@asynccontextmanager
async def connect_servers(
    configs: Sequence[ServerConfig], *, start_timeout: float
) -> AsyncIterator[list[ServerConnection]]:
    """Start the servers of a file side by side, and stop them at the end."""
    if not configs:
        yield []
        return
    from bunko.interfaces.chat.mcp_client import ServerConnection

    error: Exception | None = None
    async with anyio.create_task_group() as tasks:
        connections = [ServerConnection(config, start_timeout=start_timeout) for config in configs]
        for connection in connections:
            tasks.start_soon(connection.run)
        try:
            yield connections
        except Exception as raised:  # raised below, because the group of tasks would wrap it
            error = raised
        tasks.cancel_scope.cancel()
    if error is not None:
        raise error


def mute_server_log() -> None:
    """Log no problem of an MCP server, unless with --verbose: the notices of an answer tell about them."""
    log = logging.getLogger(SERVERS_LOG)
    log.setLevel(logging.NOTSET if log.parent and log.parent.isEnabledFor(logging.DEBUG) else logging.ERROR)
