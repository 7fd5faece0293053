"""Check after an import that searches find its texts."""

from __future__ import annotations

from bunko.embedders import as_remote
from bunko.library.build_config import ToolConfig
from bunko.protocols import IndexView, Store
from bunko.records import EmbeddingUsage
from bunko.types import Tool


def unfindable_texts(store: Store, config: ToolConfig, view: IndexView, tool: Tool) -> list[str]:
    """Return messages about searches that do not find a tool's texts, and record the calls of a remote embedder."""
    from bunko.library import doctor  # here: a search imports this module too

    # Documents without vectors cannot be found by them.
    embedder = None if tool.built.lacks_vectors else config.embedder_of(tool)
    remote = as_remote(embedder)
    calls_before = remote.stats.calls if remote else 0
    problems = doctor.search_problems(store, view, tool, embedder, per_language=8)
    if remote and remote.stats.calls > calls_before:
        store.documents.write(tool.id, usage={remote.name: EmbeddingUsage(calls=remote.stats.calls - calls_before)})
    return problems
