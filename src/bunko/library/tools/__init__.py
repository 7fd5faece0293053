"""The tools of a library: their names, settings and sources."""
