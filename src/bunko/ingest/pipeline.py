"""Bring a store up to date with a source: read, chunk, tokenize and embed what changed, on all cores."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from bunko.errors import EmbedderError
from bunko.failpoints import reach_failpoint
from bunko.ingest.changes import find_changes, record_import
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import EmbeddedBatch, embed_batches
from bunko.ingest.long_texts import LongTextCounter
from bunko.ingest.prepare import EntryResult
from bunko.ingest.preparer import LocalPreparer, Preparer
from bunko.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.protocols import Embedder, Scan, Source, Store
from bunko.records import PreparedDocument
from bunko.timing import timer
from bunko.types import ExcerptEntry, Problem, Report, SourceEntry, Tool

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# One transaction: large enough that a sync is cheap, small enough that a kill loses little work.
_BATCH_BYTES = 500_000
_BATCH_FILES = 100


def ingest(
    store: Store,
    tool: Tool,
    source: Source,
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    *,
    scan: Scan | None = None,
    preparer: Preparer | None = None,
    observer: Observer = NO_OBSERVER,
    owner_id: int = 0,
    on_embedder_failure: Callable[[EmbedderError], None] | None = None,
) -> Report:
    """Bring a tool up to date with its source; every document changes whole or not at all.

    `scan` is a recent scan of the source, if there is one. `preparer` prepares the documents and runs local models; by
    default, worker processes on this machine do. An import can be cancelled between transactions: what was written
    stays, and the next import continues from there. Vectors that were paid for but not written are stored for the tool
    `owner_id`, if given, else for this one. If the embedder fails, the error is raised, or with `on_embedder_failure`
    the other documents are written without new vectors.
    """
    with timer("reindex_total", _log):
        scan = scan or _scan(store, tool, source)
        is_current = scan.version == store.scans.get(tool.id).version
        failed_uris = {problem.uri for problem in store.documents.failures(tool.id)}
        report = _initial_report(scan, failed_uris)
        updated_uris = {entry.uri for entry in scan.updated} - failed_uris
        settling = _Settling()
        total_bytes = sum(settling.expect(entry) for entry in chain(scan.added, scan.updated))
        _remove_deleted_documents(store, tool, scan)
        done = ImportProgress(0, len(scan.added) + len(scan.updated), 0, 0, total_bytes)
        observer.on_progress(done)
        preparer = preparer or LocalPreparer()
        embedder = preparer.place_embedder(embedder)
        long_texts = LongTextCounter(embedder)
        entry_batches = make_batches(scan.load_texts(chain(scan.added, scan.updated)), lambda entry: entry.work_size)
        # Closed here, also after an error: the garbage collector would do it in any thread, even in one of its workers.
        with (
            closing(
                preparer.prepare(source, chunker_settings, entry_batches, total_bytes, observer.is_cancelled)
            ) as prepared,
            closing(
                embed_batches(
                    store, embedder, _take_until_stop(observer, prepared, report), _prepared_documents,
                    owner_id=owner_id or tool.id, on_failure=on_embedder_failure,
                )
            ) as embedded_batches,
        ):  # fmt: skip
            for embedded in embedded_batches:
                _write_batch(store, tool, scan, embedded, report, updated_uris)
                settling.add(embedded.batch)
                done = _add_progress(done, embedded)
                observer.on_progress(done)
        if not report.interrupted:
            _mark_up_to_date(store, tool, scan, is_complete=is_current and settling.is_complete(scan))
        report.notices += [*preparer.take_notices(), *long_texts.warnings()]
        report.problems += store.documents.failures(tool.id)
        report.total_chunks = store.stats.totals(tool.id).chunks
    _log_summary(report)
    return report


def _scan(store: Store, tool: Tool, source: Source) -> Scan:
    with timer("file_scan", _log):
        return find_changes(store, tool, source)


def _mark_up_to_date(store: Store, tool: Tool, scan: Scan, *, is_complete: bool) -> None:
    """Write last what tells the next scan that all of this one was written."""
    if scan.touched:
        # A file of many entries is up to date only when every one of them is written.
        store.documents.write(tool.id, touch=scan.touched)
    if scan.state and scan.has_changes and is_complete:
        record_import(store, tool, scan)


class _Settling:
    """Whether all entries were written as the scan saw them, so that the next one finds nothing new."""

    def __init__(self) -> None:
        self._scanned: dict[str, tuple[int, int]] = {}

    def expect(self, entry: SourceEntry) -> int:
        """Add an entry that will be written; return its amount of work."""
        # Entries of larger files were read by the scan itself, which has stored their times in `touched`.
        if not isinstance(entry, ExcerptEntry):
            self._scanned[entry.uri] = (entry.size, entry.modified_ns)
        return entry.work_size

    def add(self, batch: Sequence[EntryResult]) -> None:
        for result in batch:
            entry = result.entry
            if not result.problem and self._scanned.get(entry.uri) == (entry.size, entry.trusted_modified_ns()):
                del self._scanned[entry.uri]

    def is_complete(self, scan: Scan) -> bool:
        return not self._scanned and all(entry.trusted_modified_ns() for entry in scan.touched)


def _log_summary(report: Report) -> None:
    _log.debug(
        "[reindex] summary: added=%d, updated=%d, deleted=%d, unchanged=%d, total_chunks=%d",
        report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
    )  # fmt: skip


def _add_progress(done: ImportProgress, embedded: EmbeddedBatch[Sequence[EntryResult]]) -> ImportProgress:
    return replace(
        done,
        files=done.files + len(embedded.batch),
        chunks=done.chunks + sum(len(prepared.chunks) for prepared in embedded.documents),
        bytes=done.bytes + sum(result.work for result in embedded.batch),
    )


def _remove_deleted_documents(store: Store, tool: Tool, scan: Scan) -> None:
    # A moved document leaves its old uri in the transaction that writes it under the new one.
    moved_from = set(scan.moved.values())
    uris = [uri for uri in scan.deleted if uri not in moved_from]
    if uris:
        store.documents.write(tool.id, remove=uris)
        reach_failpoint("ingest.removed")


def _write_batch(
    store: Store,
    tool: Tool,
    scan: Scan,
    embedded: EmbeddedBatch[Sequence[EntryResult]],
    report: Report,
    updated_uris: set[str],
) -> None:
    """Write a batch in one transaction and add it to the report."""
    batch, documents = embedded.batch, embedded.documents
    moved_from = [
        scan.moved[result.entry.uri] for result in batch if result.entry.uri in scan.moved and not result.problem
    ]
    failures = [result.failure for result in batch if result.failure]
    report.problems += [Problem(result.entry.uri, result.problem) for result in batch if result.problem]
    with timer("sqlite_write", _log, indent=1, detail=f"{len(documents)} documents"):
        store.documents.write(
            tool.id,
            upsert=documents,
            fail=failures,
            remove=moved_from,
            vectors=embedded.vectors,
            sentences=embedded.sentences,
            usage=embedded.usage,
        )
    reach_failpoint("ingest.batch")
    _update_report(report, batch, updated_uris, scan, len(embedded.vectors))


def _initial_report(scan: Scan, failed_uris: set[str]) -> Report:
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


def _take_until_stop(
    observer: Observer, batches: Iterable[Sequence[EntryResult]], report: Report
) -> Iterator[Sequence[EntryResult]]:
    """Yield batches until the import is cancelled; batches already yielded are still written."""
    for batch in batches:
        if observer.is_cancelled():
            report.interrupted = True
            return
        yield batch


def _prepared_documents(batch: Sequence[EntryResult]) -> list[PreparedDocument]:
    return [result.document for result in batch if result.document]


def _update_report(
    report: Report, batch: Sequence[EntryResult], updated_uris: set[str], scan: Scan, embedded_count: int
) -> None:
    report.embedded += embedded_count
    for result in batch:
        if result.document is None:
            continue
        if result.entry.uri in scan.moved:
            continue
        if result.entry.uri in updated_uris:
            report.updated += 1
        else:
            report.added += 1
        _log.debug("[reindex] processing: %s", result.entry.uri)
        sizes = [len(chunk.text) for chunk in result.document.chunks]
        for step, seconds in result.step_seconds.items():
            detail = f" ({len(sizes)} chunks, chars={sizes})" if step == "chunk_split" else ""
            _log.debug("[TIMER]   %s: %.1fms%s", step, seconds * 1000, detail)


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
