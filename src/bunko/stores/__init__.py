"""Store the tools and documents of a library. The memory store is the reference for all others."""
