"""Serve the tools over the Model Context Protocol."""
