"""Import tools from their sources: for the first time, from scratch, or only the changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from bunko.activity import reports_import
from bunko.embedders import as_remote
from bunko.embedders.names import display_name
from bunko.errors import BunkoError, EmbedderError, IndexFailure, LibraryReadOnly
from bunko.ingest.changes import find_changes, keep_record
from bunko.library import catalog
from bunko.library.build_config import ToolConfig
from bunko.library.commands import move_command
from bunko.library.import_check import unfindable_texts
from bunko.library.import_mode import ImportMode, ImportOptions, prepare_tool
from bunko.library.lock import hold_lock
from bunko.library.missing_vectors import MissingVectors
from bunko.library.outages import Outages
from bunko.library.paths import LibraryPaths
from bunko.library.refresh import Refresher
from bunko.library.source_check import check_source_exists
from bunko.library.source_code import parser_notices
from bunko.library.unreadable import keep_unreadable
from bunko.observer import NO_OBSERVER, Observer
from bunko.protocols import Embedder, Index, Scan, Store
from bunko.timing import now
from bunko.types import Report, Text, Tool, ToolFailure
from bunko.types.build_info import NOT_BUILT
from bunko.types.tool_options import ToolOptions

if TYPE_CHECKING:
    from bunko.ingest.preparer import Preparer

_log = logging.getLogger("bunko.library")

# How long an import waits for another one to finish.
_LOCK_WAIT_SECONDS = 600.0
# An import checks that searches find its texts if at least one in this many is new.
_CHECK_RATIO = 50
# Errors of one tool, not of the library: the next tool may still be imported.
TOOL_ERROR_CODES = ("source", "mismatch", "embedder", "unknown", "library")


class Importer:
    """Bring the tools of one library up to date; its `refresher` does so before searches, within a time limit."""

    def __init__(
        self,
        paths: LibraryPaths,
        store: Store,
        tool_config: ToolConfig,
        index: Index,
        outages: Outages,
        *,
        read_only: bool,
        refresh_interval: float,  # seconds between two checks for changes by searches
        wait_seconds: float,  # how long a search waits for an import
    ) -> None:
        self._paths, self._store, self._tool_config, self._index = paths, store, tool_config, index
        self._read_only, self._wait_seconds = read_only, wait_seconds
        self.missing_vectors = MissingVectors(store, tool_config, outages)
        self.refresher = Refresher(
            store,
            tool_config.source,
            self._import_scan,
            lacks_vectors=self.missing_vectors.can_embed,
            embed_missing=self._embed_missing_now,
            cancel_embedding=tool_config.cancel_embedding,
            move_command=partial(move_command, paths),
            refresh_interval=refresh_interval,
            wait_seconds=wait_seconds,
        )

    def reindex(
        self,
        *,
        tool: str | None = None,
        rebuild: bool = False,
        **options: Unpack[ImportOptions],
    ) -> Report:
        """Bring one tool, or all active ones, up to date with their sources, or rebuild their indexes."""
        tools = catalog.local_tools(self._store) if tool is None else [catalog.get_tool(self._store, tool)]
        names = [selected.name for selected in tools]
        mode: ImportMode = "replace" if rebuild else "update"
        return self.import_tools(names, mode, **options)

    def import_tools(
        self,
        names: Sequence[str],
        mode: ImportMode = "new",
        *,
        options_of: Callable[[Tool], ToolOptions] = lambda tool: tool.options,  # the options to import a tool with
        **options: Unpack[ImportOptions],
    ) -> Report:
        """Import tools for the first time, from scratch, or only their changes."""
        from bunko.ingest.preparer import open_preparer  # here: a search imports this module too
        from bunko.library.nothing_found import notices_about_nothing

        total, observer, keep_going = Report(), options.get("observer", NO_OBSERVER), options.get("keep_going", False)
        import_tool = self._rebuild_tool if mode == "replace" else self._update_tool
        # A cluster comes first: if it cannot be reached, nothing has changed yet, and nobody has waited.
        with (
            open_preparer(options.get("on", "local"), options.get("workers")) as preparer,
            self.write_lock(observer, tools=names),
        ):
            if not keep_going:
                for name in names:  # check all tools before importing the first
                    prepare_tool(self._store, self._tool_config, self._paths, name, mode, options_of)
            for name in names:
                try:
                    tool = prepare_tool(self._store, self._tool_config, self._paths, name, mode, options_of)
                    self._store.tools.claim(tool.id)
                    if mode != "replace" and tool != catalog.get_tool(self._store, name):
                        tool = self._store.tools.put(tool)
                    report = import_tool(tool, preparer=preparer, observer=observer)
                except BunkoError as error:
                    if not keep_going or error.code not in TOOL_ERROR_CODES:
                        raise
                    total.failures.append(ToolFailure(name, error.code, error.message, error.hint))
                    continue
                total.include(report, tool=tool.name if len(names) > 1 else "")
                total.notices += notices_about_nothing(self._tool_config, tool, report, self._paths)
                if total.interrupted:
                    break
        if not names and len(catalog.local_tools(self._store)) < len(catalog.select_tools(self._store, None)):
            total.notices.append(
                "Other machines import the tools of this library, and this one none. To import one here: bunko import"
                f" -n NAME --mode update{self._paths.cli_flags()}"
            )
        total.notices = list(dict.fromkeys(total.notices))  # an engine that is away is away for all tools
        return total

    def import_changes(self, name: str, *, observer: Observer = NO_OBSERVER) -> Report:
        """Import the changes of one tool's source; without changes, write nothing and take no lock.

        So it may be called often, even by a watch on the folder that contains the library itself.
        """
        tool = catalog.get_tool(self._store, name)
        source, generation = self._tool_config.source(tool), self._store.generation()
        check_source_exists(self._store, source, tool, self._paths)
        scan = find_changes(self._store, tool, source)
        if tool.imported_at and not scan.has_changes and not self.missing_vectors.can_embed(tool):
            return Report(unchanged=scan.unchanged, problems=[*scan.problems, *self._store.documents.failures(tool.id)])
        with self.write_lock(observer, tools=[name]):
            current = catalog.get_tool(self._store, name)
            self._store.tools.claim(current.id)
            is_same_tool = (current.id, current.source, current.options) == (tool.id, tool.source, tool.options)
            valid_scan = scan if is_same_tool and self._store.generation() == generation else None
            return self._update_tool(current, scan=valid_scan, observer=observer)

    def replace_texts(self, tool: Tool, texts: Mapping[str, Text], *, observer: Observer = NO_OBSERVER) -> Report:
        """Make these texts, keyed by uri, the whole content of a tool; unchanged ones are not imported again."""
        with self.write_lock(observer, tools=[tool.name]):
            existing = next(
                (candidate for candidate in catalog.tools(self._store) if candidate.name == tool.name), None
            )
            if existing and existing.is_built and existing.built != self._tool_config.new_build_info(existing):
                catalog.drop_index(self._index, existing)
                self._store.tools.drop(existing.id)  # its vectors stay until the end: their keys depend on the text
                existing = None
            target = existing or self._store.tools.put(tool)
            self._store.tools.update_build_info(target.id, built=self._tool_config.new_build_info(target))
            chunker = self._tool_config.new_chunker_settings(target)
            embedder = self._tool_config.embedder_of(target)
            from bunko.ingest.texts import ingest_texts

            report = ingest_texts(self._store, target, texts, chunker, embedder, observer=observer)
            self._store.tools.update_build_info(target.id, imported_at=now())
            self._store.vectors.unpin(target.id)
            self._store.vectors.delete_orphans()
            return self._finish_import(target, report)

    def write_lock(
        self,
        observer: Observer = NO_OBSERVER,
        *,
        tools: Sequence[str] | None = None,
        wait_seconds: float = _LOCK_WAIT_SECONDS,
    ) -> AbstractContextManager[None]:
        """Hold the import lock of some tools, or of all: the next import waits until it is free or cancelled."""
        if self._read_only:
            raise LibraryReadOnly(
                "This library is open for reading only",
                hint="Check that you may write to it; in Python, open it without read_only.",
            )
        if tools is not None:  # a tool may be called by the name that assistants see, too
            candidates = catalog.tools(self._store)
            tools = [tool.name if (tool := catalog.find_tool(candidates, name)) else name for name in tools]
        return hold_lock(self._store.lock(tools=tools), wait_seconds=wait_seconds, observer=observer)

    def update_index(self, tool: Tool, report: Report) -> Report:
        """Bring the derived index up to date and check that searches find the imported texts."""
        try:
            view = self._index.sync(tool.id)
        except IndexFailure as failure:  # the documents are imported; the next import or `bunko index sync` catches up
            report.notices.append(f"The index was not updated: {failure.message}. {failure.hint}".rstrip())
            return report
        report.notices += view.notices
        # A few changes do not affect whether the rest can be found.
        if (report.added + report.updated) * _CHECK_RATIO > report.unchanged:
            report.notices += unfindable_texts(self._store, self._tool_config, view, tool)
        _log.info(
            "Imported %s: %d added, %d updated, %d deleted, %d unchanged, %d chunks in total",
            tool.name, report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
        )  # fmt: skip
        return report

    def _update_tool(
        self,
        tool: Tool,
        *,
        scan: Scan | None = None,
        preparer: Preparer | None = None,
        observer: Observer = NO_OBSERVER,
        is_search: bool = False,  # words only, and no rebuild: a search is waiting
    ) -> Report:
        """Import the changes of a tool's source with what the tool was built with."""
        config = self._tool_config
        config.begin_import(tool)
        if config.is_outdated(tool) and not is_search and not config.embedder_problem(tool):
            report = self._rebuild_tool(tool, preparer=preparer, observer=observer, keep_settings=True)
            report.notices.append(f"{tool.name} was rebuilt, because an older version of bunko had built it.")
            return report
        embedder = config.embedder_of(tool)
        if embedder is not None and not is_search and not config.holds_documents(tool):
            _check_available(embedder)
        tool = self.missing_vectors.record_build(tool, config.build_info(tool, needs_embedder=not is_search))
        if (embedder is None and config.embedder_problem(tool)) or (is_search and as_remote(embedder)):
            embedder = None
            scan = scan or find_changes(self._store, tool, config.source(tool))
            if scan.added or scan.updated:
                tool = self.missing_vectors.record_build(tool, replace(tool.built, lacks_vectors=True))
        failures: list[EmbedderError] = []

        def on_embedder_failure(error: EmbedderError) -> None:
            failures.append(error)
            self.missing_vectors.record_build(tool, replace(tool.built, lacks_vectors=True))

        report = self._ingest_tool(tool, tool, scan, preparer, observer, embedder, on_embedder_failure)
        tool = catalog.get_tool(self._store, tool.name)
        if embedder is not None and report.embedded and not failures:
            self.missing_vectors.end_outage(embedder)
        if embedder is not None and tool.built.lacks_vectors and not failures and not report.interrupted:
            failures += self.missing_vectors.embed(tool, embedder, report, observer)
            tool = catalog.get_tool(self._store, tool.name)
        if not report.interrupted:
            self._store.tools.update_build_info(tool.id, imported_at=now())
            if not tool.built.lacks_vectors:
                # Vectors of another embedder stay, for an interrupted reembed to resume with.
                self._store.vectors.unpin(tool.id, tool.built.embedder)
            for leftover in self._store.tools.all():
                if leftover.name == f"{catalog.SHADOW_PREFIX}{tool.name}":
                    self._drop_if_empty(leftover)  # a rebuild that wrote nothing
        if not is_search:
            report.notices += [*config.difference_notices([tool]), *self.missing_vectors.notices(tool, failures)]
        return self._finish_import(tool, report)

    def _rebuild_tool(
        self, tool: Tool, *, preparer: Preparer | None, observer: Observer, keep_settings: bool = False
    ) -> Report:
        """Rebuild a tool beside its old index, which is searched until the new one is complete.

        With `keep_settings`, it is built as before, but by this version of bunko.
        """
        config = self._tool_config
        if keep_settings:
            tool = replace(tool, built=replace(tool.built, words=None, grams=None))
        else:
            tool = replace(tool, built=NOT_BUILT)
        check_source_exists(self._store, config.source(tool), tool, self._paths)
        shadow = Tool(
            f"{catalog.SHADOW_PREFIX}{tool.name}",
            tool.kind,
            source=tool.source,
            active=False,
            built=config.build_info(tool),
        )
        for leftover in self._store.tools.all():
            if leftover.name == shadow.name and leftover.built != shadow.built:
                self._store.tools.drop(leftover.id)  # one that was started with the same settings is resumed
        shadow = self._store.tools.put(shadow)
        old_uris = self._document_uris(tool)
        failures: list[EmbedderError] = []
        try:
            on_failure = failures.append if keep_settings else None
            report = self._ingest_tool(tool, shadow, None, preparer, observer, config.embedder_of(tool), on_failure)
        except BaseException:
            with suppress(BunkoError):
                self._drop_if_empty(shadow)
            raise
        if report.interrupted:
            self._drop_if_empty(shadow)
            return report
        report.notices += keep_unreadable(self._store, config, tool, shadow, old_uris - self._document_uris(shadow))
        new_uris = self._document_uris(shadow)
        tool = replace(
            tool,
            built=replace(shadow.built, lacks_vectors=True if failures else None),
            imported_at=now(),
            checked_at=now(),
        )
        record = self._store.scans.get(shadow.id)
        self._store.tools.swap(tool, shadow)
        if record.state:
            keep_record(self._store, tool, record)
        report.added, report.updated = len(new_uris - old_uris), len(new_uris & old_uris)
        report.deleted, report.unchanged = len(old_uris - new_uris), 0
        report.notices += self.missing_vectors.notices(tool, failures)
        if not failures:
            self._store.vectors.unpin(tool.id)
            self._store.vectors.delete_orphans()
        return self._finish_import(tool, report)

    def _drop_if_empty(self, shadow: Tool) -> None:
        """Delete an unfinished rebuild that has no documents to resume from."""
        if not self._store.stats.totals(shadow.id).documents:
            self._store.tools.drop(shadow.id)

    def _document_uris(self, tool: Tool) -> set[str]:
        """Return the uris of a tool's documents, without those that failed."""
        return self._store.documents.fingerprints(tool.id).keys() - {
            problem.uri for problem in self._store.documents.failures(tool.id)
        }

    @reports_import
    def _ingest_tool(
        self,
        tool: Tool,
        target: Tool,
        scan: Scan | None,
        preparer: Preparer | None,
        observer: Observer,
        embedder: Embedder | None,
        on_embedder_failure: Callable[[EmbedderError], None] | None,
    ) -> Report:
        config = self._tool_config
        source = config.source(tool)
        check_source_exists(self._store, source, tool, self._paths)
        _log.info("Importing %s from %s", tool.name, tool.source)
        _log.debug("[reindex] scanning docs_dir=%s", tool.source)
        from bunko.ingest.pipeline import ingest
        from bunko.ingest.preparer import LocalPreparer

        if tool.kind == "web" and not self._store.is_persistent:
            preparer = LocalPreparer(workers=1)  # another process could not read the pages
        return ingest(
            self._store,
            target,
            source,
            config.chunker_settings(tool),
            embedder,
            scan=scan,
            preparer=preparer,
            observer=observer,
            owner_id=tool.id,
            on_embedder_failure=on_embedder_failure,
        )

    def _finish_import(self, tool: Tool, report: Report) -> Report:
        """Mark the tool as fresh unless the import was interrupted, and bring its index up to date."""
        if not report.interrupted:
            self.refresher.mark_fresh(tool)
        if report.added + report.updated:
            report.notices += parser_notices(self._tool_config, tool)
        return self.update_index(tool, report)

    def _embed_missing_now(self, tool: Tool, observer: Observer) -> None:
        """Compute the vectors that a tool lacks while a search waits for a moment; a failure is only remembered."""
        with self.write_lock(observer, tools=[tool.name], wait_seconds=self._wait_seconds):
            tool = catalog.get_tool(self._store, tool.name)
            embedder = self._tool_config.embedder_of(tool)
            if embedder is None:
                return
            remote = as_remote(embedder)
            tool = self.missing_vectors.record_build(tool, self._tool_config.build_info(tool))
            self.missing_vectors.embed(tool, remote.with_retries(0) if remote else embedder, Report(), observer)
            with suppress(IndexFailure):
                self._index.sync(tool.id)

    def _import_scan(self, tool: Tool, scan: Scan, generation: int, observer: Observer) -> None:
        with self.write_lock(observer, tools=[tool.name], wait_seconds=self._wait_seconds):
            # If another import ran since the scan, deleted files may be back: scan again.
            valid_scan = scan if self._store.generation() == generation else None
            current = catalog.get_tool(self._store, tool.name)
            self._update_tool(current, scan=valid_scan, observer=observer, is_search=True)


def _check_available(embedder: Embedder) -> None:
    if reason := embedder.unavailable_reason():
        raise EmbedderError(f"{display_name(embedder.label)} is not available", hint=reason)
