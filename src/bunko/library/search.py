"""Questions in, answers from fresh tools out: hits and passages, tags, dates, and whether a citation still stands."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

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

# Searches that are kept: more than anybody will judge.
_MAX_LOGGED_SEARCHES = 1000
_REQUEST_SETTINGS = (
    "fusion", "vector_weight", "k1", "b", "rrf_k", "similarity_threshold", "min_combined_score", "loanwords",
    "bridge",
)  # fmt: skip


class Searcher:
    """The ways to ask one library; where it may be written, each looks for changes first."""

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
        notices: Sequence[str],  # what every answer says
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
        """Answer from one tool or all active ones, or those of some kinds, looking for changes first where that is due.

        A tool's own settings hold where it is searched alone, or with tools that have the same, unless `own` is false.
        With `rewrite`, or where it is None and the settings say so, a chat model is asked for better words first, and
        they are searched instead; if they find nothing, or none come, the query is searched as it is.
        """
        tools = self._select_tools(tool, kinds)
        request = self.build_request(query, tools=tools if use_tool_settings else (), mode=mode, top_k=top_k, **options)
        notices = list(self._notices)
        self._tool_ids.update({one.name: one.id for one in tools})
        for one in tools:
            self._tool_config.check_tool(one, vectors=request.mode != "bm25")
        if refresh and not self._read_only:
            for one in tools:
                notices += self._refresh_tool(one, lexical_only=request.mode == "bm25")
        request = _fit_mode_to_tools(request, tools, notices)
        embedder = self._tool_config.embedder() if request.mode != "bm25" else None
        if embedder and use_tool_settings and _are_memos(tools):
            request = _with_noise_floor(request, embedder)
        names = {one.id: one.name for one in tools}
        words, notice = self._chat_models.rewrite_query(query[:MAX_QUERY_CHARS], rewrite)
        notices += [notice] if notice else []
        snapshot, hits = self._search_with_repair(names, embedder, replace(request, query=words) if words else request)
        if words and not hits:
            words = ""
            notices.append("The query in other words found nothing, so it was searched as it is.")
            snapshot, hits = self._search_with_repair(names, embedder, request)
        if len(query) > MAX_QUERY_CHARS:
            notices.append(f"Only the first {MAX_QUERY_CHARS} characters of the query were used.")
        looks = [self._refresher.last_check(one) for one in tools]
        freshness = Freshness(
            snapshot.generation,
            min((look.checked_at for look in looks if look.checked_at), default=""),
            sum(look.missing_files for look in looks),
        )
        hits = web_defaults.add_provenance(self._store, tools, hits)
        if self._settings.log.debug:
            log_answer(query, hits)
        return Answer(query, request.mode, hits, snapshot.size, freshness, notices, words)

    def _search_with_repair(
        self, names: dict[int, str], embedder: Embedder | None, request: SearchRequest
    ) -> tuple[Snapshot, list[Hit]]:
        """Return what was found, making a damaged index anew first."""
        try:
            return self._search_once(names, embedder, request)
        except (IndexError, KeyError, ValueError):
            # A damaged derived file shows in impossible numbers; it is made anew, and anything else is our bug.
            repaired = [self._indexes.index_of(tool_id).repair() for tool_id in names]
            if not any(repaired):
                raise
            _log.warning("A derived index file was damaged and has been made anew from the library.")
            return self._search_once(names, embedder, request)

    def _search_once(
        self, names: dict[int, str], embedder: Embedder | None, request: SearchRequest
    ) -> tuple[Snapshot, list[Hit]]:
        with self._store.read_transaction():
            if embedder is not None:
                for tool in self._store.tools():  # one may have been given other vectors since it was looked at
                    if tool.id in names:
                        self._tool_config.check_tool(tool)
            snapshot = self._indexes.snapshot(list(names))
            return snapshot, search(self._store, snapshot, names, embedder, request)

    def _refresh_tool(self, tool: Tool, *, lexical_only: bool) -> list[str]:
        """Absorb what changed; where only words are asked for, vectors that do not fit are no reason to say nothing."""
        try:
            return self._refresher.refresh_tool(tool)
        except LibraryMismatch as error:
            if not lexical_only:
                raise
            return [f"Changes are not taken in: {error.message}. {error.hint}"]

    def build_request(
        self,
        query: str,
        *,
        tools: Sequence[Tool] = (),
        mode: Mode | None = None,
        top_k: int | None = None,
        **options: Any,
    ) -> SearchRequest:
        """Return what the settings make of a query; the tools' own win over them, and what is given here over both.

        Two tools that want to be searched in different ways cannot be ranked together, so that then neither is heard.
        """
        chosen = self._settings.search
        base: dict[str, Any] = {name: getattr(chosen, name) for name in _REQUEST_SETTINGS}
        base |= {"mode": chosen.mode, "top_k": chosen.top_k}
        if not self._tool_config.uses_vectors():
            base["mode"] = "bm25"  # whoever wants no vectors means that; asked for explicitly, they are missed
        elif chosen.hybrid_enabled is not None:
            base["mode"] = "hybrid" if chosen.hybrid_enabled else "semantic"
        if _are_memos(tools):
            base |= {name: getattr(self._settings.memos, name) for name in ("fusion", "k1", "b", "top_k")}
        elif _are_web(tools):
            base |= web_defaults.request_defaults(self._settings)
        own = [tool_search_settings(tool.options.get("search")) for tool in tools]
        if own and all(one == own[0] for one in own):
            base |= own[0]
        if (where := options.get("where")) and chosen.timezone:
            options["where"] = replace(where, zone=chosen.timezone)
        given = options | {"mode": mode, "top_k": top_k}
        return SearchRequest(query, **(base | {name: value for name, value in given.items() if value is not None}))

    def passages(self, hits: Sequence[Hit], extract: Extract | None = None, **how: Any) -> list[Passage]:
        """Return what comes back for hits: as much as is asked for, else as much as each hit's tool says."""
        return extract_passages(hits, self.document_of, self._extract_of(extract), **how)

    def expand_hits(
        self, hits: list[Hit], extract: Extract | None = None, *, query: str = "", max_chars: int | None = None
    ) -> list[Hit]:
        """Return hits with as much text as is asked for, else as each hit's tool says; chunks stay as they are."""
        how = self._extract_of(extract)
        if max_chars is None and all(how(hit) == "chunk" for hit in hits):
            return hits
        found = extract_passages(hits, self.document_of, how, query=query, max_chars=max_chars)
        return [passage_as_hit(passage) for passage in found]

    def highlight_hits(self, hits: list[Hit], extract: Extract | None, *, query: str = "") -> list[Hit]:
        """Return widened hits as a reader sees them: words marked in snippets, and a sign for what was left out."""
        if extract not in ("snippet", "entry", "full"):
            return hits
        looked, found = snippet_terms(query), []
        for hit in hits:
            for one in extract_passages([hit], self.document_of, "chunk"):
                text = render_extract(
                    one.text, extract, looked, chars_before=one.chars_before, chars_after=one.chars_after
                )
                found.append(replace(hit, chunk=replace(hit.chunk, text=text)))
        return found

    def _extract_of(self, extract: Extract | None) -> Callable[[Hit], Extract]:
        if extract is not None:
            return lambda _: extract
        tools = catalog.tools(self._store)
        own: dict[str, Extract] = {tool.name: tool.options.get("extract", "chunk") for tool in tools}
        return lambda hit: own.get(hit.tool, "chunk")

    def document_of(self, hit: Hit) -> StoredDocument | None:
        """Return the document a hit stands in."""
        if hit.tool not in self._tool_ids:
            self._tool_ids[hit.tool] = catalog.get_tool(self._store, hit.tool).id
        return self._store.document(self._tool_ids[hit.tool], hit.uri)

    def verify_citation(self, citation: str, digest: str, *, tool: str | None = None) -> CitationCheck:
        """Say whether a cited passage still stands, looking for changes first."""
        verdicts = [CitationCheck("deleted", citation)]
        for one in catalog.select_tools(self._store, tool):
            if not self._read_only:
                self._refresher.refresh_tool(one)
            verdicts.append(verify_citation(self._store, one.id, citation, digest))
        # Two tools may hold a README.md: the one in which the passage stands is meant.
        return min(verdicts, key=lambda verdict: CITATION_STATUSES.index(verdict.status))

    def tags(self, tool: str | None = None, *, kinds: Sequence[str] = ()) -> list[tuple[str, int]]:
        """Return each tag of one tool, or of all active ones, and how many documents have it, the most used first."""
        number: Counter[str] = Counter()
        for one in self._select_fresh_tools(tool, kinds):
            number.update(dict(self._store.tags(one.id)))
        return sorted(number.items(), key=lambda item: (-item[1], item[0]))

    def recent_documents(
        self, tool: str | None = None, *, limit: int = 10, kinds: Sequence[str] = ()
    ) -> list[tuple[Tool, DatedDocument]]:
        """Return the documents of the latest dates with their tools, the latest first."""
        tools = self._select_fresh_tools(tool, kinds)
        found = [(one, dated) for one in tools for dated in self._store.recent_documents(one.id, limit=limit)]
        found.sort(key=lambda item: item[1].date, reverse=True)
        return found[:limit]

    def local_time(self) -> datetime:
        """Return the time it is where the settings say we are, or the system."""
        place = time_zone(self._settings.search.timezone)
        return datetime.now(place) if place else datetime.now()

    def _select_tools(self, name: str | None, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools a question is for; where it is for some kinds, there must be one."""
        tools = [tool for tool in catalog.select_tools(self._store, name) if not kinds or tool.kind in kinds]
        if kinds and not tools:
            raise UnknownName(
                f"This library has no active tool of the kind {' or '.join(kinds)}",
                hint=f"Import some with: bunko {'web add URL' if 'web' in kinds else 'build --input FOLDER'}.",
            )
        return tools

    def _select_fresh_tools(self, name: str | None, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools a question is for, as fresh as a search would have them."""
        tools = self._select_tools(name, kinds)
        if not self._read_only:
            for tool in tools:
                self._tool_config.check_tool(tool, vectors=False)
                self._refresh_tool(tool, lexical_only=True)
        return tools

    def log_search(self, query: str, tool: str | None = None) -> None:
        """Keep a search that a person or an assistant made, if the settings say so; never worth waiting for."""
        text = " ".join(escape_surrogates(query).split())
        if not self._settings.log.keep_searches or self._read_only or not text:
            return
        try:
            kept = self._store.log_search(text[:MAX_QUERY_CHARS], tool or "", now(), limit=_MAX_LOGGED_SEARCHES)
        except BunkoError as error:
            _log.warning("This search was not kept: %s", error.message)
        else:
            if not kept:
                _log.debug("This search was not kept: somebody else is writing.")


def _are_memos(tools: Sequence[Tool]) -> bool:
    return bool(tools) and all(tool.kind in catalog.MEMO_KINDS for tool in tools)


def _are_web(tools: Sequence[Tool]) -> bool:
    return bool(tools) and all(tool.kind == "web" for tool in tools)


def _with_noise_floor(request: SearchRequest, embedder: Embedder) -> SearchRequest:
    """Return a request that leaves out vectors with nothing in common: among ranks they would count like any other."""
    if request.mode != "hybrid" or request.fusion != "rrf" or request.similarity_threshold is not None:
        return request
    return replace(request, similarity_threshold=1 - embedder.noise_floor)


def _fit_mode_to_tools(request: SearchRequest, tools: Sequence[Tool], notices: list[str]) -> SearchRequest:
    """Return a request that tools without vectors can answer, and say so."""
    bare = [tool.name for tool in tools if not has_vectors(tool)]
    if request.mode == "bm25" or not bare:
        return request
    if request.mode == "semantic" and len(bare) == len(tools):
        again = shlex.join(["bunko", "build", "--input", tools[0].source])
        raise QueryError(
            f"{', '.join(bare)} was imported without vectors",
            hint=f"Use --mode bm25, or import it again with vectors: {again}",
        )
    notices.append(f"{', '.join(bare)} was imported without vectors, so it answers by words alone.")
    return replace(request, mode="bm25") if len(bare) == len(tools) else request
