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
from bunko.failpoints import reach
from bunko.ingest.embed import TooLong, embedded
from bunko.protocols import Chunker, Embedder, Reading, Scan, Source, Store
from bunko.records import Failed, Prepared
from bunko.text import analyzer, term_codec
from bunko.timing import timer
from bunko.types import WHOLE_FILE, Chunk, Document, Entry, Excerpt, Lines, Problem, Report, Tool

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# One transaction: large enough that a sync is cheap, small enough that a kill loses little work.
_BATCH_BYTES = 500_000
_BATCH_FILES = 100
# Starting a worker costs about as much CPU as tokenising this much.
_WORTH_WORKERS = 2_000_000


@dataclass(frozen=True, slots=True)
class Progress:
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
class _Made:
    """What a worker made of one entry, with the time each step took."""

    entry: Entry
    work: int
    prepared: Prepared | None = None
    failed: Failed | None = None
    problem: str = ""  # it could not be read now; what is known of it stays
    seconds: dict[str, float] = field(default_factory=dict)


def ingest(
    store: Store,
    tool: Tool,
    source: Source,
    cutting: ChunkerSettings,
    embedder: Embedder | None,
    *,
    scan: Scan | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    owner: int = 0,
) -> Report:
    """Bring a tool up to date with its source; every document changes whole or not at all.

    `scan` is what the source was found to hold a moment ago, if somebody looked. `stopped` is asked between
    transactions: what was written stays, and the next import goes on from there. What was paid for and not written is
    kept for the tool `owner`, where that is another one.
    """
    with timer("reindex_total", _log):
        known = store.known(tool.id)
        if scan is None:
            with timer("file_scan", _log):
                scan = source.scan(known)
        failed = {problem.uri for problem in store.failures(tool.id)}
        report = _seen(scan, failed)
        moved_from = set(scan.moved.values())
        fresh = {entry.uri for entry in (*scan.added, *scan.updated) if entry.uri in failed or entry.uri not in known}
        # A moved document leaves its old place in the same transaction that gives it the new one.
        leaving = [uri for uri in scan.deleted if uri not in moved_from]
        if leaving:
            store.write(tool.id, remove=leaving)
            reach("ingest.removed")
        todo = [*scan.added, *scan.updated]
        total = sum(entry.work for entry in todo)
        done = Progress(0, len(todo), 0, 0, total)
        progress(done)
        too_long = TooLong(embedder)
        made_batches = _until(stopped, _made(source, cutting, scan.texts(todo), total, workers), report)
        with closing(embedded(store, embedder, made_batches, _prepared, owner=owner or tool.id)) as stream:
            for one in stream:
                batch, put = one.batch, one.put
                gone = [
                    scan.moved[made.entry.uri] for made in batch if made.entry.uri in scan.moved and not made.problem
                ]
                fail = [made.failed for made in batch if made.failed]
                report.problems += [Problem(made.entry.uri, made.problem) for made in batch if made.problem]
                with timer("sqlite_write", _log, indent=1, detail=f"{len(put)} documents"):
                    store.write(tool.id, put=put, fail=fail, remove=gone, vectors=one.vectors, spent=one.spent)
                reach("ingest.batch")
                _account(report, batch, fresh, scan, len(one.vectors))
                done = Progress(
                    done.files + len(batch), len(todo), done.chunks + sum(len(one.chunks) for one in put),
                    done.bytes + sum(made.work for made in batch), total,
                )  # fmt: skip
                progress(done)
        if scan.touched and not report.interrupted:
            # Last of all: a file of many entries is taken to be known only when every one of them is.
            store.write(tool.id, touch=scan.touched)
        report.notices += too_long.told()
        report.problems += store.failures(tool.id)
        report.total_chunks = store.totals(tool.id).chunks
    _log.debug(
        "[reindex] summary: added=%d, updated=%d, deleted=%d, unchanged=%d, total_chunks=%d",
        report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
    )  # fmt: skip
    return report


def _seen(scan: Scan, failed: set[str]) -> Report:
    """Return what a look at the source says before anything is read; what failed before is in no count of documents."""
    read_again = {entry.uri for entry in (*scan.added, *scan.updated)} if failed else set()
    report = Report(
        unchanged=scan.unchanged - len(failed - read_again - set(scan.deleted)),
        deleted=len(set(scan.deleted) - set(scan.moved.values()) - failed),
        moved=len(scan.moved),
        problems=list(scan.problems),
    )
    _log.debug(
        "[reindex] scan result: %d files (new=%d, updated=%d, deleted=%d, unchanged=%d)",
        len(scan.added) + len(scan.updated) + report.unchanged,
        len(scan.added), len(scan.updated), len(scan.deleted), report.unchanged,
    )  # fmt: skip
    return report


def _until(
    stopped: Callable[[], bool], batches: Iterable[Sequence[_Made]], report: Report
) -> Iterator[Sequence[_Made]]:
    """Return batches until somebody stops the import; those that were begun are written all the same."""
    for batch in batches:
        if stopped():
            report.interrupted = True
            return
        yield batch


