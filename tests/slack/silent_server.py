"""An MCP server over stdio whose tool does not say whether it changes something, as with most servers."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"{city}: 晴れ"


server.run("stdio")
