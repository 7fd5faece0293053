"""The in-process index: word and gram postings and vectors, derived from a store and rebuildable."""
