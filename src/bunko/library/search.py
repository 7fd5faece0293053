"""Search up-to-date tools: hits, passages, tags, recent documents and citations."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bunko.activity import reports_search
from bunko.errors import (
    BunkoError,
    EmbedderError,
    IndexFailure,
    LibraryDamaged,
    LibraryTooNew,
    LibraryUnreachable,
    QueryError,
)
from bunko.library import catalog, embedder_choice, web_defaults
from bunko.library.assistant_names import AssistantNames, assistant_names
from bunko.library.build_config import ToolConfig
from bunko.library.catalog import ToolNames
from bunko.library.disabled_tools import disabled_notices, no_tool_error
from bunko.library.embedder_choice import NO_EMBEDDER, EmbedderChoice, choose_embedder, words_only_notice
from bunko.library.hit_selection import add_selection, selection_notices
from bunko.library.llm import ChatModels
from bunko.library.missing_vectors import MissingVectors
from bunko.library.newest import newest_hits
from bunko.library.outages import Outages
from bunko.library.refresh import Refresher
from bunko.library.request_settings import RequestResolver, settings_sections
from bunko.library.search_log import SearchLog
from bunko.observer import NO_OBSERVER, Observer
from bunko.protocols import Index, IndexView, Store
from bunko.records import NO_FILTER, DatedDocument, Filter, StoredDocument
from bunko.search.citations import CITATION_STATUSES, CitationCheck, verify_citation
from bunko.search.hits import log_answer, search
from bunko.search.passages import Extract, Passage, chunk_passages, extract_passages
from bunko.search.request import (
    MAX_QUERY_CHARS,
    RankRequest,
    SearchRequest,
    Selection,
)
from bunko.settings import Settings
from bunko.types import Answer, Freshness, Hit, Tool

if TYPE_CHECKING:
    from bunko.library.reranking import Reranking

_log = logging.getLogger("bunko.library")


class Searcher:
    """The search methods of one library; each imports changes first unless the library is read-only."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        tool_config: ToolConfig,
        index: Index,
        refresher: Refresher,
        outages: Outages,
        missing_vectors: MissingVectors,
        chat_models: ChatModels,
        reranking: Reranking | None,
        *,
        read_only: bool,
        notices: Sequence[str],  # added to every answer
    ) -> None:
        self._settings, self._store, self._tool_config, self._index = settings, store, tool_config, index
        self._refresher, self._outages, self._chat_models = refresher, outages, chat_models
        self._missing_vectors, self._reranking = missing_vectors, reranking
        self._read_only, self._notices = read_only, notices
        self.requests = RequestResolver(settings, store, tool_config, rerank_count=reranking.count if reranking else 0)
        self._tool_ids: dict[str, int] = {}
        self.log = SearchLog(store, enabled=settings.log.keep_searches and not read_only)

    @reports_search
    def answer(
        self,
        search_request: SearchRequest,
        *,
        limit: int | None = None,
        tools: Sequence[Tool] | None = None,  # all of the library, if they were just read
        read_documents: bool = False,
        observer: Observer = NO_OBSERVER,
    ) -> Answer:
        """Search some tools, all active ones, or those of some kinds, importing changes first if a check is due.

        A tool's own settings apply if it is searched alone or with tools that have the same settings, unless
        `use_tool_settings` is false. With `rewrite`, or if it is None and the settings enable it, a chat model rewrites
        the query first; if that fails or finds nothing, the original query is searched. For pages of `top_k` hits,
        `limit` is the number of hits up to the end of a page. With `read_documents`, hits come with their documents.
        """
        query, use_tool_settings = search_request.query, search_request.use_tool_settings
        if not (query.strip() or search_request.where):
            raise QueryError("The query is empty", hint="Give words or a question, or filter by path, tag or date.")
        tools = self._select_tools(search_request.tool, search_request.kinds, tools)
        request = self.requests.resolve(
            search_request, tools if use_tool_settings else (), read_documents=read_documents
        )
        request = add_selection(request, search_request, tools, limit or request.top_k)
        notices = [*self._notices, *disabled_notices(self._store, self._tool_config, tools)]
        self._tool_ids.update({selected.name: selected.id for selected in tools})
        if search_request.refresh and not self._read_only:
            for selected in tools:
                notices += self._refresh_tool(selected, vectors=request.mode != "bm25", observer=observer)
        notices += self._tool_config.difference_notices(tools, vectors=request.mode != "bm25")
        if not query.strip():
            return self._newest(tools, request, notices)
        choice, request = self._choose_embedder(request, tools, notices, use_tool_settings=use_tool_settings)
        names = {selected.id: selected.name for selected in tools}
        words = request.query
        rewritten, notice = self._chat_models.rewrite_query(words[:MAX_QUERY_CHARS], search_request.rewrite)
        notices += [notice] if notice else []
        if rewritten:
            request = replace(request, query=rewritten)
        view, hits, request = self._search_or_fall_back(names, choice, request, notices)
        if rewritten and not hits:
            rewritten = ""
            notices.append("The rewritten query found nothing, so the original query was searched.")
            view, hits, request = self._search_or_fall_back(names, choice, replace(request, query=words), notices)
        hits, reranker = self._reranking.rerank(request, hits, notices) if self._reranking else (hits, "")
        if request.selection is not None:
            notices += self._selection_notices(names, choice, request, request.selection, hits)
        notices += view.notices
        if len(query) > MAX_QUERY_CHARS:
            notices.append(f"Only the first {MAX_QUERY_CHARS} characters of the query were used.")
        if choice.embedder is not None and choice.embedder.is_remote:
            notices += self._missing_vectors.search_notices(tools)
        hits = web_defaults.add_provenance(self._store, tools, hits)
        if self._settings.log.debug:
            log_answer(query, hits)
        freshness, notices = self._freshness(view, tools), list(dict.fromkeys(notices))
        return Answer(query, request.mode, hits, view.size, freshness, notices, rewritten, words, reranker)

    def _freshness(self, view: IndexView, tools: Sequence[Tool]) -> Freshness:
        checks = [self._refresher.last_check(tool) for tool in tools]
        checked_at = min((check.checked_at for check in checks if check.checked_at), default="")
        return Freshness(view.generation, checked_at, sum(check.missing_files for check in checks))

    def _choose_embedder(
        self, request: RankRequest, tools: Sequence[Tool], notices: list[str], *, use_tool_settings: bool
    ) -> tuple[EmbedderChoice, RankRequest]:
        """Return the embedder of the query, and the request as it can be answered with it."""
        request = self._fit_mode_to_tools(request, tools, notices)
        if request.mode == "bm25":
            return NO_EMBEDDER, request
        choice = choose_embedder(self._tool_config, self._outages, tools)
        notices += choice.notices
        if choice.embedder is None:
            return choice, replace(request, mode="bm25")
        if use_tool_settings and settings_sections(tools) == {"memos"}:
            request = embedder_choice.with_noise_floor(request, choice.embedder)
        return choice, request

    def _fit_mode_to_tools(self, request: RankRequest, tools: Sequence[Tool], notices: list[str]) -> RankRequest:
        """Return a request that tools without vectors can answer, and add a notice."""
        lexical_tools = [tool for tool in tools if self._tool_config.is_lexical(tool)]
        if request.mode == "bm25" or not lexical_tools:
            return request
        names = ", ".join(tool.name for tool in lexical_tools)
        command = self._tool_config.vector_command(lexical_tools[0])
        if request.mode == "semantic" and len(lexical_tools) == len(tools):
            raise QueryError(
                f"{names} was imported without vectors", hint=f"Search with mode bm25, or compute vectors: {command}"
            )
        notices.append(
            f"{names} was imported without vectors, so only its words are searched. To compute them: {command}"
        )
        return replace(request, mode="bm25") if len(lexical_tools) == len(tools) else request

    def _newest(self, tools: Sequence[Tool], request: RankRequest, notices: list[str]) -> Answer:
        """Answer an empty query with the newest documents that match its filter, each with its first chunk."""
        limit = request.selection.limit if request.selection else request.top_k
        hits = newest_hits(self._store, tools, request.where, limit)
        hits = web_defaults.add_provenance(self._store, tools, hits)
        with self._store.read_transaction():
            size = sum(self._store.stats.totals(tool.id).chunks for tool in tools)
            generation = self._store.generation()
        return Answer(request.query, request.mode, hits, size, Freshness(generation), notices)

    def _search_or_fall_back(
        self, names: dict[int, str], choice: EmbedderChoice, request: RankRequest, notices: list[str]
    ) -> tuple[IndexView, list[Hit], RankRequest]:
        """Search, by words alone if the embedder fails; return the request that was answered too."""
        if request.mode != "bm25" and choice.embedder is not None:
            try:
                view, hits = self._search_with_repair(names, choice, request)
            except EmbedderError as error:
                self._outages.begin(choice.embedder, error.message)
                notices.append(words_only_notice(error.message))
                request = replace(request, mode="bm25")
            else:
                self._outages.end(choice.embedder)
                return view, hits, request
        return *self._search_with_repair(names, choice, request), request

    def _selection_notices(
        self,
        names: dict[int, str],
        choice: EmbedderChoice,
        request: RankRequest,
        selection: Selection,
        hits: Sequence[Hit],
    ) -> list[str]:
        best: Sequence[Hit] = ()
        if selection.min_score is not None and not hits:
            request = replace(request, selection=replace(selection, limit=1, min_score=None))
            best = self._search_or_fall_back(names, choice, request, [])[1]
        return selection_notices(selection, hits, best[0].score if best else None)

    def _search_with_repair(
        self, names: dict[int, str], choice: EmbedderChoice, request: RankRequest
    ) -> tuple[IndexView, list[Hit]]:
        """Search, and if an index is damaged, rebuild it and search again."""
        try:
            return self._search_once(names, choice, request)
        # The server of the index went away: the next view is of what else there is. Or that of the library did, and may
        # be back: everything is read again, from one new state.
        except (IndexFailure, LibraryUnreachable):
            return self._search_once(names, choice, request)
        except (IndexError, KeyError, ValueError):
            # A damaged derived file causes impossible numbers and is rebuilt; anything else is our bug.
            repaired = [self._index.repair(tool_id) for tool_id in names]
            if not any(repaired):
                raise
            _log.warning("A derived index file was damaged and has been rebuilt from the library.")
            return self._search_once(names, choice, request)

    def _search_once(
        self, names: dict[int, str], choice: EmbedderChoice, request: RankRequest
    ) -> tuple[IndexView, list[Hit]]:
        embedder = choice.embedder if request.mode != "bm25" else None
        with self._store.read_transaction():
            without_vectors = set(choice.lexical_ids)
            if embedder is not None:
                for tool in self._store.tools.all():  # a tool may have been re-embedded since it was chosen
                    if tool.id in names and tool.built.embedder not in (None, "none", embedder.name):
                        without_vectors.add(tool.id)
            view = self._index.view(list(names), without_vectors=tuple(without_vectors))
            return view, search(self._store, view, names, embedder, request)

    def _refresh_tool(self, tool: Tool, *, vectors: bool, observer: Observer = NO_OBSERVER) -> list[str]:
        """Import changes; a problem of the source or the embedder becomes a notice, as the index can be searched."""
        try:
            return self._refresher.refresh_tool(tool, vectors=vectors, observer=observer)
        except (LibraryDamaged, LibraryTooNew):
            raise
        except BunkoError as error:
            return [f"Changes of {tool.name} were not imported: {error.message}. {error.hint}".rstrip()]

    def default_top_k(self, request: SearchRequest, tools: Sequence[Tool] | None = None) -> int:
        """Return how many hits a request gets that does not say how many."""
        tools = self._select_tools(request.tool, request.kinds, tools) if request.use_tool_settings else ()
        return self.requests.resolve(request, tools).top_k

    def passages(
        self,
        hits: Sequence[Hit],
        extract: Extract | None = None,
        *,
        already_returned: int = 0,
        query: str = "",
        max_chars: int | None = None,
        join_chunks: bool = True,
        tools: Sequence[Tool] | None = None,  # all of the library, if they were read before
    ) -> list[Passage]:
        """Return the passages of hits in the given extent, else in the extent of each hit's tool.

        Without `join_chunks`, hits whose passage is their chunk stay apart. See `extract_passages` for the rest.
        """
        extract_of, documents = self._extract_of(extract, tools), self._documents_of(hits)
        if not join_chunks and max_chars is None and all(extract_of(hit) == "chunk" for hit in hits):
            return chunk_passages(hits, documents)
        return extract_passages(
            hits, documents, extract_of, already_returned=already_returned, query=query, max_chars=max_chars
        )

    def _extract_of(self, extract: Extract | None, tools: Sequence[Tool] | None) -> Callable[[Hit], Extract]:
        if extract is not None:
            return lambda _: extract
        tools = self.tools() if tools is None else tools
        extract_by_tool: dict[str, Extract] = {tool.name: tool.options.extract or "chunk" for tool in tools}
        return lambda hit: extract_by_tool.get(hit.tool, "chunk")

    def _documents_of(self, hits: Sequence[Hit]) -> Callable[[Hit], StoredDocument | None]:
        """Read the documents that hits do not come with, all at once, and return what finds that of a hit."""
        documents = {(hit.tool, hit.uri): hit.document for hit in hits if hit.document is not None}
        uris_by_tool: dict[str, dict[str, None]] = {}
        for hit in hits:
            if (hit.tool, hit.uri) not in documents:
                uris_by_tool.setdefault(hit.tool, {})[hit.uri] = None
        for tool, uris in uris_by_tool.items():
            read_documents = self._store.documents.get_all(self._tool_id(tool), tuple(uris))
            documents |= {(tool, uri): document for uri, document in read_documents.items()}
        return lambda hit: documents.get((hit.tool, hit.uri))

    def document_of(self, hit: Hit) -> StoredDocument | None:
        """Return the document of a hit."""
        return self._store.documents.get(self._tool_id(hit.tool), hit.uri)

    def _tool_id(self, name: str) -> int:
        if name not in self._tool_ids:
            self._tool_ids[name] = catalog.get_tool(self._store, name).id
        return self._tool_ids[name]

    def verify_citation(self, citation: str, digest: str, *, tool: str | None = None) -> CitationCheck:
        """Return whether a cited passage is still in its document, importing changes first."""
        checks = [CitationCheck("deleted", citation)]
        for selected in catalog.select_tools(self._store, tool):
            if not self._read_only:
                self._refresh_tool(selected, vectors=False)
            checks.append(verify_citation(self._store, selected.id, citation, digest))
        # Two tools may have a README.md: the one that contains the passage is meant.
        return min(checks, key=lambda check: CITATION_STATUSES.index(check.status))

    def tags(
        self, tool: ToolNames = None, *, kinds: Sequence[str] = (), where: Filter = NO_FILTER
    ) -> list[tuple[str, int]]:
        """Return the tags of some tools or all active ones with their document counts, the most frequent first."""
        counts: Counter[str] = Counter()
        for selected in self.select_fresh_tools(tool, kinds):
            if where:
                for document in self._store.documents.find(selected.id, self.requests.resolve_filter(where)):
                    counts.update(document.tags)
            else:
                counts.update(dict(self._store.stats.tags(selected.id)))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def recent_documents(
        self, tool: ToolNames = None, *, limit: int = 10, kinds: Sequence[str] = (), where: Filter = NO_FILTER
    ) -> list[tuple[Tool, DatedDocument]]:
        """Return the most recently dated documents that match a filter with their tools, the latest first."""
        tools, where = self.select_fresh_tools(tool, kinds), self.requests.resolve_filter(where)
        documents = [
            (selected, document)
            for selected in tools
            for document in self._store.stats.recent_documents(selected.id, limit=limit, where=where)
        ]
        documents.sort(key=lambda item: item[1].date, reverse=True)
        return documents[:limit]

    def tools(self) -> list[Tool]:
        """Return the tools of the library, sorted by name."""
        return catalog.tools(self._store)

    def assistant_names(self) -> AssistantNames:
        """Return the name of each tool that assistants see, by its real one."""
        return assistant_names(self.tools())

    def _select_tools(
        self, names: ToolNames, kinds: Sequence[str], candidates: Sequence[Tool] | None = None
    ) -> list[Tool]:
        """Return the tools to search; raise if `kinds` are given and no active tool is of them."""
        candidates = self.tools() if candidates is None else candidates
        tools = [tool for tool in catalog.select_from(candidates, names) if not kinds or tool.kind in kinds]
        if kinds and not tools:
            raise no_tool_error(self._store, self._tool_config, kinds)
        return tools

    def select_fresh_tools(self, names: ToolNames, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools to search after importing their changes."""
        tools = self._select_tools(names, kinds)
        if not self._read_only:
            for tool in tools:
                self._refresh_tool(tool, vectors=False)
        return tools
