"""Settings and a place in, a library that can be searched and brought up to date out: the only door interfaces use."""

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
    """One data directory: its tools, its documents, and the ways to ask."""

    def __init__(
        self,
        paths: LibraryPaths,
        settings: Settings,
        store: Store,
        *,
        read_only: bool = False,
        notices: tuple[str, ...] = (),
        created_paths: tuple[Path, ...] = (),  # the file and the folders that opening it just now made
    ) -> None:
        self.paths, self.settings, self.store, self.read_only = paths, settings, store, read_only
        self.notices, self.created_paths = notices, created_paths
        derived = settings.storage.bm25_persist_dir
        indexes = ToolIndexes(store, Path(derived).expanduser() if derived else paths.index_folder)
        recipe = ToolConfig(paths, settings, store)
        importing = Importer(
            paths,
            store,
            recipe,
            indexes,
            read_only=read_only,
            refresh_interval=settings.search.freshness_seconds,
            wait_seconds=settings.search.freshness_wait_seconds,
        )
        self._refresher = importing.refresher
        telling = ChatModels(settings, store)
        asking = Searcher(
            settings, store, recipe, indexes, self._refresher, telling, read_only=read_only, notices=notices
        )
        packs = PackTransfer(store, recipe, importing)
        care = Maintenance(paths, store, recipe, indexes, importing)

        self._web_parts = recipe, importing

        # The ways in: each is a method of the part that knows how, so that what it takes is written once.
        self.search = asking.search
        self.build_request = asking.build_request
        self.passages = asking.passages
        self.expand_hits = asking.expand_hits
        self.highlight_hits = asking.highlight_hits
        self.document_of = asking.document_of
        self.verify_citation = asking.verify_citation
        self.tags = asking.tags
        self.recent_documents = asking.recent_documents
        self.local_time = asking.local_time
        self.log_search = asking.log_search
        self.summarize_answer = telling.summarize_answer

        self.reindex = importing.reindex
        self.import_tools = importing.import_tools
        self.import_changes = importing.import_changes
        self.replace_texts = importing.replace_texts
        self.write_lock = importing.write_lock
        self.reembed = Reembedder(store, recipe, importing).reembed
        self.export_tool = packs.export_tool
        self.import_pack = packs.import_pack

        self.status = care.status
        self.tool_status = care.tool_status
        self.count_importable = care.count_importable
        self.diagnose = care.diagnose
        self.propose_description = care.propose_description
        self.measure_routing = care.measure_routing
        self.set_search_settings = care.set_search_settings
        self.delete_tool = care.delete_tool

        self.embedder = recipe.embedder
        self.embedder_of = recipe.embedder_of
        self.chunker_options = recipe.chunker_options
        self.snapshot = indexes.snapshot
        self.sample_chunks = care.sample_chunks

    @cached_property
    def web(self) -> WebCollector:
        """The ways to collect web pages; most commands do without."""
        from bunko.library.web import WebCollector

        return WebCollector(self.paths, self.settings, self.store, *self._web_parts)

    def tools(self) -> list[Tool]:
        """Return all tools, by name."""
        return catalog.tools(self.store)

    def resolve_tool(self, name: str | None) -> Tool:
        """Return one tool: the one of that name, or the only one there is."""
        return catalog.resolve_tool(self.store, name)

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the searches that were kept, the most frequent first."""
        return self.store.logged_searches()

    def clear_logged_searches(self) -> int:
        """Forget the searches that were kept; return how many there were."""
        return self.store.clear_searches()

    def is_importing(self) -> bool:
        """Say whether an import that a search began is still going on."""
        return self._refresher.is_importing()

    def close(self) -> None:
        """Stop what runs in the background and let go of files; what was written stays."""
        self._refresher.stop()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
