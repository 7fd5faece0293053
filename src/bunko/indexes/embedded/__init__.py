"""The in-process index: word and n-gram postings and vectors, derived from a store and rebuildable."""
