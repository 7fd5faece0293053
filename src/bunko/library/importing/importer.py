"""Import tools from their sources: for the first time, from scratch, or only the changes.

An import of a tool goes from its source to the store (`ImportRun`), and from there to the index that is searched.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from operator import itemgetter
from typing import Literal, NamedTuple, TypedDict, Unpack

from bunko import ingest
from bunko.embedders.embed import as_remote, unavailable_reason
from bunko.embedders.names import display_name
from bunko.errors import (
    BunkoError,
    EmbedderError,
    IndexFailure,
    LibraryBusy,
    LibraryError,
    LibraryMismatch,
    LibraryReadOnly,
    SourceError,
)  # fmt: skip
from bunko.ingest.changes import find_changes, keep_record
from bunko.ingest.policy import LOCK_SECONDS, ImportPolicy
from bunko.library.importing.missing_vectors import MissingVectors
from bunko.library.importing.outages import Outages
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig
from bunko.library.tools.suggested_commands import move_command
from bunko.protocols import Embedder, Index, Scan, Source, Store, WriterLock
from bunko.readers import code
from bunko.runtime.activity import reports_import
from bunko.runtime.installation import install_command
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import now
from bunko.sources import plugin_errors
from bunko.sources.gitignore import named_endings
from bunko.types import Report, Text, Tool, ToolFailure
from bunko.types.build_info import NOT_BUILT
from bunko.types.tool_options import ToolOptions

_log = logging.getLogger("bunko.library")

# An import of at least one document in this many is worth a check that searches find the texts.
_CHECK_RATIO = 50
# Errors of one tool, not of the library: the next tool may still be imported.
TOOL_ERROR_CODES = ("source", "mismatch", "embedder", "unknown", "library")

ImportMode = Literal["new", "replace", "update"]


class ImportOptions(TypedDict, total=False):
    """How an import of tools runs."""

    workers: int | None  # the maximum number of processes; None: one for each core
    on: str  # where documents are prepared: local, ray, ray:auto or ray://HOST:PORT
    observer: Observer
    keep_going: bool  # report a tool that fails and continue with the next one


class SourceCheck(NamedTuple):
    """One check of a tool's folder for changes."""

    monotonic_seconds: float  # time of the check on the monotonic clock
    checked_at: str  # the same as a date and time
    missing_files: int  # changed files that the index lacked


