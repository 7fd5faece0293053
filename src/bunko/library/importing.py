"""Tools in, an index that holds what their sources hold out: for the first time, all over again, or what changed."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any, Literal

from bunko.errors import BunkoError, LibraryError, LibraryMismatch, LibraryReadOnly, SourceError
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.ingest.embed import as_remote
from bunko.ingest.pipeline import ImportProgress, ingest
from bunko.ingest.texts import ingest_texts
from bunko.library import catalog, doctor
from bunko.library.build_config import ToolConfig
from bunko.library.indexes import ToolIndexes
from bunko.library.lock import hold_lock
from bunko.library.paths import LibraryPaths
from bunko.library.refresh import Refresher
from bunko.protocols import Scan, Source, Store
from bunko.records import EmbeddingUsage
from bunko.timing import now
from bunko.types import Report, Text, Tool, ToolFailure

_log = logging.getLogger("bunko.library")

# For the first time, all over again, or only what changed.
ImportMode = Literal["new", "replace", "update"]
# How long an import waits for another one to end.
_LOCK_WAIT_SECONDS = 600.0
# An import looks whether texts can be found if at least one in so many is new.
_CHECK_RATIO = 50
# What the reports of several tools add up to.
_SUMMED_FIELDS = ("added", "updated", "deleted", "moved", "unchanged", "total_chunks", "embedded")
# What is wrong with one tool and not with the library: the next one may still be imported.
TOOL_ERROR_CODES = ("source", "mismatch", "embedder", "unknown", "library")


class Importer:
    """Brings the tools of one library up to date; `refresh` does so for searches, as far as that is quick."""

    def __init__(
        self,
        paths: LibraryPaths,
        store: Store,
        tool_config: ToolConfig,
        indexes: ToolIndexes,
        *,
        read_only: bool,
        refresh_interval: float,  # seconds in which a search does not look for changes again
        wait_seconds: float,  # seconds that a search waits for an import
    ) -> None:
        self._paths, self._store, self._tool_config, self._indexes = paths, store, tool_config, indexes
        self._read_only, self._wait_seconds = read_only, wait_seconds
        self.refresher = Refresher(
            store, tool_config.source, self._import_scan, refresh_interval=refresh_interval, wait_seconds=wait_seconds
        )

    def reindex(
        self,
        *,
        tool: str | None = None,
        rebuild: bool = False,
        workers: int | None = None,
        progress: Callable[[ImportProgress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        keep_going: bool = False,  # as in `import_tools`
    ) -> Report:
        """Bring one tool, or all active ones, up to date with their sources, or make their index anew."""
        names = [one.name for one in catalog.select_tools(self._store, tool)]
        mode: ImportMode = "replace" if rebuild else "update"
        return self.import_tools(
            names,
            mode,
            workers=workers,
            progress=progress,
            waiting=waiting,
            stopped=stopped,
            keep_going=keep_going,
        )

    def import_tools(
        self,
        names: Sequence[str],
        mode: ImportMode = "new",
        *,
        # As `recut` gives it for a tool; None: as the tool says.
        chunker_options: Callable[[Tool], Mapping[str, Any] | None] = lambda _: None,
        workers: int | None = None,
        progress: Callable[[ImportProgress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        keep_going: bool = False,  # a tool that fails is told of in the report, and the others are imported
    ) -> Report:
        """Bring tools in for the first time, all over again, or only what changed."""
        total = Report()
        work = self._rebuild_tool if mode == "replace" else self._update_tool
        with self.write_lock(waiting, stopped=stopped):
            if not keep_going:
                for name in names:  # all are fine, or none is begun with
                    self._tool_to_import(name, mode, chunker_options)
            for name in names:
                try:
                    one = self._tool_to_import(name, mode, chunker_options)
                    if mode != "replace" and one != catalog.get_tool(self._store, name):
                        one = self._store.put_tool(one)
                    done = work(one, workers=workers, progress=progress, stopped=stopped)
                except BunkoError as error:
                    if not keep_going or error.code not in TOOL_ERROR_CODES:
                        raise
                    total.failures.append(ToolFailure(name, error.code, error.message, error.hint))
                    continue
                for sum_of in _SUMMED_FIELDS:
                    setattr(total, sum_of, getattr(total, sum_of) + getattr(done, sum_of))
                total.problems += [replace(one, tool=name) for one in done.problems] if names[1:] else done.problems
                total.notices += done.notices
                if done.interrupted:
                    total.interrupted = True
                    break
        return total

    def import_changes(
        self,
        name: str,
        *,
        progress: Callable[[ImportProgress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Bring one folder up to date if anything changed in it; where nothing did, nothing is written or waited for.

        So it may be called often, and by whoever watches the folder that the library itself lies in.
        """
        tool = catalog.get_tool(self._store, name)
        self._tool_config.check_tool(tool)
        source, generation, known = (
            self._tool_config.source(tool),
            self._store.generation(),
            self._store.fingerprints(tool.id),
        )
        self._check_source_exists(source, tool)
        scan = source.scan(known)
        if tool.imported_at and not (scan.added or scan.updated or scan.deleted or scan.touched):
            return Report(unchanged=scan.unchanged, problems=[*scan.problems, *self._store.failures(tool.id)])
        with self.write_lock(waiting, stopped=stopped):
            now_tool = catalog.get_tool(self._store, name)
            same = (now_tool.id, now_tool.source, now_tool.options) == (tool.id, tool.source, tool.options)
            fresh = scan if same and self._store.generation() == generation else None
            return self._update_tool(now_tool, scan=fresh, progress=progress, stopped=stopped)

    def replace_texts(
        self, tool: Tool, texts: Mapping[str, Text], *, progress: Callable[[ImportProgress], None] = lambda _: None
    ) -> Report:
        """Let a tool hold exactly these texts, named by uri; what is unchanged and cut as now is left alone."""
        with self.write_lock():
            old = next((one for one in catalog.tools(self._store) if one.name == tool.name), None)
            if old is not None and old.built and old.built != self._tool_config.build_facts(old):
                self._indexes.delete_index(old.id)
                self._store.drop_tool(old.id)  # its vectors stay until the end: they are named by their text
                old = None
            kept = old or self._store.put_tool(tool)
            self._store.update_build_info(kept.id, built=self._tool_config.build_facts(kept))
            cutting, embedder = self._tool_config.chunker_settings(kept), self._tool_config.embedder_of(kept)
            report = ingest_texts(self._store, kept, texts, cutting, embedder, progress=progress)
            self._store.update_build_info(kept.id, imported_at=now())
            self._store.unpin_vectors(kept.id)
            self._store.delete_orphan_vectors()
            return self._finish_import(kept, report)

    def write_lock(
        self,
        waiting: Callable[[str], None] = lambda _: None,
        *,
        wait_seconds: float = _LOCK_WAIT_SECONDS,
        stopped: Callable[[], bool] = lambda: False,
    ) -> AbstractContextManager[None]:
        """Hold the right to import: one process at a time, the next waits and says so, and can be stopped."""
        if self._read_only:
            raise LibraryReadOnly("This library is open for reading only", hint="Open it for writing to change it.")
        return hold_lock(self._paths, wait_seconds=wait_seconds, waiting=waiting, stopped=stopped)

    def update_index(self, tool: Tool, report: Report) -> Report:
        """Bring the derived index up to date and check that what came in can be found."""
        index = self._indexes.index_of(tool.id)
        with self._store.read_transaction():
            snapshot = index.snapshot()
        index.save()
        # What is small beside the whole does not change whether the whole can be found.
        if (report.added + report.updated) * _CHECK_RATIO > report.unchanged:
            report.notices += self._search_problems(snapshot, tool)
        _log.info(
            "Imported %s: %d added, %d updated, %d deleted, %d unchanged, %d chunks in all",
            tool.name, report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
        )  # fmt: skip
        return report

    def _search_problems(self, snapshot: Snapshot, tool: Tool) -> list[str]:
        """Return in which ways a tool's texts are not found; one call of a remote embedder is made, and noted."""
        embedder = self._tool_config.embedder_of(tool)
        costly = as_remote(embedder)
        before = costly.stats.calls if costly else 0
        told = doctor.search_problems(self._store, snapshot, tool, embedder, per_language=8)
        if costly and costly.stats.calls > before:
            self._store.write(tool.id, usage={costly.name: EmbeddingUsage(calls=costly.stats.calls - before)})
        return told

    def _tool_to_import(
        self, name: str, mode: ImportMode, chunker_options: Callable[[Tool], Mapping[str, Any] | None]
    ) -> Tool:
        """Return a tool as it will be after the import, or say why it cannot be imported so."""
        tool = catalog.get_tool(self._store, name)
        if mode == "new" and tool.imported_at:
            raise LibraryError(
                f"{name} is imported already",
                hint="Use --mode update to take in what changed, or --mode replace to do it all over.",
            )
        wanted = tool
        if (cut := chunker_options(tool)) is not None:
            wanted = replace(tool, options=catalog.options_with_chunker(tool.options, None, 0, 0) | dict(cut))
        if (
            mode != "replace"
            and tool.built
            and self._tool_config.chunker_settings(wanted) != self._tool_config.chunker_settings(tool)
        ):
            raise LibraryMismatch(
                f"{name} is cut another way, and one tool cannot be cut in two ways",
                hint="Use --mode replace to cut all of it anew.",
            )
        return wanted

    def _update_tool(self, tool: Tool, **how: Any) -> Report:
        """Absorb what changed in a tool's source."""
        self._tool_config.check_tool(tool)
        self._store.update_build_info(tool.id, built=self._tool_config.build_facts(tool))
        report = self._ingest_tool(tool, tool, **how)
        if not report.interrupted:
            self._store.update_build_info(tool.id, imported_at=now())
            # What another embedder made for it waits for a change of vectors to be gone on with.
            self._store.unpin_vectors(tool.id, self._tool_config.build_facts(tool)["embedder"])
            for left in self._store.tools():
                if left.name == f"{catalog.SHADOW_PREFIX}{tool.name}":
                    self._drop_if_empty(left)  # a rebuild that never came to anything
        return self._finish_import(tool, report)

    def _rebuild_tool(self, tool: Tool, **how: Any) -> Report:
        """Make a tool's index anew beside the old one, which answers until the new one is whole."""
        self._check_source_exists(self._tool_config.source(tool), tool)
        shadow = Tool(
            f"{catalog.SHADOW_PREFIX}{tool.name}",
            tool.kind,
            source=tool.source,
            active=False,
            built=self._tool_config.build_facts(tool),
        )
        for left in self._store.tools():
            if left.name == shadow.name and left.built != shadow.built:
                self._store.drop_tool(left.id)  # begun with other settings; one with these is gone on with
        shadow = self._store.put_tool(shadow)
        old = self._document_uris(tool)
        try:
            report = self._ingest_tool(tool, shadow, **how)
        except BaseException:
            with suppress(BunkoError):
                self._drop_if_empty(shadow)
            raise
        if report.interrupted:
            self._drop_if_empty(shadow)
            return report
        new = self._document_uris(shadow)
        self._store.swap_tools(replace(tool, built=shadow.built, imported_at=now(), checked_at=now()), shadow)
        report.added, report.updated = len(new - old), len(new & old)
        report.deleted, report.unchanged = len(old - new), 0
        unreadable = {problem.uri for problem in report.problems} & (old - new)
        report.notices += [f"{uri} was indexed before and could not be read for the rebuild." for uri in unreadable]
        self._store.unpin_vectors(tool.id)
        self._store.delete_orphan_vectors()
        return self._finish_import(tool, report)

    def _drop_if_empty(self, shadow: Tool) -> None:
        """Remove a rebuild that holds nothing to go on from."""
        if not self._store.totals(shadow.id).documents:
            self._store.drop_tool(shadow.id)

    def _document_uris(self, tool: Tool) -> set[str]:
        """Return the uris of a tool's documents, without those that failed."""
        return self._store.fingerprints(tool.id).keys() - {problem.uri for problem in self._store.failures(tool.id)}

    def _ingest_tool(self, tool: Tool, target: Tool, *, scan: Scan | None = None, **how: Any) -> Report:
        recipe = self._tool_config
        source = recipe.source(tool)
        self._check_source_exists(source, tool)
        _log.info("Importing %s from %s", tool.name, tool.source)
        _log.debug("[reindex] scanning docs_dir=%s", tool.source)
        return ingest(
            self._store,
            target,
            source,
            recipe.chunker_settings(tool),
            recipe.embedder_of(tool),
            scan=scan,
            owner_id=tool.id,
            **how,
        )

    def _check_source_exists(self, source: Source, tool: Tool) -> None:
        some = self._store.uris(tool.id, limit=1)
        if not source.has_vanished(some):
            return
        delete = f"bunko tool delete -n {shlex.quote(tool.name)}{self._paths.cli_flags()}"
        if not some:
            raise SourceError(
                f"{tool.source}, which {tool.name} is to be imported from, is not there or cannot be read",
                hint=f"Bring it back; or if it is gone for good: {delete}",
            )
        raise SourceError(
            f"{tool.source} has vanished or is empty, but {tool.name} holds documents from it",
            hint=f"What was indexed is kept. Bring the folder back; or if it is gone for good: {delete}",
        )

    def _finish_import(self, tool: Tool, report: Report) -> Report:
        """Note that a tool is fresh, unless the import was interrupted, and bring its index up to date."""
        if not report.interrupted:
            self.refresher.mark_fresh(tool)
        return self.update_index(tool, report)

    def _import_scan(self, tool: Tool, scan: Scan, generation: int, stopped: Callable[[], bool]) -> None:
        with self.write_lock(wait_seconds=self._wait_seconds, stopped=stopped):
            # If somebody imported since we looked, what was deleted then may be back: look again.
            fresh = scan if self._store.generation() == generation else None
            self._update_tool(catalog.get_tool(self._store, tool.name), scan=fresh, stopped=stopped)
