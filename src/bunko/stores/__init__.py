"""Documents in, documents out: where a library's truth lies. The memory store is the reference for all others."""
