"""Search defaults and hit provenance for tools of web pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bunko.protocols import Store
from bunko.settings import Settings
from bunko.sources import find_kind
from bunko.types import Hit, Tool
from bunko.types.ranking import OPTIONS

WEB_TRUST = "web"
# The embedders that some defaults were tuned with.
_TUNED_PROVIDERS = ("local", "online")
_TUNED_CHUNK_SIZE, _TUNED_CHUNK_OVERLAP = 200, 30
# Larger chunks rank better with the bundled embedder, see docs/web.md; three of these still make a short answer.
_DEFAULT_CHUNK_SIZE = 800


def chunk_size(settings: Settings) -> int:
    """Return the maximum characters in a chunk of a page: the setting, else the default for the embedder."""
    if settings.web.chunk_size is not None:
        return settings.web.chunk_size
    return _TUNED_CHUNK_SIZE if settings.embedding.provider in _TUNED_PROVIDERS else _DEFAULT_CHUNK_SIZE


def chunk_overlap(settings: Settings) -> int:
    """Return how many characters neighbouring chunks share: the setting, else the default for the embedder."""
    if settings.web.chunk_overlap is not None:
        return min(settings.web.chunk_overlap, chunk_size(settings) - 1)
    return _TUNED_CHUNK_OVERLAP if settings.embedding.provider in _TUNED_PROVIDERS else 0


def request_defaults(settings: Settings) -> dict[str, Any]:
    """Return the request defaults for web pages: their own settings, else those tuned for the embedder."""
    defaults: dict[str, Any] = {"top_k": settings.web.top_k}
    for name, option in OPTIONS.items():
        if option.web is None:
            continue
        if (value := getattr(settings.web, name)) is not None:
            defaults[name] = value
        elif settings.embedding.provider in _TUNED_PROVIDERS:
            defaults[name] = option.web
    return defaults


def add_provenance(store: Store, tools: Sequence[Tool], hits: list[Hit]) -> list[Hit]:
    """Return the hits, those from the web with their trust level and when they were fetched."""
    web_tool_ids = {tool.name: tool.id for tool in tools if (kind := find_kind(tool.kind)) and kind.needs_pages}
    if not web_tool_ids:
        return hits
    fetched_at = {
        (name, page.url): page.fetched_at
        for name, tool_id in web_tool_ids.items()
        for page in store.pages.select(tool_id, sorted({hit.uri for hit in hits if hit.tool == name}))
    }
    return [
        replace(hit, trust=WEB_TRUST, fetched_at=fetched_at.get((hit.tool, hit.uri), ""))
        if hit.tool in web_tool_ids
        else hit
        for hit in hits
    ]
