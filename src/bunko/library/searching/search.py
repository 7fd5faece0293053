"""Search up-to-date tools: plan, refresh, rank, and cut the answer into a page; and what else reads fresh tools."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bunko.errors import (
    BunkoError,
    EmbedderError,
    IndexFailure,
    LibraryDamaged,
    LibraryTooNew,
    LibraryUnreachable,
    QueryError,
)
from bunko.library.importing.missing_vectors import MissingVectors
from bunko.library.importing.outages import Outages
from bunko.library.importing.refresh import Refresher
from bunko.library.searching.chat_models import ChatModels
from bunko.library.searching.page import Page, check_page_cursor, cut_page
from bunko.library.searching.plan import (
    Planner,
    SearchPlan,
    extents_of,
    selection_notices,
    settings_sections,
    shared_folders,
)
from bunko.library.searching.search_log import SearchLog
from bunko.library.tools import catalog, web_defaults
from bunko.library.tools.assistant_names import AssistantNames, assistant_names
from bunko.library.tools.build_config import ToolConfig
from bunko.library.tools.catalog import ToolNames
from bunko.library.tools.suggested_commands import vector_command
from bunko.protocols import DamagedIndex, Embedder, Index, IndexView, Store
from bunko.runtime.activity import reported_search
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.package_errors import package_outages
from bunko.search.citations import CITATION_STATUSES, CitationCheck, verify_citation
from bunko.search.hits import find_hits, log_answer, shares_few_words
from bunko.search.paging import Cursor, parse_cursor
from bunko.search.passages import Extract, Passage, PassageOffsets, chunk_passages, extract_passages
from bunko.search.request import MAX_HITS, MAX_QUERY_CHARS, SearchRequest, clean_query, clean_wordings
from bunko.settings import Settings
from bunko.types import Answer, Freshness, Hit, Tool
from bunko.types.records import NO_FILTER, DatedDocument, Filter, StoredDocument

if TYPE_CHECKING:
    from bunko.library.searching.reranking import Reranking

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
        self._read_only = read_only
        self.planner = Planner(
            settings, store, tool_config, rerank_count=reranking.count if reranking else 0, notices=notices
        )
        self._tool_ids: dict[str, int] = {}
        self.log = SearchLog(store, enabled=settings.log.keep_searches and not read_only)

    def answer(self, request: SearchRequest, *, observer: Observer = NO_OBSERVER) -> Answer:
        """Search some tools, all active ones, or those of some kinds, importing changes first if a check is due.

        A tool's own settings apply if it is searched alone or with tools that have the same settings, unless
        `use_tool_settings` is false. With `rewrite`, or if it is None and the settings enable it, a chat model rewrites
        the query first; if that fails or finds nothing, the original query is searched.
        """
        with reported_search() as report:
            plan = self.planner.plan(request, self.tools(), self.document_of, None)
            return report(self._answer(plan, observer))

    def page(
        self,
        request: SearchRequest,
        *,
        overhead_tokens: Callable[[Passage], int] = lambda _: 0,
        observer: Observer = NO_OBSERVER,
    ) -> Page:
        """Answer a request with one page of passages that fits its token budget; a new search is logged if enabled.

        `overhead_tokens` returns what a passage costs besides its text. The observer is told of an import of changes.
        """
        start, digest = parse_cursor(request.cursor) if request.cursor else (Cursor(), "")
        previous_generation, tools = start.generation, self.tools()
        with reported_search() as report:
            while True:
                plan = self.planner.plan(request, tools, self.document_of, start.first_hit)
                answer = report(self._answer(plan, observer))
                passages = self.passages(
                    answer.hits, plan.extents, already_returned=start.first_hit, query=answer.searched_query,
                    max_chars=request.max_chars, join_chunks=request.join_chunks, offsets=plan.offsets,
                )  # fmt: skip
                following = _start_of_next_page(plan, start, answer, passages) if request.continue_past_top_k else None
                if passages or following is None:
                    break
                start = following
        if request.cursor:
            check_page_cursor(digest, request, answer)
        else:
            self.log.add(request.query, request.tool)
        if previous_generation not in (0, answer.freshness.generation):
            answer.notices.append("The index changed since the last page; results may repeat or be missing.")
        summary = self._chat_models.summarize_answer(answer) if request.summary and not request.cursor else None
        return cut_page(plan, answer, passages, start, following, summary, overhead_tokens)

    def _answer(self, plan: SearchPlan, observer: Observer) -> Answer:
        """Refresh the tools of a plan and rank; the order of the notices is that in which things happen."""
        request, query = plan.request, plan.request.query
        self._tool_ids.update({tool.name: tool.id for tool in plan.tools})
        if request.refresh and not self._read_only:
            for tool in plan.tools:
                plan.notices += self._refresh_tool(tool, vectors=plan.rank_request.mode != "bm25", observer=observer)
        plan.notices += self._tool_config.difference_notices(plan.tools, vectors=plan.rank_request.mode != "bm25")
        if not query.strip():
            return self._newest(plan)
        self._choose_embedder(plan)
        words, own_wordings, rewritten = plan.rank_request.query, plan.rank_request.wordings, ""
        rewriting, notice = self._chat_models.rewrite_query(words, request.rewrite)
        plan.notices += [notice] if notice else []
        if rewriting and rewriting.words:
            rewritten = rewriting.words
            also, passage = (*request.also, *rewriting.also), request.passage or rewriting.passage
            plan.rank_request = replace(
                plan.rank_request, query=clean_query(rewritten), wordings=clean_wordings(rewritten, also, passage)
            )
        view, hits = self._search_with_repair(plan)
        if rewritten and not hits:
            rewritten = ""
            plan.notices.append("The rewritten query found nothing, so the original query was searched.")
            plan.rank_request = replace(plan.rank_request, query=words, wordings=own_wordings)
            view, hits = self._search_with_repair(plan)
        reranker = ""
        if self._reranking:
            hits, reranker = self._reranking.rerank(plan.rank_request, hits, plan.notices)
        may_suggest = request.suggest_wordings and not (request.cursor or plan.rank_request.wordings)
        if may_suggest and not hits and view.size:
            plan.notices.append("Nothing has the words of the question; search again with also and passage.")
        elif may_suggest and hits and shares_few_words(view, plan.rank_request, hits):
            plan.notices.append("Few words of the question are in these documents; search again with also and passage.")
        if selection := plan.rank_request.selection:
            best_score = self._best_score(plan) if selection.min_score is not None and not hits else None
            plan.notices += selection_notices(selection, hits, best_score)
        plan.notices += view.notices
        if len(query) > MAX_QUERY_CHARS:
            plan.notices.append(f"Only the first {MAX_QUERY_CHARS} characters of the query were used.")
        if plan.embedder is not None and (plan.embedder.is_remote or plan.rank_request.mode != "bm25"):
            plan.notices += self._missing_vectors.search_notices(plan.tools, plan.embedder)
        plan.notices += [f"{consequence}: {error.message}. {error.hint}" for consequence, error in package_outages()]
        hits = web_defaults.add_provenance(self._store, plan.tools, hits)
        if self._settings.log.debug:
            log_answer(query, hits)
        checks = [self._refresher.last_check(tool) for tool in plan.tools]
        checked_at = min((check.checked_at for check in checks if check.checked_at), default="")
        freshness = Freshness(view.generation, checked_at, sum(check.missing_files for check in checks))
        notices = list(dict.fromkeys(plan.notices))
        mode, wordings = plan.rank_request.mode, tuple(wording.text for wording in plan.rank_request.wordings)
        return Answer(query, mode, hits, view.size, freshness, notices, rewritten, words, reranker, wordings)

    def _newest(self, plan: SearchPlan) -> Answer:
        """Answer an empty query with the newest documents that match its filter, each with its first chunk."""
        rank_request, selection = plan.rank_request, plan.rank_request.selection
        limit = selection.already_returned + selection.limit if selection else rank_request.row_count
        hits = newest_hits(self._store, plan.tools, rank_request.where, limit)
        hits = web_defaults.add_provenance(self._store, plan.tools, hits)
        with self._store.read_transaction():
            size = sum(self._store.stats.totals(tool.id).chunks for tool in plan.tools)
            generation = self._store.generation()
        return Answer(rank_request.query, rank_request.mode, hits, size, Freshness(generation), plan.notices)

    def _choose_embedder(self, plan: SearchPlan) -> None:
        """Choose the embedder of most tools; the words of the others are searched, and notices say why."""
        if plan.rank_request.mode == "bm25":
            return
        if lexical_tools := [tool for tool in plan.tools if self._tool_config.is_lexical(tool)]:
            names = ", ".join(tool.name for tool in lexical_tools)
            command = vector_command(self._tool_config.paths, lexical_tools[0])
            if plan.rank_request.mode == "semantic" and len(lexical_tools) == len(plan.tools):
                raise QueryError(
                    f"{names} was imported without vectors",
                    hint=f"Search with mode bm25, or compute vectors: {command}",
                )
            plan.notices.append(
                f"{names} was imported without vectors, so only its words are searched. To compute them: {command}"
            )
            if len(lexical_tools) == len(plan.tools):
                plan.search_words()
                return
        by_name: dict[str, tuple[Embedder, list[Tool]]] = {}
        for tool in plan.tools:
            if embedder := self._tool_config.embedder_of(tool):
                by_name.setdefault(tool.built.embedder or embedder.label, (embedder, []))[1].append(tool)
            elif problem := self._tool_config.embedder_problem(tool):
                remedy = self._tool_config.embedder_remedy(tool)
                plan.notices.append(f"Only the words of {tool.name} are searched: {problem}. {remedy}")
                plan.words_only.add(tool.id)
        if not by_name:
            plan.search_words()
            return
        chosen, its_tools = max(by_name.values(), key=lambda item: len(item[1]))
        for other, other_tools in by_name.values():
            if other is not chosen:
                names = ", ".join(tool.name for tool in other_tools)
                plan.notices.append(
                    f"Only the words of {names} are searched: its vectors and those of {its_tools[0].name} come from"
                    " different embedders."
                )
                plan.words_only.update(tool.id for tool in other_tools)
        if reason := self._outages.reason(chosen):
            plan.notices.append(_words_only_notice(reason))
            plan.search_words()
            return
        plan.embedder = chosen
        options = plan.rank_request.options
        is_memos = plan.request.use_tool_settings and settings_sections(plan.tools) == {"memos"}
        # Reciprocal rank fusion would count unrelated vectors like any other.
        if (
            is_memos
            and plan.rank_request.mode == "hybrid"
            and options.fusion == "rrf"
            and options.similarity_threshold is None
        ):
            options = replace(options, similarity_threshold=1 - plan.embedder.noise_floor)
            plan.rank_request = replace(plan.rank_request, options=options)

    def _search_with_repair(self, plan: SearchPlan) -> tuple[IndexView, list[Hit]]:
        """Rank the rows of one state of the library, and decide what is done where a part fails.

        Without the embedder, words answer. If the server of the index or of the library went away, what else there is
        answers, or the server that is back. A damaged index is rebuilt.
        """
        is_second_try = False
        while True:
            embedder = plan.embedder if plan.rank_request.mode != "bm25" else None
            try:
                with self._store.read_transaction():
                    words_only = set(plan.words_only)
                    if embedder is not None:
                        for tool in self._store.tools.all():  # one may have been re-embedded since it was chosen
                            if tool.id in plan.names and tool.built.embedder not in (None, "none", embedder.name):
                                words_only.add(tool.id)
                    view = self._index.view(list(plan.names), without_vectors=tuple(words_only))
                    hits = find_hits(self._store, view, plan.names, embedder, plan.rank_request)
            except EmbedderError as error:
                if embedder is None:
                    raise
                self._outages.begin(embedder, error.message)
                reason = error.message if embedder.is_remote else f"{error.message}. {error.hint}"
                plan.notices.append(_words_only_notice(reason))
                plan.search_words()
                is_second_try = False
            except (IndexFailure, LibraryUnreachable):
                if is_second_try:
                    raise
                is_second_try = True
            except DamagedIndex as damage:
                if is_second_try:
                    raise
                repaired = [self._index.repair(tool_id) for tool_id in plan.names]
                if not any(repaired):  # it is as it was written: this is our bug
                    raise (damage.__cause__ or damage) from None
                _log.warning("A derived index file was damaged and has been rebuilt from the library.")
                is_second_try = True
            else:
                if embedder is not None:
                    self._outages.end(embedder)
                return view, hits

    def _best_score(self, plan: SearchPlan) -> float | None:
        """Return the score of the best hit if the minimum score left none; None if there is none at all."""
        assert plan.rank_request.selection is not None
        selection = replace(plan.rank_request.selection, limit=1, min_score=None)
        rank_request = replace(plan.rank_request, selection=selection)
        _, hits = self._search_with_repair(replace(plan, rank_request=rank_request, notices=[]))
        return hits[0].score if hits else None

    def similar(self, tool: Tool, uri: str, *, limit: int = 10) -> list[Hit]:
        """Return the nearest passage of each of the documents that are most like another one, the nearest first.

        Only documents with vectors of the same embedder are compared; without vectors, its key phrases are searched.
        """
        from bunko.library.searching.similar import key_phrases, nearest_hits

        with self._store.read_transaction():
            prepared = self._store.documents.export(tool.id, [uri])
            if not prepared:
                return []
            tools = [other for other in self.tools() if other.active or other.id == tool.id]
            names = {other.id: other.name for other in tools if other.built.embedder == tool.built.embedder}
            hits = nearest_hits(self._store, self._index.view(list(names)), names, tool.id, prepared[0], limit)
        if not hits:
            request = SearchRequest(
                key_phrases(tool.id, prepared[0]), mode="bm25", top_k=limit + 1, per_document=1, operators=False,
                refresh=False, rerank=False,
            )  # fmt: skip
            hits = self.answer(request).hits if request.query else []
        others: dict[tuple[str, str], Hit] = {}
        for hit in hits:
            if (hit.tool, hit.uri) != (tool.name, uri):
                others.setdefault((hit.tool, hit.uri), hit)
        return web_defaults.add_provenance(self._store, tools, list(others.values())[:limit])

    def _refresh_tool(self, tool: Tool, *, vectors: bool, observer: Observer = NO_OBSERVER) -> list[str]:
        """Import changes; a problem of the source or the embedder becomes a notice, as the index can be searched."""
        try:
            return self._refresher.refresh_tool(tool, vectors=vectors, observer=observer)
        except (LibraryDamaged, LibraryTooNew):
            raise
        except BunkoError as error:
            return [f"Changes of {tool.name} were not imported: {error.message}. {error.hint}".rstrip()]

    def passages(
        self,
        hits: Sequence[Hit],
        extract: Extract | Mapping[str, Extract] | None = None,
        *,
        already_returned: int = 0,
        query: str = "",
        max_chars: int | None = None,
        join_chunks: bool = True,
        offsets: PassageOffsets | None = None,
    ) -> list[Passage]:
        """Return the passages of hits in the given extent, for all or by tool, else in that of each hit's tool.

        Without `join_chunks`, hits whose passage is their chunk stay apart. See `PassageRanges` for the rest.
        """
        if isinstance(extract, str):
            extents: dict[str, Extract] = {hit.tool: extract for hit in hits}
        else:
            by_tool = extents_of(self.tools()) if extract is None else extract
            extents = {hit.tool: by_tool.get(hit.tool, "chunk") for hit in hits}
        documents = self._documents_of(hits)
        if not join_chunks and max_chars is None and set(extents.values()) <= {"chunk"}:
            return chunk_passages(hits[already_returned:], documents)
        return extract_passages(
            hits, documents, extents, already_returned=already_returned, query=query, max_chars=max_chars,
            offsets=offsets,
        )  # fmt: skip

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
        return hit.document or self._store.documents.get(self._tool_id(hit.tool), hit.uri)

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
                for document in self._store.documents.find(selected.id, self.planner.resolve_filter(where)):
                    counts.update(document.tags)
            else:
                counts.update(dict(self._store.stats.tags(selected.id)))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def recent_documents(
        self, tool: ToolNames = None, *, limit: int = 10, kinds: Sequence[str] = (), where: Filter = NO_FILTER
    ) -> list[tuple[Tool, DatedDocument]]:
        """Return the most recently dated documents that match a filter with their tools, the latest first."""
        tools, where = self.select_fresh_tools(tool, kinds), self.planner.resolve_filter(where)
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

    def select_fresh_tools(self, names: ToolNames, kinds: Sequence[str]) -> list[Tool]:
        """Return the tools to search after importing their changes."""
        tools = self.planner.select_tools(self.tools(), names, kinds)
        if not self._read_only:
            for tool in tools:
                self._refresh_tool(tool, vectors=False)
        return tools


def _start_of_next_page(plan: SearchPlan, start: Cursor, answer: Answer, passages: Sequence[Passage]) -> Cursor | None:
    """Return where the next page starts; None if this one is not full."""
    hit_count = len(answer.hits)
    count = len(passages) if plan.joins_hits else hit_count - start.first_hit
    if count < plan.top_k or hit_count + plan.top_k > MAX_HITS:
        return None
    return Cursor(hit_count, generation=answer.freshness.generation)


def _words_only_notice(reason: str) -> str:
    return f"Only words were searched, because the embedder failed: {reason.rstrip('.')}."


def newest_hits(store: Store, tools: Sequence[Tool], where: Filter, limit: int) -> list[Hit]:
    """Return the first chunk of each of the newest documents; a file that two tools have is one document."""
    folders = dict(shared_folders(tools))
    names = list(folders)
    # Of documents with the same date, the one in the innermost folder comes first.
    ordered_tools = sorted(tools, key=lambda tool: names.index(tool.name) if tool.name in folders else len(names))
    documents = [
        (tool, document)
        for tool in ordered_tools
        for document in store.stats.recent_documents(tool.id, limit=limit, where=where)
    ]
    documents.sort(key=lambda item: item[1].date, reverse=True)
    unique: dict[tuple[str, str], tuple[Tool, DatedDocument]] = {}
    for tool, document in documents:
        folder = folders.get(tool.name)
        key = (tool.name, document.uri) if folder is None else ("", f"{folder}/{document.uri}")
        unique.setdefault(key, (tool, document))
    return [
        Hit(
            tool.name, document.uri, document.title, document.date, document.tags,
            prepared.document.content_hash, prepared.chunks[0], 0.0,
        )
        for tool, document in list(unique.values())[:limit]
        for prepared in store.documents.export(tool.id, [document.uri])
    ]  # fmt: skip
