"""An MCP server over stdio that has only one of the tools that the commands need, which fails."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("rag")


@server.tool()
def rag_add(url: str) -> str:
    """Fail."""
    raise ValueError("the disk is full")


server.run("stdio")
