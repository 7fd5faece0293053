"""Talk with a chat model that uses tools: those of the library, and those of other MCP servers."""
