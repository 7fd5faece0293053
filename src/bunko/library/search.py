"""Search up-to-date tools: hits, passages, tags, recent documents and citations."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bunko import sources
from bunko.errors import BunkoError, LibraryMismatch, QueryError, UnknownName
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.library import catalog, web_defaults
from bunko.library.build_config import ToolConfig, has_vectors
from bunko.library.indexes import ToolIndexes
from bunko.library.llm import ChatModels
from bunko.library.refresh import Refresher
from bunko.protocols import Embedder, Store
from bunko.records import DatedDocument, StoredDocument
from bunko.search.citations import CITATION_STATUSES, CitationCheck, verify_citation
from bunko.search.passages import Extract, Passage, extract_passages, passage_as_hit, render_extract, snippet_terms
from bunko.search.rank import MAX_QUERY_CHARS, SearchRequest, log_answer, search, tool_search_settings
from bunko.settings import Settings
from bunko.text.dates import time_zone
from bunko.text.normalise import escape_surrogates
from bunko.timing import now
from bunko.types import Answer, Freshness, Hit, Mode, Tool

_log = logging.getLogger("bunko.library")

# Logged searches: more than anybody will judge.
_MAX_LOGGED_SEARCHES = 1000
_REQUEST_SETTINGS = (
    "fusion", "vector_weight", "k1", "b", "rrf_k", "similarity_threshold", "min_combined_score", "loanwords",
    "bridge",
)  # fmt: skip


class Searcher:
    """The search methods of one library; each imports changes first unless the library is read-only."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        tool_config: ToolConfig,
        indexes: ToolIndexes,
        refresher: Refresher,
        chat_models: ChatModels,
        *,
        read_only: bool,
        notices: Sequence[str],  # added to every answer
    ) -> None:
        self._settings, self._store, self._tool_config, self._indexes = settings, store, tool_config, indexes
        self._refresher, self._chat_models, self._read_only, self._notices = refresher, chat_models, read_only, notices
        self._tool_ids: dict[str, int] = {}

    def search(
        self,
        query: str,
        *,
        tool: str | None = None,
        mode: Mode | None = None,
        top_k: int | None = None,
        refresh: bool = True,
        use_tool_settings: bool = True,
        kinds: Sequence[str] = (),
        rewrite: bool | None = False,
        **options: Any,
    ) -> Answer:
        """Search one tool, all active ones, or those of some kinds, importing changes first if a check is due.

        A tool's own settings apply if it is searched alone or with tools that have the same settings, unless
        `use_tool_settings` is false. With `rewrite`, or if it is None and the settings enable it, a chat model rewrites
        the query first; if that fails or finds nothing, the original query is searched.
        """
        tools = self._select_tools(tool, kinds)
        request = self.build_request(query, tools=tools if use_tool_settings else (), mode=mode, top_k=top_k, **options)
        notices = list(self._notices)
        self._tool_ids.update({selected.name: selected.id for selected in tools})
        for selected in tools:
            self._tool_config.check_tool(selected, vectors=request.mode != "bm25")
        if refresh and not self._read_only:
            for selected in tools:
                notices += self._refresh_tool(selected, lexical_only=request.mode == "bm25")
        request = _fit_mode_to_tools(request, tools, notices)
        embedder = self._tool_config.embedder() if request.mode != "bm25" else None
        if embedder and use_tool_settings and _sections(tools) == {"memos"}:
            request = _with_noise_floor(request, embedder)
        names = {selected.id: selected.name for selected in tools}
        rewritten, notice = self._chat_models.rewrite_query(query[:MAX_QUERY_CHARS], rewrite)
        notices += [notice] if notice else []
        snapshot, hits = self._search_with_repair(
            names, embedder, replace(request, query=rewritten) if rewritten else request
        )
        if rewritten and not hits:
            rewritten = ""
            notices.append("The rewritten query found nothing, so the original query was searched.")
            snapshot, hits = self._search_with_repair(names, embedder, request)
        if len(query) > MAX_QUERY_CHARS:
            notices.append(f"Only the first {MAX_QUERY_CHARS} characters of the query were used.")
        checks = [self._refresher.last_check(selected) for selected in tools]
        freshness = Freshness(
            snapshot.generation,
            min((check.checked_at for check in checks if check.checked_at), default=""),
            sum(check.missing_files for check in checks),
        )
        hits = web_defaults.add_provenance(self._store, tools, hits)
        if self._settings.log.debug:
            log_answer(query, hits)
        return Answer(query, request.mode, hits, snapshot.size, freshness, notices, rewritten)

    def _search_with_repair(
        self, names: dict[int, str], embedder: Embedder | None, request: SearchRequest
    ) -> tuple[Snapshot, list[Hit]]:
        """Search, and if an index is damaged, rebuild it and search again."""
        try:
            return self._search_once(names, embedder, request)
        except (IndexError, KeyError, ValueError):
            # A damaged derived file causes impossible numbers and is rebuilt; anything else is our bug.
            repaired = [self._indexes.index_of(tool_id).repair() for tool_id in names]
            if not any(repaired):
                raise
            _log.warning("A derived index file was damaged and has been rebuilt from the library.")
            return self._search_once(names, embedder, request)

    def _search_once(
        self, names: dict[int, str], embedder: Embedder | None, request: SearchRequest
    ) -> tuple[Snapshot, list[Hit]]:
        with self._store.read_transaction():
            if embedder is not None:
                for tool in self._store.tools.all():  # a tool may have been re-embedded since it was checked
                    if tool.id in names:
                        self._tool_config.check_tool(tool)
            snapshot = self._indexes.snapshot(list(names))
            return snapshot, search(self._store, snapshot, names, embedder, request)

    def _refresh_tool(self, tool: Tool, *, lexical_only: bool) -> list[str]:
        """Import changes; if `lexical_only`, a mismatch of vectors becomes a notice instead of an error."""
        try:
            return self._refresher.refresh_tool(tool)
        except LibraryMismatch as error:
            if not lexical_only:
                raise
            return [f"Changes were not imported: {error.message}. {error.hint}"]

    def build_request(
        self,
        query: str,
        *,
        tools: Sequence[Tool] = (),
        mode: Mode | None = None,
        top_k: int | None = None,
        **options: Any,
    ) -> SearchRequest:
        """Return the request for a query: arguments override the tools' own settings, which override the settings.

        Tools with different settings cannot be ranked together, so then the settings of none of them apply.
        """
        search_settings = self._settings.search
        values: dict[str, Any] = {name: getattr(search_settings, name) for name in _REQUEST_SETTINGS}
        values |= {"mode": search_settings.mode, "top_k": search_settings.top_k}
        if not self._tool_config.uses_vectors():
            values["mode"] = "bm25"  # the default without vectors; an explicit mode that needs them raises an error
        elif search_settings.hybrid_enabled is not None:
            values["mode"] = "hybrid" if search_settings.hybrid_enabled else "semantic"
        sections = _sections(tools)
        if sections == {"memos"}:
            values |= {name: getattr(self._settings.memos, name) for name in ("fusion", "k1", "b", "top_k")}
        elif sections == {"web"}:
            values |= web_defaults.request_defaults(self._settings)
        tool_settings = [tool_search_settings(tool.options.get("search")) for tool in tools]
        if tool_settings and all(other == tool_settings[0] for other in tool_settings):
            values |= tool_settings[0]
        if (where := options.get("where")) and search_settings.timezone:
            options["where"] = replace(where, zone=search_settings.timezone)
        arguments = options | {"mode": mode, "top_k": top_k}
        return SearchRequest(
            query, **(values | {name: value for name, value in arguments.items() if value is not None})
        )

    def passages(self, hits: Sequence[Hit], extract: Extract | None = None, **how: Any) -> list[Passage]:
        """Return the passages of hits in the given extent, else in the extent of each hit's tool."""
        return extract_passages(hits, self.document_of, self._extract_of(extract), **how)

    def expand_hits(
        self, hits: list[Hit], extract: Extract | None = None, *, query: str = "", max_chars: int | None = None
    ) -> list[Hit]:
        """Return hits with the text of the given extent, else of each hit's tool; chunks are unchanged."""
        extract_of = self._extract_of(extract)
        if max_chars is None and all(extract_of(hit) == "chunk" for hit in hits):
            return hits
        passages = extract_passages(hits, self.document_of, extract_of, query=query, max_chars=max_chars)
        return [passage_as_hit(passage) for passage in passages]

    def highlight_hits(self, hits: list[Hit], extract: Extract | None, *, query: str = "") -> list[Hit]:
        """Return expanded hits as readers see them: query terms marked in snippets, and omissions indicated."""
        if extract not in ("snippet", "entry", "full"):
            return hits
        terms, highlighted = snippet_terms(query), []
        for hit in hits:
            for passage in extract_passages([hit], self.document_of, "chunk"):
                text = render_extract(
                    passage.text, extract, terms, chars_before=passage.chars_before, chars_after=passage.chars_after
                )
                highlighted.append(replace(hit, chunk=replace(hit.chunk, text=text)))
        return highlighted

    def _extract_of(self, extract: Extract | None) -> Callable[[Hit], Extract]:
        if extract is not None:
            return lambda _: extract
        tools = catalog.tools(self._store)
        extract_by_tool: dict[str, Extract] = {tool.name: tool.options.get("extract", "chunk") for tool in tools}
        return lambda hit: extract_by_tool.get(hit.tool, "chunk")

    def document_of(self, hit: Hit) -> StoredDocument | None:
        """Return the document of a hit."""
        if hit.tool not in self._tool_ids:
            self._tool_ids[hit.tool] = catalog.get_tool(self._store, hit.tool).id
        return self._store.documents.get(self._tool_ids[hit.tool], hit.uri)

    def verify_citation(self, citation: str, digest: str, *, tool: str | None = None) -> CitationCheck:
        """Return whether a cited passage is still in its document, importing changes first."""
        checks = [CitationCheck("deleted", citation)]
        for selected in catalog.select_tools(self._store, tool):
            if not self._read_only:
                self._refresher.refresh_tool(selected)
            checks.append(verify_citation(self._store, selected.id, citation, digest))
        # Two tools may have a README.md: the one that contains the passage is meant.
        return min(checks, key=lambda check: CITATION_STATUSES.index(check.status))

    def tags(self, tool: str | None = None, *, kinds: Sequence[str] = ()) -> list[tuple[str, int]]:
        """Return the tags of one tool or all active ones with their document counts, the most frequent first."""
        counts: Counter[str] = Counter()
        for selected in self._select_fresh_tools(tool, kinds):
            counts.update(dict(self._store.stats.tags(selected.id)))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def recent_documents(
        self, tool: str | None = None, *, limit: int = 10, kinds: Sequence[str] = ()
    ) -> list[tuple[Tool, DatedDocument]]:
        """Return the most recently dated documents with their tools, the latest first."""
        tools = self._select_fresh_tools(tool, kinds)
        documents = [
            (selected, document)
            for selected in tools
            for document in self._store.stats.recent_documents(selected.id, limit=limit)
        ]
        documents.sort(key=lambda item: item[1].date, reverse=True)
        return documents[:limit]

    def local_time(self) -> datetime:
        """Return the current time in the time zone of the settings, else of the system."""
        zone = time_zone(self._settings.search.timezone)
        return datetime.now(zone) if zone else datetime.now()

    def _select_tools(self, name: str | None, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools to search; raise if `kinds` are given and no active tool is of them."""
        tools = [tool for tool in catalog.select_tools(self._store, name) if not kinds or tool.kind in kinds]
        if kinds and not tools:
            kind = sources.find_kind(kinds[0])
            raise UnknownName(
                f"This library has no active tool of kind {' or '.join(kinds)}",
                hint=f"Import one with: {kind.import_command if kind else 'bunko import'}.",
            )
        return tools

    def _select_fresh_tools(self, name: str | None, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools to search after importing their changes."""
        tools = self._select_tools(name, kinds)
        if not self._read_only:
            for tool in tools:
                self._tool_config.check_tool(tool, vectors=False)
                self._refresh_tool(tool, lexical_only=True)
        return tools

    def log_search(self, query: str, tool: str | None = None) -> None:
        """Log a search of a person or an assistant if the settings enable it; never wait for the library."""
        text = " ".join(escape_surrogates(query).split())
        if not self._settings.log.keep_searches or self._read_only or not text:
            return
        try:
            logged = self._store.cache.log_search(text[:MAX_QUERY_CHARS], tool or "", now(), limit=_MAX_LOGGED_SEARCHES)
        except BunkoError as error:
            _log.warning("The search was not logged: %s", error.message)
        else:
            if not logged:
                _log.debug("The search was not logged: another process is writing.")


def _sections(tools: Sequence[Tool]) -> set[str]:
    """Return the settings sections of the kinds of these tools."""
    return {sources.section_of(tool.kind) for tool in tools}


def _with_noise_floor(request: SearchRequest, embedder: Embedder) -> SearchRequest:
    """Return a request without unrelated vectors: reciprocal rank fusion would count them like any other."""
    if request.mode != "hybrid" or request.fusion != "rrf" or request.similarity_threshold is not None:
        return request
    return replace(request, similarity_threshold=1 - embedder.noise_floor)


def _fit_mode_to_tools(request: SearchRequest, tools: Sequence[Tool], notices: list[str]) -> SearchRequest:
    """Return a request that tools without vectors can answer, and add a notice."""
    lexical_tools = [tool.name for tool in tools if not has_vectors(tool)]
    if request.mode == "bm25" or not lexical_tools:
        return request
    if request.mode == "semantic" and len(lexical_tools) == len(tools):
        command = shlex.join(["bunko", "build", "--input", tools[0].source])
        raise QueryError(
            f"{', '.join(lexical_tools)} was imported without vectors",
            hint=f"Use --mode bm25, or import it again with vectors: {command}",
        )
    notices.append(f"{', '.join(lexical_tools)} was imported without vectors, so only its words are searched.")
    return replace(request, mode="bm25") if len(lexical_tools) == len(tools) else request
