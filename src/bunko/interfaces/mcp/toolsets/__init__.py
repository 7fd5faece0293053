"""Toolsets: each file is one, its name is what `--toolsets` takes, `tools()` is its door."""

NAMES = ("folder", "tools", "memos", "web")
# Accepted in a configuration, so that it need not change later; they have no tools yet.
EMPTY = ("memos", "web")
# What tools of a library may not be called, because a toolset has it.
RESERVED = frozenset(
    "search reindex verify job query_memos list_tags get_recent_memos rag_search rag_add rag_crawl rag_delete "
    "rag_stats".split()
)
