"""The MCP server: an assistant's calls in, answers that fit its context and can be checked out."""
