"""An MCP server over stdio that has only two of the tools that the commands need: one fails, one returns nothing."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("rag")


@server.tool()
def rag_add(url: str) -> str:
    """Fail."""
    raise ValueError("the disk is full")


@server.tool()
def rag_delete(url: str) -> str:
    """Return nothing."""
    return ""


server.run("stdio")
