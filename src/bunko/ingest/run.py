"""Bring a store up to date with a source: find, read, chunk, embed and write what changed."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from bunko.errors import EmbedderError
from bunko.ingest.changes import find_changes, record_import
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import EmbeddedBatch, EmbeddedText, LongTextCounter, embed_batches
from bunko.ingest.policy import ImportPolicy
from bunko.ingest.prepare import EntryResult
from bunko.ingest.preparer import LocalPreparer
from bunko.protocols import Embedder, Scan, Source, Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import ImportProgress, Observer
from bunko.runtime.timing import timer
from bunko.types import ExcerptEntry, Problem, Report, Tool
from bunko.types.records import PreparedDocument

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# One transaction: large enough that a sync is cheap, small enough that a kill loses little work.
_BATCH_BYTES = 500_000
_BATCH_FILES = 100


@dataclass(slots=True)
class ImportRun:
    """One import of a tool's source into a store; every document changes whole or not at all.

    It can be cancelled between transactions: what was written stays, and the next import continues from there.
    """

    store: Store
    tool: Tool
    source: Source
    chunker: ChunkerSettings
    embedder: Embedder | None
    policy: ImportPolicy
    target: Tool | None = None  # the tool that documents are written to, if it is not the tool itself
    failures: list[EmbedderError] = field(default_factory=list)  # of the embedder; the import went on without it
    step_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # in all processes
    _report: Report = field(default_factory=Report)
    _updated_uris: set[str] = field(default_factory=set)
    # Sizes and times of entries by uri, as the scan saw them, until they are written like that.
    _unsettled: dict[str, tuple[int, int]] = field(default_factory=dict)

    def run(self, scan: Scan | None = None) -> Report:
        """Write what changed in the source, as a recent scan found it or a new one does, and return what was done."""
        store, target, observer = self.store, self.target or self.tool, self.policy.observer
        with timer("reindex_total", _log):
            if scan is None:
                with timer("file_scan", _log):
                    scan = find_changes(store, target, self.source)
            is_current = scan.version == store.scans.get(target.id).version
            done = self._begin(scan, target)
            observer.on_progress(done)
            preparer = self.policy.preparer or LocalPreparer()
            embedder = preparer.place_embedder(self.embedder)
            long_texts = LongTextCounter(embedder)
            entries = make_batches(scan.load_texts(chain(scan.added, scan.updated)), lambda entry: entry.work_size)
            ready: dict[bytes, EmbeddedText] = {}
            # Closed here, also after an error: the garbage collector would do it in any thread, even in a worker's.
            with (
                closing(
                    preparer.prepare(
                        self.source, self.chunker, embedder, entries, done.total_bytes, observer.is_cancelled
                    )
                ) as prepared,
                closing(
                    embed_batches(
                        store, embedder, _with_documents(prepared, ready, observer, self._report), ready=ready,
                        owner_id=self.tool.id, failures=None if self.policy.needs_vectors else self.failures,
                    )
                ) as embedded_batches,
            ):  # fmt: skip
                for embedded in embedded_batches:
                    self._write(embedded, scan, target)
                    done = replace(
                        done,
                        files=done.files + len(embedded.batch),
                        chunks=done.chunks + sum(len(document.chunks) for document in embedded.documents),
                        bytes=done.bytes + sum(result.work for result in embedded.batch),
                        last=next((result.entry.uri for result in reversed(embedded.batch)), done.last),
                    )
                    observer.on_progress(done)
            report = self._report
            if not report.interrupted:
                self._publish(scan, target, is_current=is_current)
            report.notices += [*preparer.take_notices(), *long_texts.warnings()]
            report.problems += store.documents.failures(target.id)
            report.total_chunks = store.stats.totals(target.id).chunks
        _log.debug(
            "[reindex] summary: added=%d, updated=%d, deleted=%d, unchanged=%d, total_chunks=%d",
            report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
        )  # fmt: skip
        return report

    def _begin(self, scan: Scan, target: Tool) -> ImportProgress:
        """Start the report, remove what is gone, and return how much there is to do."""
        failed_uris = {problem.uri for problem in self.store.documents.failures(target.id)}
        self._report = _report_of_scan(scan, failed_uris)
        self._updated_uris = {entry.uri for entry in scan.updated} - failed_uris
        total_bytes = 0
        for entry in chain(scan.added, scan.updated):
            total_bytes += entry.work_size
            # Entries of larger files were read by the scan itself, which has stored their times in `touched`.
            if not isinstance(entry, ExcerptEntry):
                self._unsettled[entry.uri] = entry.size, entry.modified_ns
        # A moved document leaves its old uri in the transaction that writes it under the new one.
        moved_from = set(scan.moved.values())
        if uris := [uri for uri in scan.deleted if uri not in moved_from]:
            self.store.documents.write(target.id, remove=uris)
            reach_failpoint("ingest.removed")
        return ImportProgress(0, len(scan.added) + len(scan.updated), 0, 0, total_bytes)

    def _write(self, embedded: EmbeddedBatch[Sequence[EntryResult]], scan: Scan, target: Tool) -> None:
        """Write a batch in one transaction and add it to the report."""
        if self.failures and target is self.tool and not self.tool.built.lacks_vectors:
            # First: a kill must not hide that documents lack vectors.
            self.tool = replace(self.tool, built=replace(self.tool.built, lacks_vectors=True))
            self.store.tools.update_build_info(self.tool.id, built=self.tool.built)
        report, batch, documents = self._report, embedded.batch, embedded.documents
        moved_from = [
            scan.moved[result.entry.uri] for result in batch if result.entry.uri in scan.moved and not result.problem
        ]
        report.problems += [Problem(result.entry.uri, result.problem) for result in batch if result.problem]
        report.problems += [
            Problem(prepared.document.uri, prepared.document.text.missing)
            for prepared in documents
            if prepared.document.text.missing
        ]
        start = time.perf_counter()
        with timer("sqlite_write", _log, indent=1, detail=f"{len(documents)} documents"):
            self.store.documents.write(
                target.id,
                upsert=documents,
                fail=[result.failure for result in batch if result.failure],
                remove=moved_from,
                vectors=embedded.vectors,
                sentences=embedded.sentences,
                usage=embedded.usage,
            )
        reach_failpoint("ingest.batch")
        self.step_seconds["embed"] += embedded.seconds
        self.step_seconds["sqlite_write"] += time.perf_counter() - start
        report.embedded += len(embedded.vectors)
        for result in batch:
            entry = result.entry
            if not result.problem and self._unsettled.get(entry.uri) == (entry.size, entry.trusted_modified_ns()):
                del self._unsettled[entry.uri]
            if result.document is None or entry.uri in scan.moved:
                continue
            if entry.uri in self._updated_uris:
                report.updated += 1
            else:
                report.added += 1
            _log.debug("[reindex] processing: %s", entry.uri)
            sizes = [len(chunk.text) for chunk in result.document.chunks]
            for step, seconds in result.step_seconds.items():
                self.step_seconds[step] += seconds
                detail = f" ({len(sizes)} chunks, chars={sizes})" if step == "chunk_split" else ""
                _log.debug("[TIMER]   %s: %.1fms%s", step, seconds * 1000, detail)

    def _publish(self, scan: Scan, target: Tool, *, is_current: bool) -> None:
        """Write last what tells the next scan that all of this one was written."""
        if scan.touched:
            # A file of many entries is up to date only when every one of them is written.
            self.store.documents.write(target.id, touch=scan.touched)
        is_settled = not self._unsettled and all(entry.trusted_modified_ns() for entry in scan.touched)
        if scan.state and scan.has_changes and is_current and is_settled:
            record_import(self.store, target, scan)


def _report_of_scan(scan: Scan, failed_uris: set[str]) -> Report:
    """Return the report after a scan; documents that failed before are not counted."""
    entries = chain(scan.added, scan.updated) if failed_uris else ()
    read_again = {entry.uri for entry in entries if entry.uri in failed_uris}
    report = Report(
        unchanged=scan.unchanged - len(failed_uris - read_again - set(scan.deleted)),
        deleted=len(set(scan.deleted) - set(scan.moved.values()) - failed_uris),
        moved=len(scan.moved),
        problems=list(scan.problems),
        skipped_folders=list(scan.skipped_folders),
    )
    _log.debug(
        "[reindex] scan result: %d files (new=%d, updated=%d, deleted=%d, unchanged=%d)",
        len(scan.added) + len(scan.updated) + report.unchanged,
        len(scan.added), len(scan.updated), len(scan.deleted), report.unchanged,
    )  # fmt: skip
    return report


def _with_documents(
    batches: Iterable[Sequence[EntryResult]], ready: dict[bytes, EmbeddedText], observer: Observer, report: Report
) -> Iterator[tuple[Sequence[EntryResult], list[PreparedDocument]]]:
    """Yield batches with their documents until the import is cancelled; batches already yielded are still written.

    The vectors that came with a batch are put into `ready`.
    """
    for batch in batches:
        if observer.is_cancelled():
            report.interrupted = True
            return
        ready.clear()
        for result in batch:
            ready.update(result.embedded)
        yield batch, [result.document for result in batch if result.document]


def make_batches(items: Iterable[T], size_of: Callable[[T], int], max_size: int = _BATCH_BYTES) -> Iterator[list[T]]:
    """Yield items in order, grouped into batches of about `max_size` for one transaction each."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if size >= max_size or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
