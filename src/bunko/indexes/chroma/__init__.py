"""Find the nearest vectors in Chroma; words are answered by the embedded index."""
