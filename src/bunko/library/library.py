"""The library: the facade through which interfaces search, import and maintain tools."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.library import catalog
from bunko.library.build_config import ToolConfig
from bunko.library.export import PackTransfer
from bunko.library.importing import Importer, ImportMode
from bunko.library.indexes import ToolIndexes
from bunko.library.llm import ChatModels
from bunko.library.maintenance import Maintenance
from bunko.library.paths import LibraryPaths
from bunko.library.reembed import Reembedder
from bunko.library.search import Searcher
from bunko.protocols import Store
from bunko.records import LoggedSearch
from bunko.settings import Settings
from bunko.types import Tool

if TYPE_CHECKING:
    from bunko.library.web import WebCollector

__all__ = ["ImportMode", "Library"]


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
    ) -> None:
        self.paths, self.settings, self.store, self.read_only = paths, settings, store, read_only
        self.notices, self.created_paths = notices, created_paths
        index_folder = settings.storage.bm25_persist_dir
        indexes = ToolIndexes(store, Path(index_folder).expanduser() if index_folder else paths.index_folder)
        tool_config = ToolConfig(paths, settings, store)
        importer = Importer(
            paths,
            store,
            tool_config,
            indexes,
            read_only=read_only,
            refresh_interval=settings.search.freshness_seconds,
            wait_seconds=settings.search.freshness_wait_seconds,
        )
        self._refresher = importer.refresher
        chat_models = ChatModels(settings, store)
        searcher = Searcher(
            settings, store, tool_config, indexes, self._refresher, chat_models, read_only=read_only, notices=notices
        )
        packs = PackTransfer(store, tool_config, importer)
        maintenance = Maintenance(paths, store, tool_config, indexes, importer)

        self._web_parts = tool_config, importer

        # Methods are bound from the parts that implement them, so that each signature is written once.
        self.search = searcher.search
        self.build_request = searcher.build_request
        self.passages = searcher.passages
        self.expand_hits = searcher.expand_hits
        self.highlight_hits = searcher.highlight_hits
        self.document_of = searcher.document_of
        self.verify_citation = searcher.verify_citation
        self.tags = searcher.tags
        self.recent_documents = searcher.recent_documents
        self.local_time = searcher.local_time
        self.log_search = searcher.log_search
        self.summarize_answer = chat_models.summarize_answer

        self.reindex = importer.reindex
        self.import_tools = importer.import_tools
        self.import_changes = importer.import_changes
        self.replace_texts = importer.replace_texts
        self.write_lock = importer.write_lock
        self.reembed = Reembedder(store, tool_config, importer).reembed
        self.export_tool = packs.export_tool
        self.import_pack = packs.import_pack

        self.status = maintenance.status
        self.tool_status = maintenance.tool_status
        self.count_importable = maintenance.count_importable
        self.diagnose = maintenance.diagnose
        self.propose_description = maintenance.propose_description
        self.measure_routing = maintenance.measure_routing
        self.set_search_settings = maintenance.set_search_settings
        self.delete_tool = maintenance.delete_tool

        self.embedder = tool_config.embedder
        self.embedder_of = tool_config.embedder_of
        self.chunker_options = tool_config.chunker_options
        self.snapshot = indexes.snapshot
        self.sample_chunks = maintenance.sample_chunks

    @cached_property
    def web(self) -> WebCollector:
        """The collector of web pages, imported at first use because most commands do not need it."""
        from bunko.library.web import WebCollector

        return WebCollector(self.paths, self.settings, self.store, *self._web_parts)

    def tools(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return catalog.tools(self.store)

    def resolve_tool(self, name: str | None) -> Tool:
        """Return the tool of that name, or the only tool if no name is given."""
        return catalog.resolve_tool(self.store, name)

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, the most frequent first."""
        return self.store.cache.logged_searches()

    def clear_logged_searches(self) -> int:
        """Delete the logged searches; return how many there were."""
        return self.store.cache.clear_searches()

    def is_importing(self) -> bool:
        """Return whether an import started by a search is still running."""
        return self._refresher.is_importing()

    def close(self) -> None:
        """Stop the background import and close the files."""
        self._refresher.stop()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
