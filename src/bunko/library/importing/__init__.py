"""Keep a library up to date with its sources."""
