"""Let another index answer searches: fill it, compare its answers, and switch the settings only when they are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bunko import indexes
from bunko.errors import EmbedderError, IndexFailure, SettingsError
from bunko.library.admin.index_care import bring_up_to_date
from bunko.library.admin.index_options import engine_options, index_folder
from bunko.library.importing.importer import hold_lock
from bunko.library.library import Library
from bunko.library.moving.sample_searches import (
    QUESTIONS_PER_LANGUAGE,
    SampleSearch,
    SearchComparison,
    compare_indexes,
    embed_questions,
    sample_searches,
)
from bunko.library.moving.settings_file import SettingsChange, plan_change
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools import catalog
from bunko.protocols import Index
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.settings import LoadedSettings, Settings
from bunko.types import Tool

FILL_STEP = "Filling the index"
_ENGINE_HINT = "Name embedded, chroma, chroma:URL, chroma:DIR, milvus, milvus:URL or milvus:FILE."
_LOCK_WAIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Engine:
    """An index engine and its address, as the settings that choose it."""

    kind: str
    changes: dict[str, str | None]  # of settings; None: to be removed

    def apply_to(self, settings: Settings) -> Settings:
        """Return settings that choose this engine."""
        sections: dict[str, dict[str, Any]] = {}
        for key, value in self.changes.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        return replace(
            settings,
            **{
                name: type(section := getattr(settings, name))(**(section.values() | values))
                for name, values in sections.items()
            },
        )


def parse_engine(text: str) -> Engine:
    """Return the engine that a text such as `milvus:http://…` names; relative paths begin at the current folder."""
    kind, _, address = text.partition(":")
    if kind not in indexes.KINDS or (address and kind == "embedded"):
        raise SettingsError("This is not an index", hint=_ENGINE_HINT)  # it may contain a token
    if "@" in address.partition("://")[2].partition("/")[0]:
        raise SettingsError(
            "The address of an index contains a user or password, which lists of settings and processes would show",
            hint="Remove it, and set BUNKO_MILVUS_TOKEN or CHROMADB_TOKEN.",
        )
    changes: dict[str, str | None] = {"index.kind": kind}
    is_url = "://" in address
    path = str(Path(address).expanduser().absolute()) if address and not is_url else None
    if kind == "milvus":
        changes["milvus.uri"] = address if is_url else path
    elif kind == "chroma":
        changes |= {"chromadb.url": address if is_url else None, "storage.chromadb_persist_dir": path}
    return Engine(kind, changes)


def current_engine(settings: Settings) -> str:
    """Return the index that settings choose, as `bunko index use` takes it."""
    kind = settings.index.kind
    addresses: Mapping[str, str | None] = {
        "milvus": settings.milvus.uri,
        "chroma": settings.chromadb.url or settings.storage.chromadb_persist_dir,
    }
    address = addresses.get(kind)
    return f"{kind}:{address}" if address else kind


@dataclass(slots=True)
class IndexSwitch:
    """What a switch to another index has done."""

    old: str  # as `bunko index use` takes it
    new: str
    location: str  # of the new one, for messages; empty if it is part of the library
    settings: SettingsChange
    comparison: SearchComparison = field(default_factory=SearchComparison)
    backup: Path | None = None
    notices: list[str] = field(default_factory=list)


class IndexSwitcher:
    """Switches one library to another index, or drops one that is not in use."""

    def __init__(
        self, library: Library, located: LibraryPaths, loaded: LoadedSettings, config: Path | None = None
    ) -> None:
        self.library, self._store = library, library.store
        self._located, self._loaded, self._config = located, loaded, config

    def use(self, text: str, *, observer: Observer = NO_OBSERVER) -> IndexSwitch:
        """Fill an index, compare its answers with those of the current one, and let the settings choose it."""
        engine = parse_engine(text)
        settings, old = self.library.settings, current_engine(self.library.settings)
        new_settings = engine.apply_to(settings)
        if current_engine(new_settings) == old:
            raise SettingsError(f"{old} is the index of this library already", hint="Nothing was changed.")
        change = plan_change(self._located, self._loaded, self._config, engine.changes, place_keys=())
        with self._exclude_imports(observer), self._open(new_settings) as index:
            tools = catalog.tools(self._store)
            for number, tool in enumerate(tools):
                observer.on_step(FILL_STEP, number, len(tools))
                bring_up_to_date(index, tool, observer)
            observer.on_step(FILL_STEP, len(tools), len(tools))
            switch = IndexSwitch(old, current_engine(new_settings), index.location, change)
            self._compare(index, tools, switch, observer)
            switch.backup = change.write()
        return switch

    def drop(self, text: str, *, observer: Observer = NO_OBSERVER) -> list[str]:
        """Delete the copies of all tools in an index that is not in use; return the names of the tools."""
        settings = self.library.settings
        new_settings = parse_engine(text).apply_to(settings)
        if current_engine(new_settings) == current_engine(settings):
            raise SettingsError(f"{text} is the index of this library", hint="Drop it with: bunko index drop --all")
        if new_settings.index.kind == "embedded" and settings.index.kind == "chroma":
            raise SettingsError(
                "Chroma finds vectors only; the embedded index answers words", hint="Use another index first."
            )
        tools = catalog.tools(self._store)
        with self._exclude_imports(observer), self._open(new_settings) as index:
            for tool in tools:
                index.drop(tool.id, copy_only=True)
        return [tool.name for tool in tools]

    def _compare(self, index: Index, tools: Sequence[Tool], switch: IndexSwitch, observer: Observer) -> None:
        """Compare the answers of an index with those of the current one, if that answers."""
        settings = self.library.settings
        with self._open(settings) as old_index:
            try:
                for tool in tools:
                    bring_up_to_date(old_index, tool)
            except IndexFailure as failure:
                # Whoever leaves an engine that is gone has nothing to compare with.
                switch.notices.append(f"The old index did not answer, so nothing was compared: {failure.message}.")
                return
            kinds = {settings.index.kind, index.kind}
            switch.comparison = compare_indexes(
                (self._store, old_index),
                (self._store, index),
                self._questions(tools, switch) if "chroma" in kinds else sample_searches(self._store, tools),
                observer,
                is_approximate=kinds != {"embedded"},
            )

    def _questions(self, tools: Sequence[Tool], switch: IndexSwitch) -> list[SampleSearch]:
        samples = sample_searches(self._store, tools, per_language=QUESTIONS_PER_LANGUAGE)
        try:
            return embed_questions(samples, self.library.embedder_of)
        except EmbedderError as error:
            switch.notices.append(
                f"Vectors of the library were searched instead of questions, which differ more: {error.message}."
            )
            return samples

    @contextmanager
    def _exclude_imports(self, observer: Observer) -> Iterator[None]:
        with hold_lock(self._store.lock(), wait_seconds=_LOCK_WAIT_SECONDS, observer=observer, activity="writing to"):
            yield

    @contextmanager
    def _open(self, settings: Settings) -> Iterator[Index]:
        paths = self.library.paths
        folder = index_folder(paths, settings) if self._store.is_persistent else None
        with ExitStack() as stack:
            index = indexes.build(settings.index.kind, self._store, folder, engine_options(paths, settings, folder))
            yield stack.enter_context(closing(index))
