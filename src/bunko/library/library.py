"""The library: the facade through which interfaces search, import and maintain tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack

from bunko import indexes
from bunko.errors import BunkoError
from bunko.library.admin.index_options import engine_options, index_folder
from bunko.library.importing.importer import Importer, ImportMode, ImportOptions
from bunko.library.importing.outages import Outages
from bunko.library.importing.refresh import Refresher
from bunko.library.opening.paths import LibraryPaths
from bunko.library.rights.limit_store import limit_store, refuse_all
from bunko.library.searching.chat_models import ChatModels
from bunko.library.searching.page import Page
from bunko.library.searching.search import Searcher
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig
from bunko.library.tools.catalog import ToolNames, Tools
from bunko.protocols import DomainStore, Embedder, IndexView, LibraryStorage, OutboxStore, StatsStore, Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import RankRequest, SearchRequest
from bunko.settings import Settings
from bunko.types import Answer, Hit, Mode, Report, Text, Tool
from bunko.types.records import NO_FILTER, Filter
from bunko.types.tool_options import Extract, ToolOptions

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    from bunko.library.admin.index_care import IndexCare
    from bunko.library.admin.maintenance import Maintenance
    from bunko.library.admin.status import LibraryStatus, ToolDetails
    from bunko.library.importing.reembed import Reembedder
    from bunko.library.overview.document_map import DocumentMaps
    from bunko.library.overview.views import Overview
    from bunko.library.packs.export import PackTransfer
    from bunko.library.reading.documents import Documents
    from bunko.library.rights.audit import AuditLog
    from bunko.library.rights.tokens import Tokens
    from bunko.library.searching.ask import Asker
    from bunko.library.tools.assistant_names import AssistantNames
    from bunko.library.tools.scan_settings import ScanSettings
    from bunko.library.web.collector import WebCollector
    from bunko.search.citations import CitationCheck
    from bunko.search.passages import Passage
    from bunko.settings import LoadedSettings
    from bunko.types.answers import CheckedAnswer
    from bunko.types.ranking import OptionValue
    from bunko.types.records import DatedDocument, StoredDocument


class Library:
    """One data directory: its tools, their documents, and the methods to search them."""

    def __init__(
        self,
        paths: LibraryPaths,
        settings: Settings,
        store: Store,
        *,
        read_only: bool = False,
        notices: tuple[str, ...] = (),
        created_paths: tuple[Path, ...] = (),  # the file and folders created by opening it
        setting_origins: Mapping[str, str] = MappingProxyType({}),  # where each setting that is not a default is from
        current_folder_notices: tuple[str, ...] = (),  # which settings its files set; for the terminal
        settings_file: Path | None = None,  # the one that --config named
        reload_settings: Callable[[], LoadedSettings] | None = None,  # reads what a new start would
    ) -> None:
        self.paths, self.settings, self.store, self.read_only = paths, settings, store, read_only
        self.tools = Tools(store)
        self.notices, self.created_paths, self.setting_origins = notices, created_paths, setting_origins
        self.current_folder_notices = current_folder_notices
        self.settings_file, self.reload_settings = settings_file, reload_settings
        # An index of a store that ends with its process is kept nowhere.
        folder = index_folder(paths, settings) if store.is_persistent else None
        index = indexes.build(settings.index.kind, store, folder, engine_options(paths, settings, folder))
        tool_config = ToolConfig(paths, settings, store)
        outages = Outages(store, read_only=read_only)
        importer = Importer(paths, store, tool_config, index, outages, read_only=read_only)
        refresher = Refresher(
            paths, store, tool_config, importer,
            refresh_interval=settings.search.freshness_seconds, wait_seconds=settings.search.freshness_wait_seconds,
        )  # fmt: skip
        chat_models, reranking = ChatModels(settings, store), None
        if settings.search.reranker:  # without one, nothing of it is imported
            from bunko.library.searching.reranking import Reranking

            reranking = Reranking(settings.search)
        self._build_searcher: Callable[[Store], Searcher] = lambda searched_store: Searcher(
            settings, searched_store, tool_config, index, refresher, outages, importer.missing_vectors,
            chat_models, reranking, read_only=read_only, notices=notices,
        )  # fmt: skip
        searcher = self._build_searcher(store)
        self._index, self._tool_config, self._importer = index, tool_config, importer
        self._refresher, self._chat_models, self.searches = refresher, chat_models, searcher
        self._index_folder = folder

    @property
    def storage(self) -> LibraryStorage:
        """Where the library is kept, and when it changes there."""
        return self.store

    @property
    def stats(self) -> StatsStore:
        """Counts, sizes and lists of the documents of each tool."""
        return self.store.stats

    @property
    def outbox(self) -> OutboxStore:
        """What bots have promised to answer."""
        return self.store.outbox

    @property
    def domains(self) -> DomainStore:
        """The domains that bots may add pages from."""
        return self.store.domains

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of clients, and what each allows."""
        from bunko.library.rights.tokens import Tokens

        return Tokens(self.store)

    @cached_property
    def audit(self) -> AuditLog:
        """Who changed what."""
        from bunko.library.rights.audit import AuditLog

        return AuditLog(self.store, limit=self.settings.serve.audit_lines)

    @cached_property
    def web(self) -> WebCollector:
        """The collector of web pages; imported at first use like the others, because a search does not need them."""
        from bunko.library.web.collector import WebCollector

        return WebCollector(self.paths, self.settings, self.store, self._tool_config, self._importer)

    @cached_property
    def _reembedder(self) -> Reembedder:
        from bunko.library.importing.reembed import Reembedder

        return Reembedder(self.store, self._tool_config, self._importer)

    @cached_property
    def packs(self) -> PackTransfer:
        """What exports tools to files, and imports them in another library."""
        from bunko.library.packs.export import PackTransfer

        return PackTransfer(self.store, self._tool_config, self._importer)

    @cached_property
    def documents(self) -> Documents:
        """The documents of the library, to read and to list."""
        from bunko.library.reading.documents import Documents

        return Documents(self.store, self.searches)

    @cached_property
    def answers(self) -> Asker:
        """What finds the sources of answers and verifies their citations."""
        from bunko.library.searching.ask import Asker

        return Asker(self.settings, self._tool_config, self.searches, self._chat_models)

    @cached_property
    def maps(self) -> DocumentMaps:
        """The maps of its documents."""
        from bunko.library.overview.document_map import DocumentMaps

        return DocumentMaps(self.store, self._index_folder)

    @cached_property
    def overview(self) -> Overview:
        """The map, the calendar and the tags of the documents, and selections of them."""
        from bunko.library.overview.views import Overview

        return Overview(self.settings, self.store, self._tool_config, self.documents, self.maps)

    @cached_property
    def maintenance(self) -> Maintenance:
        """What describes, checks and tunes the tools."""
        from bunko.library.admin.maintenance import Maintenance

        return Maintenance(self.paths, self.store, self._tool_config, self._index, self._importer)

    @cached_property
    def index(self) -> IndexCare:
        """The index that answers searches, to show, update, rebuild and drop."""
        from bunko.library.admin.index_care import IndexCare

        return IndexCare(self.store, self._index, self._importer)

    def limited_to(self, can_read: Callable[[str], bool]) -> Library:
        """Return the library for somebody who may read only some of its tools; it shares everything with this one."""
        view = copy(self)
        view.store = limit_store(self.store, can_read)
        view.tools = Tools(view.store)
        view.searches = self._build_searcher(view.store)
        view._importer, view._index = refuse_all(self._importer), refuse_all(self._index)
        for name, value in vars(Library).items():
            if isinstance(value, cached_property):  # built from the whole library
                view.__dict__.pop(name, None)
        view.maps = self.maps  # each is computed once for all who may see it
        return view

    # Searching

    def search(
        self,
        query: str,
        *,
        also: str | Sequence[str] = (),
        passage: str = "",
        tool: str | Sequence[str] | None = None,
        kinds: Sequence[str] = (),
        mode: Mode | None = None,
        top_k: int | None = None,
        per_document: int | None = None,
        fill_up: bool = False,
        min_score: float | None = None,
        operators: bool = True,
        where: Filter = NO_FILTER,
        explain: bool = False,
        refresh: bool = True,
        rewrite: bool | None = False,
        rerank: bool = True,
        use_tool_settings: bool = True,
        **ranking: OptionValue,
    ) -> Answer:
        """Search one tool, several, all active ones, or those of some kinds, and return the best hits.

        `also` holds other wordings of the query, as the documents might say it, and `passage` is a sentence as it might
        stand in the answer: what these find counts, too.

        `per_document` limits the hits of one document: hits of other documents take their place. With `fill_up`, more
        of them follow where others have too few. Without `operators`, quotes and hyphens have no meaning. Further
        arguments are options of ranking, such as `vector_weight=0.3`.
        """
        request = SearchRequest(
            query, tool if tool is None or isinstance(tool, str) else tuple(tool), tuple(kinds),
            (also,) if isinstance(also, str) else tuple(also), passage,
            mode=mode, top_k=top_k, per_document=per_document, fill_up=fill_up, min_score=min_score,
            operators=operators, where=where, explain=explain, refresh=refresh, rewrite=rewrite,
            use_tool_settings=use_tool_settings, rerank=rerank, ranking=ranking,
        )  # fmt: skip
        return self.searches.answer(request)

    def page(
        self,
        request: SearchRequest,
        *,
        overhead_tokens: Callable[[Passage], int] = lambda _: 0,
        observer: Observer = NO_OBSERVER,
    ) -> Page:
        """Answer a search request with one page of passages that fits its token budget.

        `overhead_tokens` estimates what a caller adds to each passage when it renders the page. The observer is told
        of changes that are imported first.
        """
        return self.searches.page(request, overhead_tokens=overhead_tokens, observer=observer)

    def ask(self, question: str, *, tool: str | tuple[str, ...] | None = None) -> CheckedAnswer:
        """Answer a question: by the chat model of the settings, its citations verified, else by quoting documents."""
        return self.answers.ask(SearchRequest(question, tool))

    def build_request(
        self,
        query: str,
        *,
        tools: Sequence[Tool] = (),
        mode: Mode | None = None,
        top_k: int | None = None,
        **ranking: OptionValue,
    ) -> RankRequest:
        """Return how a query would be ranked: arguments override the tools' settings, which override the library's."""
        request = SearchRequest(query, mode=mode, top_k=top_k, ranking=ranking)
        return self.searches.planner.resolve(request, tools)

    def passages(
        self,
        hits: Sequence[Hit],
        extract: Extract | None = None,
        *,
        already_returned: int = 0,
        query: str = "",
        max_chars: int | None = None,
        join_chunks: bool = True,
    ) -> list[Passage]:
        """Return the passages of hits in the given extent, else in the extent of each hit's tool."""
        return self.searches.passages(
            hits, extract, already_returned=already_returned, query=query, max_chars=max_chars, join_chunks=join_chunks
        )

    def document_of(self, hit: Hit) -> StoredDocument | None:
        """Return the document of a hit."""
        return self.searches.document_of(hit)

    def read(self, location: str, *, tool: str | None = None) -> str:
        """Return the text of a document by its path, URL or memo id, or the cited lines of one (`path:L12-L30`)."""
        from bunko.search.reading import ReadRequest

        return self.documents.read(ReadRequest(location, tool)).text

    def verify_citation(self, citation: str, digest: str, *, tool: str | None = None) -> CitationCheck:
        """Return whether a cited passage is still in its document, importing changes first."""
        return self.documents.verify_citation(citation, digest, tool=tool)

    def tags(
        self, tool: ToolNames = None, *, kinds: Sequence[str] = (), where: Filter = NO_FILTER
    ) -> list[tuple[str, int]]:
        """Return the tags of some tools or all active ones with their document counts, the most frequent first."""
        return self.searches.tags(tool, kinds=kinds, where=where)

    def recent_documents(
        self, tool: ToolNames = None, *, limit: int = 10, kinds: Sequence[str] = (), where: Filter = NO_FILTER
    ) -> list[tuple[Tool, DatedDocument]]:
        """Return the most recently dated documents that match a filter with their tools, the latest first."""
        return self.searches.recent_documents(tool, limit=limit, kinds=kinds, where=where)

    def local_time(self) -> datetime:
        """Return the current time in the time zone of the settings, else of the system."""
        return self.searches.planner.local_time()

    def log_search(self, query: str, tool: ToolNames = None) -> None:
        """Log a search of a person or an assistant if the settings enable it; never wait for the library."""
        self.searches.log.add(query, tool)

    def index_view(self, tool_ids: Sequence[int]) -> IndexView:
        """Return the newest state of the index over some tools; call it inside the store's `read_transaction`."""
        return self._index.view(tool_ids)

    # Importing

    def reindex(
        self,
        *,
        tool: str | None = None,
        rebuild: bool = False,
        **options: Unpack[ImportOptions],
    ) -> Report:
        """Bring one tool, or all active ones, up to date with their sources, or rebuild their indexes."""
        return self._importer.reindex(tool=tool, rebuild=rebuild, **options)

    def import_tools(
        self,
        names: Sequence[str],
        mode: ImportMode = "new",
        *,
        options_of: Callable[[Tool], ToolOptions] = lambda tool: tool.options,
        **options: Unpack[ImportOptions],
    ) -> Report:
        """Import tools for the first time, from scratch, or only their changes.

        `options_of` returns the options that a tool is imported with from now on. With `keep_going`, a tool that fails
        is reported and the next one is still imported. `on="ray://HOST:PORT"` uses a Ray cluster.
        """
        return self._importer.import_tools(names, mode, options_of=options_of, **options)

    def import_(self, *names: str, observer: Observer = NO_OBSERVER) -> Report:
        """Import the changes of some tools, or of all: what is new is added, what is gone is removed."""
        local_names = [tool.name for tool in self.tools() if self.store.tools.is_local(tool.id)]
        return self.import_tools(names or local_names, "update", observer=observer)

    def import_changes(self, name: str, *, observer: Observer = NO_OBSERVER) -> Report:
        """Import the changes of one tool's source; without changes, write nothing and take no lock."""
        return self._importer.import_changes(name, observer=observer)

    def replace_texts(self, tool: Tool, texts: Mapping[str, Text], *, observer: Observer = NO_OBSERVER) -> Report:
        """Make these texts, keyed by uri, the whole content of a tool; unchanged ones are not imported again."""
        return self._importer.replace_texts(tool, texts, observer=observer)

    def reembed(self, names: Sequence[str], *, observer: Observer = NO_OBSERVER, keep_going: bool = False) -> Report:
        """Embed tools with the embedder of the current settings, reusing vectors from an interrupted run."""
        return self._reembedder.reembed(names, observer=observer, keep_going=keep_going)

    def write_lock(self) -> AbstractContextManager[None]:
        """Hold the import lock: one process imports at a time, and the next one waits until it is free."""
        return self._importer.write_lock()

    def is_importing(self) -> bool:
        """Return whether an import started by a search is still running."""
        return self._refresher.is_importing()

    # Tools and their upkeep

    def assistant_names(self) -> AssistantNames:
        """Return the name of each tool that assistants see, by its real one."""
        return self.searches.assistant_names()

    def local_tools(self) -> list[Tool]:
        """Return the active tools that this machine imports: all but those of other machines with the same server."""
        return catalog.local_tools(self.store)

    def add(self, source: str | Path, *, name: str, description: str = "", kind: str = "folder") -> Tool:
        """Add a folder or file as a tool; `import_` or the first search imports it."""
        return self.tools.add(name, description or name, Path(source).expanduser(), kind=kind)

    def resolve_tool(self, name: str | None) -> Tool:
        """Return the tool of that name, or the only tool if no name is given."""
        return catalog.resolve_tool(self.store, name)

    def rename_tool(self, name: str, new_name: str, *, observer: Observer = NO_OBSERVER) -> Tool:
        """Give a tool another name; its documents, vectors and index stay as they are."""
        return self.maintenance.rename_tool(name, new_name, observer=observer)

    def delete_tool(self, name: str, *, observer: Observer = NO_OBSERVER) -> None:
        """Delete a tool, its index and its derived files; its folder is not touched."""
        self.maintenance.delete_tool(name, observer=observer)

    def options_with_chunker(
        self, options: ToolOptions, kind: str | None, size: int | None, overlap: int | None
    ) -> ToolOptions:
        """Return options with another chunker; a size or overlap alone implies tokens, no argument changes nothing."""
        return self._tool_config.options_with_chunker(options, kind, size, overlap)

    def scan_settings(self, tool: Tool) -> ScanSettings:
        """Return which files of a tool's source are read."""
        return self._tool_config.scan_settings(tool)

    def embedder(self) -> Embedder | None:
        """Return the embedder that the settings name, built at first use."""
        return self._tool_config.embedder()

    def embedder_of(self, tool: Tool) -> Embedder | None:
        """Return the embedder of a tool; None if the tool has no vectors."""
        return self._tool_config.embedder_of(tool)

    def status(self) -> LibraryStatus:
        """Return the status of the library and its tools."""
        return self.maintenance.status()

    def tool_status(self, name: str, *, page: int = 1, page_size: int = 20) -> ToolDetails:
        """Return the details of one tool with a page of its documents; its source is scanned, nothing is imported."""
        return self.maintenance.tool_status(name, page=page, page_size=page_size)

    def close(self) -> None:
        """Stop the background import, save what searches had to rebuild, and close the files."""
        self._refresher.stop()
        if not self.read_only and self._index.unsaved_tools():
            from bunko.library.admin.index_care import save_unsaved

            save_unsaved(self.store, self._index, self._importer)
        self._index.close()
        self.store.close()

    def __repr__(self) -> str:
        try:
            names = ", ".join(tool.name for tool in self.tools()) or "no tools"
        except BunkoError:
            names = "closed or not readable"
        return f"<Library {self.paths.docs_dir or self.paths.display_path}: {names}>"

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
