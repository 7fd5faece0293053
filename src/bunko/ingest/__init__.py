"""Read sources into a store: scan, read, chunk, embed, write."""
