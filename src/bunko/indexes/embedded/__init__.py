"""Rows of chunks in, ranked rows out: the in-process search structures, derived from a store and rebuildable."""
