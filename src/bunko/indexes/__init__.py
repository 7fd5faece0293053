"""Search indexes: derived from a store and rebuildable at any time."""
