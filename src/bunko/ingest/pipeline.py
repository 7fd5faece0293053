"""A source in, a store that holds what it holds out: reads, cuts and tokenises what changed, on all cores."""

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

from bunko import chunkers, readers
from bunko.errors import BunkoError, SourceError
from bunko.failpoints import reach_failpoint
from bunko.ingest.embed import LongTextCounter, embed_batches
from bunko.protocols import Chunker, Embedder, Scan, SelfReadingSource, Source, Store
from bunko.records import FailedDocument, PreparedDocument
from bunko.text import analyzer, term_codec
from bunko.timing import timer
from bunko.types import WHOLE_FILE, Chunk, Document, ExcerptEntry, LineSpan, Problem, Report, SourceEntry, Tool

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# One transaction: large enough that a sync is cheap, small enough that a kill loses little work.
_BATCH_BYTES = 500_000
_BATCH_FILES = 100
# Starting a worker costs about as much CPU as tokenising this much.
_MIN_BYTES_FOR_WORKERS = 2_000_000


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import has come."""

    files: int
    total_files: int
    chunks: int
    bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ChunkerSettings:
    """How documents are cut: plain values, so that they travel to workers and into the library's record."""

    kind: str = "auto"
    max_chars: int = 3000
    min_chars: int = 50
    heading_levels: tuple[int, ...] = (1, 2, 3)
    size: int = 200
    overlap: int = 30
    row_context: int = 1

    def build(self) -> Chunker:
        """Return the chunker these settings describe."""
        return chunkers.build(
            self.kind,
            max_chars=self.max_chars,
            min_chars=self.min_chars,
            heading_levels=self.heading_levels,
            size=self.size,
            overlap=self.overlap,
            row_context=self.row_context,
        )


