"""Bring a store up to date with a source: read, chunk, tokenize and embed what changed, on all cores."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from bunko import readers
from bunko.errors import BunkoError, EmbedderError, SourceError
from bunko.failpoints import reach_failpoint
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import EmbeddedBatch, LongTextCounter, embed_batches
from bunko.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.protocols import Chunker, Embedder, Scan, SelfReadingSource, Source, Store
from bunko.records import FailedDocument, PreparedDocument
from bunko.text import analyzer, term_codec
from bunko.timing import timer
from bunko.types import WHOLE_FILE, Chunk, Document, ExcerptEntry, Problem, Report, SourceEntry, Tool

if TYPE_CHECKING:
    from concurrent.futures import Future

    from bunko.workers import WorkerPool

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# One transaction: large enough that a sync is cheap, small enough that a kill loses little work.
_BATCH_BYTES = 500_000
_BATCH_FILES = 100
# Starting a worker costs about as much CPU as tokenizing this much.
_MIN_BYTES_FOR_WORKERS = 2_000_000
# How often an import that waits for a worker checks whether it is cancelled.
_CANCEL_SECONDS = 0.2


@dataclass(slots=True)
class _EntryResult:
    """The result of preparing one entry, with the duration of each step."""

    entry: SourceEntry
    work: int
    document: PreparedDocument | None = None
    failure: FailedDocument | None = None
    problem: str = ""  # why it cannot be read now; the stored document stays
    step_seconds: dict[str, float] = field(default_factory=dict)


def ingest(
    store: Store,
    tool: Tool,
    source: Source,
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    *,
    scan: Scan | None = None,
    workers: int | None = None,
    observer: Observer = NO_OBSERVER,
    owner_id: int = 0,
    on_embedder_failure: Callable[[EmbedderError], None] | None = None,
) -> Report:
    """Bring a tool up to date with its source; every document changes whole or not at all.

    `scan` is a recent scan of the source, if there is one. It can be cancelled between transactions: what was written
    stays, and the next import continues from there. Vectors that were paid for but not written are stored for the tool
    `owner_id`, if given, else for this one. If the embedder fails, the error is raised, or with `on_embedder_failure`
    the other documents are written without new vectors.
    """
    with timer("reindex_total", _log):
        fingerprints = store.documents.fingerprints(tool.id)
        if scan is None:
            with timer("file_scan", _log):
                scan = source.scan(fingerprints)
        failed_uris = {problem.uri for problem in store.documents.failures(tool.id)}
        report = _initial_report(scan, failed_uris)
        entries = [*scan.added, *scan.updated]
        new_uris = {entry.uri for entry in entries if entry.uri in failed_uris or entry.uri not in fingerprints}
        _remove_deleted_documents(store, tool, scan)
        total_bytes = sum(entry.work_size for entry in entries)
        done = ImportProgress(0, len(entries), 0, 0, total_bytes)
        observer.on_progress(done)
        long_texts = LongTextCounter(embedder)
        prepared = _prepare_batches(
            source, chunker_settings, scan.load_texts(entries), total_bytes, workers, observer.is_cancelled
        )
        batches = _take_until_stop(observer, prepared, report)
        with closing(
            embed_batches(
                store, embedder, batches, _prepared_documents,
                owner_id=owner_id or tool.id, on_failure=on_embedder_failure,
            )
        ) as embedded_batches:  # fmt: skip
            for embedded in embedded_batches:
                _write_batch(store, tool, scan, embedded, report, new_uris)
                done = _add_progress(done, embedded)
                observer.on_progress(done)
        if scan.touched and not report.interrupted:
            # Last of all: a file of many entries is up to date only when every one of them is written.
            store.documents.write(tool.id, touch=scan.touched)
        report.notices += long_texts.warnings()
        report.problems += store.documents.failures(tool.id)
        report.total_chunks = store.stats.totals(tool.id).chunks
    _log.debug(
        "[reindex] summary: added=%d, updated=%d, deleted=%d, unchanged=%d, total_chunks=%d",
        report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
    )  # fmt: skip
    return report


def _add_progress(done: ImportProgress, embedded: EmbeddedBatch[Sequence[_EntryResult]]) -> ImportProgress:
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
    embedded: EmbeddedBatch[Sequence[_EntryResult]],
    report: Report,
    new_uris: set[str],
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
            tool.id, upsert=documents, fail=failures, remove=moved_from, vectors=embedded.vectors, usage=embedded.usage
        )
    reach_failpoint("ingest.batch")
    _update_report(report, batch, new_uris, scan, len(embedded.vectors))


def _initial_report(scan: Scan, failed_uris: set[str]) -> Report:
    """Return the report after a scan; documents that failed before are not counted."""
    read_again = {entry.uri for entry in (*scan.added, *scan.updated)} if failed_uris else set()
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
    observer: Observer, batches: Iterable[Sequence[_EntryResult]], report: Report
) -> Iterator[Sequence[_EntryResult]]:
    """Yield batches until the import is cancelled; batches already yielded are still written."""
    for batch in batches:
        if observer.is_cancelled():
            report.interrupted = True
            return
        yield batch


def _prepared_documents(batch: Sequence[_EntryResult]) -> list[PreparedDocument]:
    return [result.document for result in batch if result.document]


def _update_report(
    report: Report, batch: Sequence[_EntryResult], new_uris: set[str], scan: Scan, embedded_count: int
) -> None:
    report.embedded += embedded_count
    for result in batch:
        if result.document is None:
            continue
        if result.entry.uri in scan.moved:
            continue
        if result.entry.uri in new_uris:
            report.added += 1
        else:
            report.updated += 1
        _log.debug("[reindex] processing: %s", result.entry.uri)
        sizes = [len(chunk.text) for chunk in result.document.chunks]
        for step, seconds in result.step_seconds.items():
            detail = f" ({len(sizes)} chunks, chars={sizes})" if step == "chunk_split" else ""
            _log.debug("[TIMER]   %s: %.1fms%s", step, seconds * 1000, detail)


def _prepare_batches(
    source: Source,
    chunker_settings: ChunkerSettings,
    entries: Iterable[SourceEntry],
    total_bytes: int,
    workers: int | None,
    is_cancelled: Callable[[], bool],
) -> Iterator[list[_EntryResult]]:
    """Read, chunk and tokenize entries in batches, in order, in worker processes if that is faster.

    Only a few batches are in memory at a time, however large the entries are.
    """
    entry_batches = make_batches(entries, lambda entry: entry.work_size)
    pending: deque[tuple[list[SourceEntry], Future[list[_EntryResult]]]] = deque()
    if workers != 1 and total_bytes >= _MIN_BYTES_FOR_WORKERS:
        # Imported late: a search imports this module too, and multiprocessing takes time to load.
        from concurrent.futures.process import BrokenProcessPool

        from bunko.workers import default_worker_count

        worker_count = default_worker_count() if workers is None else workers
        try:
            if worker_count > 1:
                yield from _prepare_in_workers(
                    source, chunker_settings, entry_batches, worker_count, pending, is_cancelled
                )
        except BrokenProcessPool:
            # The system kills a worker when memory runs out; one process needs less memory than several.
            _log.warning("A worker process was killed; the import continues in one process.")
    for batch in chain([batch for batch, _ in pending], entry_batches):
        yield _prepare_entries(source, chunker_settings, batch)


def _prepare_in_workers(
    source: Source,
    chunker_settings: ChunkerSettings,
    entry_batches: Iterator[list[SourceEntry]],
    worker_count: int,
    pending: deque[tuple[list[SourceEntry], Future[list[_EntryResult]]]],  # submitted and not yet yielded
    is_cancelled: Callable[[], bool],
) -> Iterator[list[_EntryResult]]:
    from bunko.workers import WorkerPool

    with WorkerPool(worker_count) as pool:
        for batch in entry_batches:
            pending.append((batch, pool.submit(_prepare_entries, source, chunker_settings, batch)))
            if len(pending) > 2 * worker_count:
                yield _next_results(pool, pending, is_cancelled)
        while pending:
            yield _next_results(pool, pending, is_cancelled)


def _next_results(
    pool: WorkerPool,
    pending: deque[tuple[list[SourceEntry], Future[list[_EntryResult]]]],
    is_cancelled: Callable[[], bool],
) -> list[_EntryResult]:
    """Return the next results; if the import is cancelled meanwhile, kill the workers: a large file takes minutes."""
    while True:
        try:
            results = pending[0][1].result(timeout=_CANCEL_SECONDS)
        except TimeoutError:
            if not is_cancelled():
                continue
            pool.kill()
            pending.clear()
            return []
        pending.popleft()
        return results


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


def _prepare_entries(
    source: Source, chunker_settings: ChunkerSettings, entries: Sequence[SourceEntry]
) -> list[_EntryResult]:
    chunker = chunker_settings.build()
    return [_prepare_entry(source, chunker, entry) for entry in entries]


def _prepare_entry(source: Source, chunker: Chunker, entry: SourceEntry) -> _EntryResult:
    result = _EntryResult(entry, entry.work_size)
    clock = time.perf_counter
    start = clock()
    if isinstance(entry, ExcerptEntry):
        result.entry, content_hash, text = entry.without_text(), entry.content_hash, entry.text
        read_at = hashed_at = clock()
        if entry.needs_text:
            result.problem = "changed during the import; the next import will read it"
            return result
        if text is None:
            result.failure = FailedDocument(result.entry, content_hash, entry.problem)
            return result
    else:
        seen_ns = time.time_ns()
        try:
            data, entry = source.read(entry)
        except BunkoError as error:
            result.problem = str(error)
            return result
        except OSError as error:
            result.problem = f"cannot be read: {error.strerror or error}"
            return result
        result.entry = replace(entry, seen_ns=seen_ns)
        read_at = clock()
        content_hash = hashlib.sha256(data).hexdigest()
        hashed_at = clock()
        try:
            text = source.text(data, entry) if isinstance(source, SelfReadingSource) else readers.read(data, entry.uri)
        except SourceError as error:
            result.failure = FailedDocument(result.entry, content_hash, str(error))
            return result
    document = Document(result.entry, text, content_hash)
    chunks = chunk_document(document, chunker)
    chunked_at = clock()
    if not chunks:
        result.failure = FailedDocument(result.entry, content_hash, "contains no text")
        return result
    result.document = PreparedDocument(document, chunks, pack_terms(document, chunks))
    result.step_seconds = {
        "file_read": read_at - start,
        "hash_compute": hashed_at - read_at,
        "chunk_split": chunked_at - hashed_at,
        "tokenise": clock() - chunked_at,
    }
    return result


def _in_context(chunks: list[Chunk], context: str) -> list[Chunk]:
    """Return chunks with what stands above their entry as their outermost heading."""
    return [replace(chunk, heading_path=(context, *chunk.heading_path)) for chunk in chunks] if context else chunks


def chunk_document(document: Document, chunker: Chunker) -> list[Chunk]:
    """Return the chunks of a document, with the line numbers of its file."""
    lines = document.entry.lines
    chunks = _in_context(chunker.chunks(document.text), document.text.context)
    if lines == WHOLE_FILE:
        return chunks
    return [
        replace(chunk, first_line=lines.file_line(chunk.first_line), last_line=lines.file_line(chunk.last_line))
        for chunk in chunks
    ]


def pack_terms(document: Document, chunks: Sequence[Chunk]) -> bytes:
    """Return the terms of a document's chunks in the store's format."""
    # File names, aliases and authors are indexed because people search for them. Vectors leave them out: a rename
    # costs none, and all entries of an author would look alike.
    uri = document.uri
    name = PurePosixPath(unquote(uri) if uri.startswith(("http://", "https://")) else uri).stem
    # Apart, because lines of Japanese that follow each other are joined.
    labels = "\n\n".join(filter(None, (name, *document.text.aliases, document.text.context)))
    return term_codec.pack_terms(
        [analyzer.term_keys(f"{labels}\n\n{chunk.text_to_index(document.text.title)}") for chunk in chunks]
    )
