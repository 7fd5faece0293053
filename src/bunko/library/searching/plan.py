"""Plan a search: which tools it searches, how it ranks, which hits it returns, and what to tell about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

from bunko import sources
from bunko.errors import QueryError
from bunko.library.searching.selections import load_selection
from bunko.library.tools import catalog, web_defaults
from bunko.library.tools.build_config import ToolConfig
from bunko.library.tools.catalog import ToolNames
from bunko.library.tools.disabled_tools import disabled_notices, no_tool_error
from bunko.protocols import Embedder, Store
from bunko.search.passages import Extract, PassageOffsets, PassageRanges
from bunko.search.query_syntax import ParsedQuery, parse_query
from bunko.search.request import (
    MAX_HITS,
    RankRequest,
    SearchRequest,
    Selection,
    clean_query,
    clean_wordings,
    tool_search_settings,
)
from bunko.settings import Settings
from bunko.text.dates import resolve_date, time_zone
from bunko.text.labels import clean_label
from bunko.types import Hit, Tool
from bunko.types.ranking import OPTIONS, RankingOptions
from bunko.types.records import NO_FILTER, Filter, StoredDocument

# A longer phrase is recognised by its beginning.
_MAX_QUOTED_CHARS = 80
# Read at once, because every search does.
_get_options = attrgetter(*OPTIONS)


@dataclass(slots=True)
class SearchPlan:
    """A search with everything decided, made once from a request; what happens on the way is added to it."""

    request: SearchRequest
    library_tools: Sequence[Tool]  # all of the library, read once
    tools: Sequence[Tool]  # that are searched
    rank_request: RankRequest  # how the rows are ranked, and which hits are selected
    top_k: int  # hits of a page
    joins_hits: bool  # whether several hits may become one passage
    extents: Mapping[str, Extract]  # how much of a hit is returned, by the name of its tool
    notices: list[str]
    embedder: Embedder | None = None
    offsets: PassageOffsets = field(default_factory=dict)  # of the hits of a page, computed when they are selected
    words_only: set[int] = field(default_factory=set)  # ids of tools whose vectors this embedder cannot search

    @property
    def names(self) -> dict[int, str]:
        """Return the names of the tools that are searched, by id."""
        return {tool.id: tool.name for tool in self.tools}

    def search_words(self) -> None:
        """Search by words alone from now on."""
        self.rank_request = replace(self.rank_request, mode="bm25")


class Planner:
    """Makes plans from requests and what they leave to the settings of tools and of the library."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        tool_config: ToolConfig,
        *,
        rerank_count: int,  # 0: there is no reranker
        notices: Sequence[str],  # added to every answer
    ) -> None:
        self._settings, self._store, self._tool_config = settings, store, tool_config
        self._rerank_count, self._notices = rerank_count, notices

    def plan(
        self,
        request: SearchRequest,
        tools: Sequence[Tool],
        document_of: Callable[[Hit], StoredDocument | None],
        page_start: int | None,
    ) -> SearchPlan:
        """Return the plan of a search among all tools of a library.

        For a page of `top_k` passages, `page_start` is the number of hits before it: these and those of the page are
        returned, with their documents.
        """
        if not (request.query.strip() or request.where):
            raise QueryError("The query is empty", hint="Give words or a question, or filter by path, tag or date.")
        selected = self.select_tools(tools, request.tool, request.kinds)
        rank_request = self.resolve(
            request, selected if request.use_tool_settings else (), read_documents=page_start is not None
        )
        extents = extents_of(selected, request.extract)
        joins_hits = request.join_chunks or request.max_chars is not None or set(extents.values()) != {"chunk"}
        plan = SearchPlan(
            request, tools, selected, rank_request, rank_request.row_count, joins_hits and request.per_document != 1,
            extents,
            [*self._notices, *disabled_notices(self._store, self._tool_config, selected)],
        )  # fmt: skip
        plan.rank_request = _select(plan, document_of, page_start)
        return plan

    def select_tools(self, tools: Sequence[Tool], names: ToolNames, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools with some names, or the active ones; raise if `kinds` are given and none is of them."""
        selected = [tool for tool in catalog.select_from(tools, names) if not kinds or tool.kind in kinds]
        if kinds and not selected:
            raise no_tool_error(self._store, self._tool_config, kinds)
        return selected

    def resolve(self, request: SearchRequest, tools: Sequence[Tool], *, read_documents: bool = False) -> RankRequest:
        """Return a request with all settings: its own override those of the tools, which override the library's.

        Tools with different settings cannot be ranked together, so then the settings of none of them apply.
        """
        search_settings = self._settings.search
        values: dict[str, Any] = dict(zip(OPTIONS, _get_options(search_settings), strict=True))
        values |= {"mode": search_settings.mode, "top_k": search_settings.top_k}
        if not self._tool_config.uses_vectors() and all(map(self._tool_config.is_lexical, tools)):
            values["mode"] = "bm25"  # the default without vectors; an explicit mode that needs them raises an error
        elif search_settings.hybrid_enabled is not None:
            values["mode"] = "hybrid" if search_settings.hybrid_enabled else "semantic"
        sections = settings_sections(tools)
        if sections == {"memos"}:
            memos = self._settings.memos
            values |= {name: getattr(memos, name) for name, option in OPTIONS.items() if option.memos is not None}
            values["top_k"] = memos.top_k
        elif sections == {"web"}:
            values |= web_defaults.request_defaults(self._settings)
        tool_settings = [tool_search_settings(tool.options.search) for tool in tools]
        if tool_settings and all(other == tool_settings[0] for other in tool_settings):
            values |= tool_settings[0]
        mode, top_k = values.pop("mode"), values.pop("top_k")
        options = RankingOptions(**{**values, **request.ranking})
        where = self.resolve_filter(request.where) if request.where else NO_FILTER
        count = self._rerank_count if request.rerank else 0
        return RankRequest(
            clean_query(request.query),
            mode if request.mode is None else request.mode,
            top_k if request.top_k is None else request.top_k,
            options,
            where,
            request.explain,
            request.explain_texts,
            rerank_count=count,
            read_documents=read_documents,
            wordings=clean_wordings(request.query, request.also, request.passage),
        )

    def resolve_filter(self, where: Filter) -> Filter:
        """Return a filter whose dates are in ISO 8601 and in the time zone of the settings, with its selection."""
        now = self.local_time()
        since = resolve_date(where.since, now) if where.since else ""
        until = resolve_date(where.until, now, is_end=True) if where.until else ""
        selected_uris = load_selection(self._store, where.selection) if where.selection else None
        zone = self._settings.search.timezone or where.zone
        return replace(where, since=since, until=until, zone=zone, selected_uris=selected_uris)

    def local_time(self) -> datetime:
        """Return the current time in the time zone of the settings, else of the system."""
        zone = time_zone(self._settings.search.timezone)
        return datetime.now(zone) if zone else datetime.now()


def _select(
    plan: SearchPlan, document_of: Callable[[Hit], StoredDocument | None], page_start: int | None
) -> RankRequest:
    """Return how to rank `top_k` hits, after those of earlier pages, and a selection if not just the first ones.

    On a page that joins hits, as many are returned as make `top_k` passages.
    """
    request, rank_request, already_returned = plan.request, plan.rank_request, page_start or 0
    per_document, min_score = request.per_document, request.min_score
    if per_document is not None and per_document < 1:
        raise QueryError(
            f"{per_document} hits of a document cannot be returned", hint="Ask for 1 or more, or leave it out."
        )
    parsed = parse_query(rank_request.query) if request.operators else ParsedQuery(rank_request.query)
    if parsed.excluded and not parsed.words:
        raise QueryError(
            "The query only says what to leave out", hint="Add words to search for, such as: kyoto -temple."
        )
    new_ranges = None
    if page_start is not None and plan.joins_hits:
        new_ranges = partial(
            PassageRanges, document_of, plan.extents,
            already_returned=already_returned, query=parsed.words, max_chars=request.max_chars, offsets=plan.offsets,
        )  # fmt: skip
    folders = shared_folders(plan.tools) if len(plan.tools) > 1 else ()
    limit = min(plan.top_k, MAX_HITS - already_returned)
    has_limit = per_document is not None or min_score is not None
    is_selective = parsed.phrases or parsed.excluded or request.language or folders or has_limit
    if not is_selective and new_ranges is None:
        return replace(rank_request, row_count=already_returned + limit) if already_returned else rank_request
    selection = Selection(
        limit, parsed.phrases, parsed.excluded, request.language, min_score, per_document, request.fill_up, folders,
        already_returned, new_ranges,
    )  # fmt: skip
    return replace(rank_request, query=parsed.words, selection=selection)


def extents_of(tools: Sequence[Tool], extract: Extract | None = None) -> dict[str, Extract]:
    """Return how much of a hit of each tool is returned, by its name: as requested, else as the tool says."""
    return {tool.name: extract or tool.options.extract or "chunk" for tool in tools}


def settings_sections(tools: Sequence[Tool]) -> set[str]:
    """Return the settings sections of the kinds of these tools."""
    return {sources.section_of(tool.kind) for tool in tools}


def selection_notices(selection: Selection, hits: Sequence[Hit], best_score: float | None) -> list[str]:
    """Return what to tell about words and scores for which results were left out.

    `best_score` is that of the best result if all of them have too low a score.
    """
    notices = []
    if selection.excluded:
        words = [clean_label(word, _MAX_QUOTED_CHARS) for word in selection.excluded]
        # Somebody may have searched for an option of a command, such as -rf.
        option = next((word for word in words if word.isascii() and " " not in word), None)
        advice = f"; to search for -{option} itself, put it in quotes" if option else ""
        notices.append(f"Results with {_quote(selection.excluded, 'or')} are left out{advice}.")
    if best_score is not None:
        notices.append(f"All results have a score below {selection.min_score:g}; the best has {best_score:.4f}.")
    elif selection.phrases and not selection.excluded and not hits:
        pronoun = "its" if len(selection.phrases) == 1 else "their"
        notices.append(
            f"No result contains {_quote(selection.phrases, 'and')}. Without the quotes, {pronoun} words are searched."
        )
    return notices


def _quote(phrases: Sequence[str], conjunction: str) -> str:
    return f" {conjunction} ".join(f'"{clean_label(phrase, _MAX_QUOTED_CHARS)}"' for phrase in phrases)


def shared_folders(tools: Sequence[Tool]) -> tuple[tuple[str, str], ...]:
    """Return the names and folders of tools, the innermost first, if two of them may have the same files."""
    sources = sorted(tool.source + os.sep for tool in tools if tool.source)
    if not any(inner.startswith(outer) for outer, inner in pairwise(sources)):
        return ()
    innermost_first = sorted((tool for tool in tools if tool.source), key=lambda tool: len(tool.source), reverse=True)
    return tuple((tool.name, _folder_of(tool)) for tool in innermost_first)


def _folder_of(tool: Tool) -> str:
    """Return the folder that the documents of a tool are relative to."""
    kind, path = sources.find_kind(tool.kind), Path(tool.source)
    is_file = kind is not None and kind.root != "folder" and path.is_file()
    return (path.parent if is_file else path).as_posix()