@dataclass(slots=True)
class _EntryResult:
    """What a worker made of one entry, with the time each step took."""

    entry: SourceEntry
    work: int
    document: PreparedDocument | None = None
    failure: FailedDocument | None = None
    problem: str = ""  # it could not be read now; what is known of it stays
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
    progress: Callable[[ImportProgress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    owner_id: int = 0,
) -> Report:
    """Bring a tool up to date with its source; every document changes whole or not at all.

    `scan` is what the source was found to hold a moment ago, if somebody looked. `stopped` is asked between
    transactions: what was written stays, and the next import goes on from there. What was paid for and not written is
    kept for the tool `owner`, where that is another one.
    """
    with timer("reindex_total", _log):
        known = store.fingerprints(tool.id)
        if scan is None:
            with timer("file_scan", _log):
                scan = source.scan(known)
        failed = {problem.uri for problem in store.failures(tool.id)}
        report = _initial_report(scan, failed)
        moved_from = set(scan.moved.values())
        fresh = {entry.uri for entry in (*scan.added, *scan.updated) if entry.uri in failed or entry.uri not in known}
        # A moved document leaves its old place in the same transaction that gives it the new one.
        leaving = [uri for uri in scan.deleted if uri not in moved_from]
        if leaving:
            store.write(tool.id, remove=leaving)
            reach_failpoint("ingest.removed")
        todo = [*scan.added, *scan.updated]
        total = sum(entry.work_size for entry in todo)
        done = ImportProgress(0, len(todo), 0, 0, total)
        progress(done)
        too_long = LongTextCounter(embedder)
        made_batches = _take_until_stop(
            stopped, _prepare_batches(source, chunker_settings, scan.load_texts(todo), total, workers), report
        )
        with closing(
            embed_batches(store, embedder, made_batches, _prepared_documents, owner_id=owner_id or tool.id)
        ) as stream:
            for one in stream:
                batch, put = one.batch, one.documents
                gone = [
                    scan.moved[made.entry.uri] for made in batch if made.entry.uri in scan.moved and not made.problem
                ]
                fail = [made.failure for made in batch if made.failure]
                report.problems += [Problem(made.entry.uri, made.problem) for made in batch if made.problem]
                with timer("sqlite_write", _log, indent=1, detail=f"{len(put)} documents"):
                    store.write(tool.id, upsert=put, fail=fail, remove=gone, vectors=one.vectors, usage=one.usage)
                reach_failpoint("ingest.batch")
                _update_report(report, batch, fresh, scan, len(one.vectors))
                done = ImportProgress(
                    done.files + len(batch), len(todo), done.chunks + sum(len(one.chunks) for one in put),
                    done.bytes + sum(made.work for made in batch), total,
                )  # fmt: skip
                progress(done)
        if scan.touched and not report.interrupted:
            # Last of all: a file of many entries is taken to be known only when every one of them is.
            store.write(tool.id, touch=scan.touched)
        report.notices += too_long.warnings()
        report.problems += store.failures(tool.id)
        report.total_chunks = store.totals(tool.id).chunks
    _log.debug(
        "[reindex] summary: added=%d, updated=%d, deleted=%d, unchanged=%d, total_chunks=%d",
        report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
    )  # fmt: skip
    return report


def _initial_report(scan: Scan, failed_uris: set[str]) -> Report:
    """Return what a look at the source says before anything is read; what failed before is in no count of documents."""
    read_again = {entry.uri for entry in (*scan.added, *scan.updated)} if failed_uris else set()
    report = Report(
        unchanged=scan.unchanged - len(failed_uris - read_again - set(scan.deleted)),
        deleted=len(set(scan.deleted) - set(scan.moved.values()) - failed_uris),
        moved=len(scan.moved),
        problems=list(scan.problems),
    )
    _log.debug(
        "[reindex] scan result: %d files (new=%d, updated=%d, deleted=%d, unchanged=%d)",
        len(scan.added) + len(scan.updated) + report.unchanged,
        len(scan.added), len(scan.updated), len(scan.deleted), report.unchanged,
    )  # fmt: skip
    return report


def _take_until_stop(
    stopped: Callable[[], bool], batches: Iterable[Sequence[_EntryResult]], report: Report
) -> Iterator[Sequence[_EntryResult]]:
    """Return batches until somebody stops the import; those that were begun are written all the same."""
    for batch in batches:
        if stopped():
            report.interrupted = True
            return
        yield batch


def _prepared_documents(batch: Sequence[_EntryResult]) -> list[PreparedDocument]:
    return [made.document for made in batch if made.document]


def _update_report(
    report: Report, batch: Sequence[_EntryResult], new_uris: set[str], scan: Scan, embedded_count: int
) -> None:
    report.embedded += embedded_count
    for made in batch:
        if made.document is None:
            continue
        if made.entry.uri in scan.moved:
            continue
        if made.entry.uri in new_uris:
            report.added += 1
        else:
            report.updated += 1
        _log.debug("[reindex] processing: %s", made.entry.uri)
        sizes = [len(chunk.text) for chunk in made.document.chunks]
        for step, seconds in made.step_seconds.items():
            detail = f" ({len(sizes)} chunks, chars={sizes})" if step == "chunk_split" else ""
            _log.debug("[TIMER]   %s: %.1fms%s", step, seconds * 1000, detail)


def _prepare_batches(
    source: Source,
    chunker_settings: ChunkerSettings,
    entries: Iterable[SourceEntry],
    total_bytes: int,
    workers: int | None,
) -> Iterator[list[_EntryResult]]:
    """Read, cut and tokenise entries in batches, in order, in other processes where that pays.

    Only a few batches are there at a time, whatever the entries hold.
    """
    todo = make_batches(entries, lambda entry: entry.work_size)
    waiting: deque[tuple[list[SourceEntry], Future[list[_EntryResult]]]] = deque()
    if workers != 1 and total_bytes >= _MIN_BYTES_FOR_WORKERS:
        # Only here: a search imports this file too, and processes take time to load.
        from concurrent.futures.process import BrokenProcessPool

        from bunko.workers import default_worker_count

        number = default_worker_count() if workers is None else workers
        try:
            if number > 1:
                yield from _prepare_in_workers(source, chunker_settings, todo, number, waiting)
        except BrokenProcessPool:
            # Where memory runs out, the system kills a worker; one process needs less of it than several.
            _log.warning("A worker process was killed; the import goes on without workers.")
    for batch in chain([batch for batch, _ in waiting], todo):
        yield _prepare_entries(source, chunker_settings, batch)


def _prepare_in_workers(
    source: Source,
    chunker_settings: ChunkerSettings,
    entry_batches: Iterator[list[SourceEntry]],
    worker_count: int,
    pending: deque[tuple[list[SourceEntry], Future[list[_EntryResult]]]],  # what was begun and not yet given back
) -> Iterator[list[_EntryResult]]:
    from bunko.workers import WorkerPool

    with WorkerPool(worker_count) as pool:
        for batch in entry_batches:
            pending.append((batch, pool.submit(_prepare_entries, source, chunker_settings, batch)))
            if len(pending) > 2 * worker_count:
                made = pending[0][1].result()
                pending.popleft()
                yield made
        while pending:
            made = pending[0][1].result()
            pending.popleft()
            yield made


def make_batches(items: Iterable[T], size_of: Callable[[T], int], max_size: int = _BATCH_BYTES) -> Iterator[list[T]]:
    """Return things in the order they come, as many together as belong in one transaction by the work they make."""
    batch: list[T] = []
    size = 0
    for thing in items:
        batch.append(thing)
        size += size_of(thing)
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
    made = _EntryResult(entry, entry.work_size)
    clock = time.perf_counter
    start = clock()
    if isinstance(entry, ExcerptEntry):
        made.entry, content_hash, text = entry.without_text(), entry.content_hash, entry.text
        read = hashed = clock()
        if entry.needs_text:
            made.problem = "changed while it was imported; the next import takes it"
            return made
        if text is None:
            made.failure = FailedDocument(made.entry, content_hash, entry.problem)
            return made
    else:
        seen = time.time_ns()
        try:
            data, entry = source.read(entry)
        except BunkoError as error:
            made.problem = str(error)
            return made
        except OSError as error:
            made.problem = f"cannot be read: {error.strerror or error}"
            return made
        made.entry = replace(entry, seen_ns=seen)
        read = clock()
        content_hash = hashlib.sha256(data).hexdigest()
        hashed = clock()
        try:
            text = source.text(data, entry) if isinstance(source, SelfReadingSource) else readers.read(data, entry.uri)
        except SourceError as error:
            made.failure = FailedDocument(made.entry, content_hash, str(error))
            return made
    pieces = _with_file_lines(chunker.chunks(text), made.entry.lines)
    cut = clock()
    if not pieces:
        made.failure = FailedDocument(made.entry, content_hash, "holds no text")
        return made
    document = Document(made.entry, text, content_hash)
    made.document = PreparedDocument(document, pieces, pack_terms(document, pieces))
    made.step_seconds = {
        "file_read": read - start,
        "hash_compute": hashed - read,
        "chunk_split": cut - hashed,
        "tokenise": clock() - cut,
    }
    return made


def _with_file_lines(chunks: list[Chunk], lines: LineSpan) -> list[Chunk]:
    """Return chunks with the lines they have in their file."""
    if lines == WHOLE_FILE:
        return chunks
    return [
        replace(one, first_line=lines.file_line(one.first_line), last_line=lines.file_line(one.last_line))
        for one in chunks
    ]


def pack_terms(document: Document, chunks: Sequence[Chunk]) -> bytes:
    """Return the terms of a document's chunks as a store keeps them."""
    # People look for a file by its name; vectors are made without it, so that renaming one costs none.
    uri = document.uri
    name = PurePosixPath(unquote(uri) if uri.startswith(("http://", "https://")) else uri).stem
    return term_codec.pack_terms(
        [analyzer.term_keys(f"{name}\n{chunk.text_in_context(document.text.title)}") for chunk in chunks]
    )
