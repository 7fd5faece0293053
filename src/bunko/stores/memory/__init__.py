"""Keep a library in memory: the reference implementation that other stores must match, also used in tests."""

from bunko.stores.memory.store import Memory

__all__ = ["Memory", "build"]


def build() -> Memory:
    """Return an empty in-memory store."""
    return Memory()
