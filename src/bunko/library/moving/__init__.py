"""Move a library to another store, or its searches to another index, and switch only when both are equal."""
