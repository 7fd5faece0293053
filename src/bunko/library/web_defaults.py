"""Tools of web pages and the settings in, how they are searched and where each hit came from out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bunko.protocols import Store
from bunko.settings import Settings
from bunko.types import Hit, Tool

WEB_TRUST = "web"
# What suits the embedders that `local` and `online` name, as they were tuned with them.
_TUNED_REQUEST: dict[str, float] = {"vector_weight": 0.9, "k1": 2.5, "b": 0.5, "min_combined_score": 0.75}
_TUNED_PROVIDERS = ("local", "online")
_TUNED_CHUNK_SIZE, _TUNED_CHUNK_OVERLAP = 200, 30
# Larger ones rank better with the bundled embedder, see docs/web.md; three of these are still a short answer.
_DEFAULT_CHUNK_SIZE = 800


def chunk_size(settings: Settings) -> int:
    """Return the most characters in a chunk of a page: as was set, else as suits the embedder."""
    if settings.web.chunk_size is not None:
        return settings.web.chunk_size
    return _TUNED_CHUNK_SIZE if settings.embedding.provider in _TUNED_PROVIDERS else _DEFAULT_CHUNK_SIZE


def chunk_overlap(settings: Settings) -> int:
    """Return how many characters the chunks of one long text share: as was set, else as suits the embedder."""
    if settings.web.chunk_overlap is not None:
        return settings.web.chunk_overlap
    return _TUNED_CHUNK_OVERLAP if settings.embedding.provider in _TUNED_PROVIDERS else 0


def request_defaults(settings: Settings) -> dict[str, Any]:
    """Return how web pages alone are searched: as was set for them, else as was set for all, else as suits."""
    found: dict[str, Any] = {"top_k": settings.web.top_k}
    for name, tuned in _TUNED_REQUEST.items():
        if (own := getattr(settings.web, name)) is not None:
            found[name] = own
        elif settings.embedding.provider in _TUNED_PROVIDERS:
            found[name] = tuned
    return found


def add_provenance(store: Store, tools: Sequence[Tool], hits: list[Hit]) -> list[Hit]:
    """Return hits with when they were fetched, those from the web marked as such."""
    web = {tool.name: tool.id for tool in tools if tool.kind == "web"}
    if not web:
        return hits
    fetched = {
        (name, page.url): page.fetched_at
        for name, tool_id in web.items()
        for page in store.pages(tool_id, sorted({hit.uri for hit in hits if hit.tool == name}))
    }
    return [
        replace(hit, trust=WEB_TRUST, fetched_at=fetched.get((hit.tool, hit.uri), "")) if hit.tool in web else hit
        for hit in hits
    ]
