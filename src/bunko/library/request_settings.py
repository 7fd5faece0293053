"""Complete the requests of searches with the settings of tools and of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from bunko import sources
from bunko.library import web_defaults
from bunko.library.build_config import ToolConfig
from bunko.library.selections import load_selection
from bunko.protocols import Store
from bunko.records import NO_FILTER, Filter
from bunko.search.request import RANKING_OPTIONS, RankRequest, SearchRequest, tool_search_settings
from bunko.settings import Settings
from bunko.text.dates import resolve_date, time_zone
from bunko.types import Tool

# The options that a request may leave to the settings, read at once because every search reads them twice.
_REQUEST_OPTIONS = ("mode", "top_k", *RANKING_OPTIONS)
_get_options = attrgetter(*_REQUEST_OPTIONS)


class RequestResolver:
    """Adds to requests what they leave to the settings."""

    def __init__(self, settings: Settings, store: Store, tool_config: ToolConfig, *, rerank_count: int) -> None:
        self._settings, self._store, self._tool_config = settings, store, tool_config
        self._rerank_count = rerank_count  # 0: there is no reranker

    def resolve(self, request: SearchRequest, tools: Sequence[Tool], *, read_documents: bool = False) -> RankRequest:
        """Return a request with all settings: its own override those of the tools, which override the library's.

        Tools with different settings cannot be ranked together, so then the settings of none of them apply.
        """
        search_settings = self._settings.search
        values: dict[str, Any] = dict(zip(_REQUEST_OPTIONS, _get_options(search_settings), strict=True))
        if not self._tool_config.uses_vectors() and all(map(self._tool_config.is_lexical, tools)):
            values["mode"] = "bm25"  # the default without vectors; an explicit mode that needs them raises an error
        elif search_settings.hybrid_enabled is not None:
            values["mode"] = "hybrid" if search_settings.hybrid_enabled else "semantic"
        sections = settings_sections(tools)
        if sections == {"memos"}:
            values |= {name: getattr(self._settings.memos, name) for name in ("fusion", "k1", "b", "top_k")}
        elif sections == {"web"}:
            values |= web_defaults.request_defaults(self._settings)
        tool_settings = [tool_search_settings(tool.options.search) for tool in tools]
        if tool_settings and all(other == tool_settings[0] for other in tool_settings):
            values |= tool_settings[0]
        for name, value in zip(_REQUEST_OPTIONS, _get_options(request), strict=True):
            if value is not None:
                values[name] = value
        where = self.resolve_filter(request.where) if request.where else NO_FILTER
        count = self._rerank_count if request.rerank else 0
        return RankRequest(
            request.query, where=where, explain=request.explain, explain_texts=request.explain_texts,
            rerank_count=count, read_documents=read_documents, **values,
        )  # fmt: skip

    def resolve_filter(self, where: Filter) -> Filter:
        """Return a filter whose dates are in ISO 8601 and in the time zone of the settings, with its selection."""
        now = self.local_time()
        since = resolve_date(where.since, now) if where.since else ""
        until = resolve_date(where.until, now) if where.until else ""
        selected_uris = load_selection(self._store, where.selection) if where.selection else None
        zone = self._settings.search.timezone or where.zone
        return replace(where, since=since, until=until, zone=zone, selected_uris=selected_uris)

    def local_time(self) -> datetime:
        """Return the current time in the time zone of the settings, else of the system."""
        zone = time_zone(self._settings.search.timezone)
        return datetime.now(zone) if zone else datetime.now()


def settings_sections(tools: Sequence[Tool]) -> set[str]:
    """Return the settings sections of the kinds of these tools."""
    return {sources.section_of(tool.kind) for tool in tools}
