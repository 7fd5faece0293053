"""Search a library and answer from it."""