class Importer:
    """Brings the tools of one library up to date."""

    def __init__(
        self,
        paths: LibraryPaths,
        store: Store,
        tool_config: ToolConfig,
        index: Index,
        outages: Outages,
        *,
        read_only: bool,
    ) -> None:
        self._paths, self._store, self._tool_config, self._index = paths, store, tool_config, index
        self._outages, self._read_only = outages, read_only
        self.missing_vectors = MissingVectors(store, tool_config, outages)
        self.checks: dict[int, SourceCheck] = {}  # the last one of each tool by this process

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
        total, observer, keep_going = Report(), options.get("observer", NO_OBSERVER), options.get("keep_going", False)
        imported: list[str] = []
        # A cluster comes first: if it cannot be reached, nothing has changed yet, and nobody has waited.
        with (
            ingest.open_preparer(options.get("on", "local"), options.get("workers")) as preparer,
            self.write_lock(observer, tools=names),
        ):
            policy = ImportPolicy(observer, preparer)
            if not keep_going and len(names) > 1:
                for name in names:  # check all tools before importing the first
                    self._check_mode(catalog.get_tool(self._store, name), mode, options_of)
            for name in names:
                try:
                    tool = catalog.get_tool(self._store, name)
                    self._check_mode(tool, mode, options_of)
                    self._store.tools.claim(tool.id)
                    if (tool_options := options_of(tool)) != tool.options:
                        tool = replace(tool, options=tool_options)
                        tool = tool if mode == "replace" else self._store.tools.put(tool)
                    if mode == "replace":
                        report = self._rebuild_tool(tool, policy)
                    else:
                        report = self._update_tool(tool, policy)
                except BunkoError as error:
                    if not keep_going or error.code not in TOOL_ERROR_CODES:
                        raise
                    total.failures.append(ToolFailure(name, error.code, error.message, error.hint))
                    continue
                total.include(report, tool=tool.name if len(names) > 1 else "")
                if not (report.added or report.updated or report.moved or report.unchanged):
                    from bunko.library.tools.nothing_found import (
                        notices_about_nothing,  # seldom, and a search would load it
                    )

                    total.notices += notices_about_nothing(self._tool_config, tool, report, self._paths)
                if (report.added + report.updated) * _CHECK_RATIO > report.unchanged:
                    total.changed_tools.append(tool.name)
                if total.interrupted:
                    break
                imported.append(name)
            if not total.interrupted:  # at the end: a file may have moved from one tool to another
                self._delete_unused_vectors(imported)
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
        self._check_source_exists(tool, source)
        scan = find_changes(self._store, tool, source)
        if tool.imported_at and not scan.has_changes and not self.missing_vectors.can_embed(tool):
            return Report(unchanged=scan.unchanged, problems=[*scan.problems, *self._store.documents.failures(tool.id)])
        with self.write_lock(observer, tools=[name]):
            current = catalog.get_tool(self._store, name)
            self._store.tools.claim(current.id)
            is_same_tool = (current.id, current.source, current.options) == (tool.id, tool.source, tool.options)
            valid_scan = scan if is_same_tool and self._store.generation() == generation else None
            report = self._update_tool(current, ImportPolicy(observer), valid_scan)
            if not report.interrupted:
                self._delete_unused_vectors([name])
            return report

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
            report = ingest.ingest_texts(self._store, target, texts, chunker, embedder, observer=observer)
            self._store.tools.update_build_info(target.id, imported_at=now())
            self._store.vectors.unpin(target.id)
            self._store.vectors.delete_orphans()
            return self._finish_import(target, report)

    def write_lock(
        self,
        observer: Observer = NO_OBSERVER,
        *,
        tools: Sequence[str] | None = None,
        wait_seconds: float = LOCK_SECONDS,
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
        """Bring the derived index up to date."""
        try:
            view = self._index.sync(tool.id)
        except IndexFailure as failure:  # the documents are imported; the next import or `bunko index sync` catches up
            report.notices.append(f"The index was not updated: {failure.message}. {failure.hint}".rstrip())
            return report
        report.notices += view.notices
        _log.info(
            "Imported %s: %d added, %d updated, %d deleted, %d unchanged, %d chunks in total",
            tool.name, report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
        )  # fmt: skip
        return report

    def import_scan(self, tool: Tool, scan: Scan, generation: int, policy: ImportPolicy) -> None:
        """Import the changes of a scan; if the library's generation has changed since, scan the source again."""
        with self.write_lock(policy.observer, tools=[tool.name], wait_seconds=policy.lock_seconds):
            # If another import ran since the scan, deleted files may be back: scan again.
            valid_scan = scan if self._store.generation() == generation else None
            current = catalog.get_tool(self._store, tool.name)
            report = self._update_tool(current, policy, valid_scan)
            # What was paid for waits for an import: the text may be in a tool that the search has not looked at.
            if not report.interrupted and not as_remote(self._tool_config.embedder_of(current)):
                self._delete_unused_vectors([tool.name])

    def embed_missing(self, tool: Tool, policy: ImportPolicy) -> None:
        """Compute the vectors that a tool lacks while a search waits for a moment; a failure is only remembered."""
        with self.write_lock(policy.observer, tools=[tool.name], wait_seconds=policy.lock_seconds):
            tool = catalog.get_tool(self._store, tool.name)
            embedder = self._tool_config.embedder_of(tool)
            if embedder is None:
                return
            remote = as_remote(embedder)
            tool = self.missing_vectors.record_build(tool, self._tool_config.build_info(tool))
            self.missing_vectors.embed(tool, remote.with_retries(0) if remote else embedder, Report(), policy.observer)
            with suppress(IndexFailure):
                self._index.sync(tool.id)

    def _check_mode(self, tool: Tool, mode: ImportMode, options_of: Callable[[Tool], ToolOptions]) -> None:
        """Raise if a tool cannot be imported in a mode with the options that it will have."""
        if mode == "new" and tool.imported_at:
            command, flags = f"bunko import -n {shlex.quote(tool.name)} --mode", self._paths.cli_flags()
            raise LibraryError(
                f"{tool.name} is already imported",
                hint=f"To import its changes:\n  {command} update{flags}\nTo rebuild it:\n  {command} replace{flags}",
            )
        config, options = self._tool_config, options_of(tool)
        if (
            mode != "replace"
            and options != tool.options
            and config.holds_documents(tool)
            and config.new_chunker_settings(replace(tool, options=options))
            not in (config.new_chunker_settings(tool), config.chunker_settings(tool))
        ):
            raise LibraryMismatch(
                f"{tool.name} was imported with another chunker, and a tool cannot mix two chunkers",
                hint="Use --mode replace to rebuild it with the new one.",
            )

    def _check_source_exists(self, tool: Tool, source: Source) -> None:
        """Raise if a source has vanished as a whole: its documents were not deleted one by one: the index is kept."""
        indexed_uris = self._store.documents.uris(tool.id, limit=1)
        with plugin_errors(tool.kind):
            has_vanished = source.has_vanished(indexed_uris)
        if not has_vanished:
            return
        choices = f"or if it has moved: {move_command(self._paths, tool)}"
        if self._paths.docs_dir is None:
            delete_command = f"bunko tool delete -n {shlex.quote(tool.name)}{self._paths.cli_flags()}"
            choices = f"delete the tool ({delete_command}), {choices}"
        if not indexed_uris:
            raise SourceError(
                f"{tool.source}, the source of {tool.name}, does not exist or cannot be read",
                hint=f"Restore it, {choices}",
            )
        raise SourceError(
            f"{tool.source} is missing or empty, but {tool.name} has documents from it",
            hint=f"The index is kept. Restore the folder, {choices}",
        )

    def _update_tool(self, tool: Tool, policy: ImportPolicy, scan: Scan | None = None) -> Report:
        """Import the changes of a tool's source with what the tool was built with."""
        config = self._tool_config
        config.begin_import(tool)
        if policy.rebuilds_outdated and config.is_outdated(tool) and not config.embedder_problem(tool):
            report = self._rebuild_tool(tool, policy, keep_settings=True)
            report.notices.append(f"{tool.name} was rebuilt, because an older version of bunko had built it.")
            return report
        embedder = config.embedder_of(tool)
        failures: list[EmbedderError] = []
        if embedder is not None and policy.uses_services:
            failures += _call_embedder(embedder, is_new=not config.holds_documents(tool))
        if not config.holds_documents(tool):
            config.remember_own_build(tool)
        asks_embedder = policy.uses_services and not failures
        tool = self.missing_vectors.record_build(tool, config.build_info(tool, asks_embedder=asks_embedder))
        source = config.source(tool)
        is_away = failures or (as_remote(embedder) and not policy.uses_services)
        if is_away or (embedder is None and config.embedder_problem(tool)):
            embedder = None
            scan = scan or find_changes(self._store, tool, source)
            if scan.added or scan.updated:
                tool = self.missing_vectors.record_build(tool, replace(tool.built, lacks_vectors=True))
        run = ingest.ImportRun(self._store, tool, source, config.chunker_settings(tool), embedder, policy)
        report = self._run(run, scan)
        tool, failures = run.tool, [*failures, *run.failures]
        if embedder is not None and not failures:
            if report.embedded:
                self._outages.end(embedder)
            if tool.built.lacks_vectors and not report.interrupted:
                failures = self.missing_vectors.embed(tool, embedder, report, policy.observer)
                tool = catalog.get_tool(self._store, tool.name)
        if not report.interrupted:
            self._store.tools.update_build_info(tool.id, imported_at=now())
            if not tool.built.lacks_vectors:
                # Vectors of another embedder stay, for an interrupted reembed to resume with.
                self._store.vectors.unpin(tool.id, tool.built.embedder)
            for leftover in self._store.tools.all():
                if leftover.name == f"{catalog.SHADOW_PREFIX}{tool.name}":
                    self._drop_if_empty(leftover)  # a rebuild that wrote nothing
        if policy.adds_notices:
            report.notices += [*config.difference_notices([tool]), *self.missing_vectors.notices(tool, failures)]
        return self._finish_import(tool, report, run.step_seconds)

    def _rebuild_tool(self, tool: Tool, policy: ImportPolicy, *, keep_settings: bool = False) -> Report:
        """Rebuild a tool beside its old index, which is searched until the new one is complete.

        With `keep_settings`, it is built as before, but by this version of bunko.
        """
        config = self._tool_config
        if keep_settings:
            tool = replace(tool, built=replace(tool.built, words=None, grams=None))
        else:
            tool = replace(tool, built=NOT_BUILT)
        source = config.source(tool)
        self._check_source_exists(tool, source)
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
        policy = replace(policy, needs_vectors=not keep_settings)
        try:
            chunker, embedder = config.chunker_settings(tool), config.embedder_of(tool)
            run = ingest.ImportRun(self._store, tool, source, chunker, embedder, policy, shadow)
            report = self._run(run)
            if report.interrupted:
                self._drop_if_empty(shadow)
                return report
            missing_uris = old_uris - self._document_uris(shadow)
            if missing_uris:
                report.notices += self._keep_unreadable(run, shadow, missing_uris, report)
        except BaseException:
            with suppress(BunkoError):
                self._drop_if_empty(shadow)
            raise
        new_uris = self._document_uris(shadow)
        tool = replace(
            tool,
            built=replace(shadow.built, lacks_vectors=True if run.failures else None),
            imported_at=now(),
            checked_at=now(),
        )
        record = self._store.scans.get(shadow.id)
        if not keep_settings:
            config.remember_own_build(tool)
        self._store.tools.swap(tool, shadow)
        if record.state:
            keep_record(self._store, tool, record)
        report.added, report.updated = len(new_uris - old_uris), len(new_uris & old_uris)
        report.deleted, report.unchanged = len(old_uris - new_uris), 0
        report.notices += self.missing_vectors.notices(tool, run.failures)
        if not run.failures:
            self._store.vectors.unpin(tool.id)
            self._store.vectors.delete_orphans()
        return self._finish_import(tool, report, run.step_seconds)

    def _drop_if_empty(self, shadow: Tool) -> None:
        """Delete an unfinished rebuild that has no documents to resume from."""
        if not self._store.stats.totals(shadow.id).documents:
            self._store.tools.drop(shadow.id)

    def _document_uris(self, tool: Tool) -> set[str]:
        """Return the uris of a tool's documents, without those that failed."""
        return self._store.documents.fingerprints(tool.id).keys() - {
            problem.uri for problem in self._store.documents.failures(tool.id)
        }

    def _keep_unreadable(self, run: ingest.ImportRun, shadow: Tool, missing: set[str], report: Report) -> list[str]:
        """Carry over what a rebuild misses because its file cannot be read or listed now; return a notice."""
        fingerprints = self._store.documents.fingerprints(run.tool.id)
        scan = self._tool_config.source(run.tool).scan({uri: fingerprints[uri] for uri in missing})
        readable_uris = {entry.uri for entry in (*scan.updated, *scan.touched)}
        failures = {problem.uri for problem in self._store.documents.failures(shadow.id)}
        readable_uris -= {problem.uri for problem in report.problems} - failures  # for which a package is missing
        uris = sorted(missing - readable_uris - set(scan.deleted))
        if not uris:
            return []
        ingest.keep_documents(self._store, run.tool, shadow, uris, run.chunker, run.embedder)
        files = "1 file" if len(uris) == 1 else f"{len(uris)} files"
        names = ", ".join(uris[:3]) + (", …" if len(uris) > 3 else "")
        return [f"{files} could not be read now and kept the text that was indexed before: {names}."]

    @reports_import
    def _run(self, run: ingest.ImportRun, scan: Scan | None = None) -> Report:
        """Import from the source of a tool to the store, if the source is there."""
        self._check_source_exists(run.tool, run.source)
        _log.info("Importing %s from %s", run.tool.name, run.tool.source)
        _log.debug("[reindex] scanning docs_dir=%s", run.tool.source)
        if run.tool.kind == "web" and not self._store.is_persistent:
            # Another process could not read the pages.
            run.policy = replace(run.policy, preparer=ingest.LocalPreparer(workers=1))
        return run.run(scan)

    def _finish_import(self, tool: Tool, report: Report, step_seconds: Mapping[str, float] | None = None) -> Report:
        """Mark the tool as fresh unless the import was interrupted, and bring its index up to date."""
        if not report.interrupted:
            self.checks[tool.id] = SourceCheck(time.monotonic(), now(), 0)
        if report.added + report.updated:
            report.notices += self._parser_notices(tool)
        start = time.perf_counter()
        report = self.update_index(tool, report)
        if step_seconds:
            seconds = {**step_seconds, "index_sync": time.perf_counter() - start}
            total = sum(seconds.values())
            steps = sorted(seconds.items(), key=itemgetter(1), reverse=True)
            _log.debug("[reindex] work by step: %s", ", ".join(f"{step} {value / total:.0%}" for step, value in steps))
        return report

    def _parser_notices(self, tool: Tool) -> list[str]:
        """Return a notice if a tool reads source code and no parser for it is installed."""
        names = (*self._tool_config.scan_settings(tool).file_extensions(), *named_endings(tool.options.include))
        endings = {f".{name.removeprefix('.')}" for name in names}
        if endings.isdisjoint(code.suffixes()) or code.has_parser():
            return []
        return [
            f"The source code of {tool.name} is divided by its lines. To divide it by definitions, install a parser"
            f" with {install_command('code')}, then rebuild: {self._tool_config.rebuild_command(tool)}"
        ]

    def _delete_unused_vectors(self, names: Sequence[str]) -> None:
        """Delete the vectors that tools do not use any more; one that lacks vectors may need them yet."""
        for tool in self._store.tools.all():
            if tool.name in names and not tool.built.lacks_vectors:
                self._store.vectors.delete_released(tool.id)


def _call_embedder(embedder: Embedder, *, is_new: bool) -> list[EmbedderError]:
    """Return the error of a service that is asked for the size of its model and does not answer.

    Raise if the embedder of a new tool lacks a package, a model or a key: that is no outage.
    """
    remote = as_remote(embedder)
    if is_new and (reason := remote.setup_problem() if remote else unavailable_reason(embedder)):
        raise EmbedderError(f"{display_name(embedder.label)} is not available", hint=reason)
    try:
        _ = remote.size if remote else 0
    except EmbedderError as error:
        return [error]
    return []


# How often a waiting process tries again, so that it can be cancelled in between.
_RETRY_SECONDS = 0.2


@contextmanager
def hold_lock(
    lock: WriterLock,
    *,
    wait_seconds: float,
    observer: Observer,
    activity: str = "importing into",
) -> Iterator[None]:
    """Hold a lock after waiting at most `wait_seconds` for it."""
    deadline = time.monotonic() + wait_seconds
    is_waiting = False
    while not lock.acquire(_RETRY_SECONDS if is_waiting else 0):
        holder = lock.holder() or "Another process"
        if time.monotonic() >= deadline or observer.is_cancelled():
            raise LibraryBusy(
                f"{holder} is {activity} this library", hint="Wait until it has finished, then try again."
            )
        if not is_waiting:
            observer.on_wait(f"{holder} is {activity} this library; waiting for it to finish.")
            is_waiting = True
    try:
        yield
    finally:
        lock.release()
