"""Serve the library over HTTP: MCP, an API and a page, for those with a token."""
