"""Settings and a place in, a library that can be searched and brought up to date out: the only door interfaces use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.library import catalog
from bunko.library.build_config import Recipe
from bunko.library.export import Packs
from bunko.library.importing import Importing, ImportMode
from bunko.library.indexes import Indexes
from bunko.library.llm import Telling
from bunko.library.maintenance import Care
from bunko.library.paths import Home
from bunko.library.reembed import Reembedding
from bunko.library.search import Asking
from bunko.protocols import Store
from bunko.records import Kept
from bunko.settings import Settings
from bunko.types import Tool

if TYPE_CHECKING:
    from bunko.library.web import Web

__all__ = ["ImportMode", "Library"]


class Library:
    """One data directory: its tools, its documents, and the ways to ask."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        store: Store,
        *,
        read_only: bool = False,
        notices: tuple[str, ...] = (),
        made: tuple[Path, ...] = (),  # the file and the folders that opening it just now made
    ) -> None:
        self.home, self.settings, self.store, self.read_only = home, settings, store, read_only
        self.notices, self.made = notices, made
        derived = settings.storage.bm25_persist_dir
        indexes = Indexes(store, Path(derived).expanduser() if derived else home.derived)
        recipe = Recipe(home, settings, store)
        importing = Importing(
            home,
            store,
            recipe,
            indexes,
            read_only=read_only,
            moment=settings.search.freshness_seconds,
            patience=settings.search.freshness_wait_seconds,
        )
        self._refresh = importing.refresh
        telling = Telling(settings, store)
        asking = Asking(settings, store, recipe, indexes, self._refresh, telling, read_only=read_only, notices=notices)
        packs = Packs(store, recipe, importing)
        care = Care(home, store, recipe, indexes, importing)

        self._collects = recipe, importing

        # The ways in: each is a method of the part that knows how, so that what it takes is written once.
        self.search = asking.search
        self.request = asking.request
        self.passages = asking.passages
        self.widened = asking.widened
        self.quoted = asking.quoted
        self.document_of = asking.document_of
        self.verify = asking.verify
        self.tags = asking.tags
        self.recent = asking.recent
        self.now = asking.now
        self.remember = asking.remember
        self.summary = telling.summary

        self.reindex = importing.reindex
        self.import_tools = importing.import_tools
        self.catch_up = importing.catch_up
        self.fill = importing.fill
        self.writing = importing.writing
        self.reembed = Reembedding(store, recipe, importing).reembed
        self.export = packs.export
        self.import_pack = packs.import_pack

        self.status = care.status
        self.tool_status = care.tool_status
        self.preview = care.preview
        self.diagnose = care.diagnose
        self.propose = care.propose
        self.route = care.route
        self.tune = care.tune
        self.delete_tool = care.delete_tool

        self.embedder = recipe.embedder
        self.embedder_of = recipe.embedder_of
        self.recut = recipe.recut
        self.snapshot = indexes.snapshot
        self.sample = care.sample

    @cached_property
    def web(self) -> Web:
        """The ways to collect web pages; most commands do without."""
        from bunko.library.web import Web

        return Web(self.home, self.settings, self.store, *self._collects)

    def tools(self) -> list[Tool]:
        """Return all tools, by name."""
        return catalog.tools(self.store)

    def only(self, name: str | None) -> Tool:
        """Return one tool: the one of that name, or the only one there is."""
        return catalog.only(self.store, name)

    def kept(self) -> list[Kept]:
        """Return the searches that were kept, the most frequent first."""
        return self.store.kept_searches()

    def clear_kept(self) -> int:
        """Forget the searches that were kept; return how many there were."""
        return self.store.clear_searches()

    def is_importing(self) -> bool:
        """Say whether an import that a search began is still going on."""
        return self._refresh.is_importing()

    def close(self) -> None:
        """Stop what runs in the background and let go of files; what was written stays."""
        self._refresh.stop()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
