"""Collect web pages into a library."""