def _prepared(batch: Sequence[_Made]) -> list[Prepared]:
    return [made.prepared for made in batch if made.prepared]


def _account(report: Report, batch: Sequence[_Made], fresh: set[str], scan: Scan, embedded: int) -> None:
    report.embedded += embedded
    for made in batch:
        if made.prepared is None:
            continue
        if made.entry.uri in scan.moved:
            continue
        if made.entry.uri in fresh:
            report.added += 1
        else:
            report.updated += 1
        _log.debug("[reindex] processing: %s", made.entry.uri)
        sizes = [len(chunk.text) for chunk in made.prepared.chunks]
        for step, seconds in made.seconds.items():
            detail = f" ({len(sizes)} chunks, chars={sizes})" if step == "chunk_split" else ""
            _log.debug("[TIMER]   %s: %.1fms%s", step, seconds * 1000, detail)


def _made(
    source: Source, cutting: ChunkerSettings, entries: Iterable[Entry], total: int, workers: int | None
) -> Iterator[list[_Made]]:
    """Read, cut and tokenise entries in batches, in order, in other processes where that pays.

    Only a few batches are there at a time, whatever the entries hold.
    """
    todo = batches(entries, lambda entry: entry.work)
    waiting: deque[tuple[list[Entry], Future[list[_Made]]]] = deque()
    if workers != 1 and total >= _WORTH_WORKERS:
        # Only here: a search imports this file too, and processes take time to load.
        from concurrent.futures.process import BrokenProcessPool

        from bunko.workers import usual_number

        number = usual_number() if workers is None else workers
        try:
            if number > 1:
                yield from _by_workers(source, cutting, todo, number, waiting)
        except BrokenProcessPool:
            # Where memory runs out, the system kills a worker; one process needs less of it than several.
            _log.warning("A worker process was killed; the import goes on without workers.")
    for batch in chain([batch for batch, _ in waiting], todo):
        yield _make(source, cutting, batch)


def _by_workers(
    source: Source,
    cutting: ChunkerSettings,
    todo: Iterator[list[Entry]],
    number: int,
    waiting: deque[tuple[list[Entry], Future[list[_Made]]]],  # what was begun and not yet given back
) -> Iterator[list[_Made]]:
    from bunko.workers import Workers

    with Workers(number) as pool:
        for batch in todo:
            waiting.append((batch, pool.submit(_make, source, cutting, batch)))
            if len(waiting) > 2 * number:
                made = waiting[0][1].result()
                waiting.popleft()
                yield made
        while waiting:
            made = waiting[0][1].result()
            waiting.popleft()
            yield made


def batches(things: Iterable[T], work: Callable[[T], int], most: int = _BATCH_BYTES) -> Iterator[list[T]]:
    """Return things in the order they come, as many together as belong in one transaction by the work they make."""
    batch: list[T] = []
    size = 0
    for thing in things:
        batch.append(thing)
        size += work(thing)
        if size >= most or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _make(source: Source, cutting: ChunkerSettings, entries: Sequence[Entry]) -> list[_Made]:
    chunker = cutting.build()
    return [_make_one(source, chunker, entry) for entry in entries]


def _make_one(source: Source, chunker: Chunker, entry: Entry) -> _Made:
    made = _Made(entry, entry.work)
    clock = time.perf_counter
    start = clock()
    if isinstance(entry, Excerpt):
        made.entry, content_hash, text = entry.plain(), entry.content_hash, entry.text
        read = hashed = clock()
        if entry.is_left_out:
            made.problem = "changed while it was imported; the next import takes it"
            return made
        if text is None:
            made.failed = Failed(made.entry, content_hash, entry.problem)
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
            text = source.text(data, entry) if isinstance(source, Reading) else readers.read(data, entry.uri)
        except SourceError as error:
            made.failed = Failed(made.entry, content_hash, str(error))
            return made
    pieces = _placed(chunker.chunks(text), made.entry.lines)
    cut = clock()
    if not pieces:
        made.failed = Failed(made.entry, content_hash, "holds no text")
        return made
    document = Document(made.entry, text, content_hash)
    made.prepared = Prepared(document, pieces, packed_terms(document, pieces))
    made.seconds = {
        "file_read": read - start,
        "hash_compute": hashed - read,
        "chunk_split": cut - hashed,
        "tokenise": clock() - cut,
    }
    return made


def _placed(chunks: list[Chunk], lines: Lines) -> list[Chunk]:
    """Return chunks with the lines they have in their file."""
    if lines == WHOLE_FILE:
        return chunks
    return [
        replace(one, first_line=lines.placed(one.first_line), last_line=lines.placed(one.last_line)) for one in chunks
    ]


def packed_terms(document: Document, chunks: Sequence[Chunk]) -> bytes:
    """Return the terms of a document's chunks as a store keeps them."""
    # People look for a file by its name; vectors are made without it, so that renaming one costs none.
    uri = document.uri
    name = PurePosixPath(unquote(uri) if uri.startswith(("http://", "https://")) else uri).stem
    return term_codec.pack([analyzer.keys(f"{name}\n{chunk.in_context(document.text.title)}") for chunk in chunks])
