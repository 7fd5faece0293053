"""Choose where documents are prepared: in this process, in worker processes, or on a cluster."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.prepare import EntryResult, prepare_entries
from bunko.protocols import Embedder, Source
from bunko.types import SourceEntry

if TYPE_CHECKING:
    from concurrent.futures import Future

    from bunko.runtime.workers import WorkerPool

_log = logging.getLogger("bunko.ingest")

# Starting a worker costs about as much CPU as tokenizing this much.
MIN_BYTES_FOR_WORKERS = 2_000_000
# How often an import that waits for a worker checks whether it is cancelled.
CANCEL_SECONDS = 0.2


class Preparer(Protocol):
    """Prepares documents somewhere; the caller writes them."""

    def prepare(
        self,
        source: Source,
        chunker_settings: ChunkerSettings,
        embedder: Embedder | None,
        batches: Iterator[list[SourceEntry]],
        total_bytes: int,
        is_cancelled: Callable[[], bool],
    ) -> Generator[list[EntryResult], None, None]:
        """Read, chunk and tokenize batches of entries, and yield their results in the same order.

        Those whose work is done elsewhere may be embedded there too.
        Only a few batches are in memory at a time, however many there are. If it is cancelled, it may end early.
        """

    def place_embedder(self, embedder: Embedder | None) -> Embedder | None:
        """Return an embedder that computes the same vectors where documents are prepared; a service stays as it is."""

    def take_notices(self) -> list[str]:
        """Return what the user should know about the work since the last call."""


@contextmanager
def open_preparer(on: str, workers: int | None) -> Iterator[Preparer]:
    """Yield what prepares documents: `on` is `local`, or says which Ray to use; `workers` limits the processes."""
    if on == "local":
        yield LocalPreparer(workers)
        return
    from bunko.ingest.cluster.connection import connect
    from bunko.ingest.cluster.preparer import ClusterPreparer

    with connect(on, workers) as cluster:
        yield ClusterPreparer(cluster)


class LocalPreparer:
    """Prepares documents in this process, or in worker processes if that is faster."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers  # None: one for each core

    def place_embedder(self, embedder: Embedder | None) -> Embedder | None:
        """Return the embedder as it is."""
        return embedder

    def take_notices(self) -> list[str]:
        """Return an empty list."""
        return []

    def prepare(
        self,
        source: Source,
        chunker_settings: ChunkerSettings,
        embedder: Embedder | None,
        batches: Iterator[list[SourceEntry]],
        total_bytes: int,
        is_cancelled: Callable[[], bool],
    ) -> Generator[list[EntryResult], None, None]:
        """Read, chunk and tokenize batches of entries, and yield their results in the same order."""
        pending: deque[tuple[list[SourceEntry], Future[list[EntryResult]]]] = deque()
        if self._workers != 1 and total_bytes >= MIN_BYTES_FOR_WORKERS:
            # Imported late: a search imports this module too, and multiprocessing takes time to load.
            from concurrent.futures.process import BrokenProcessPool

            from bunko.runtime.workers import default_worker_count

            worker_count = default_worker_count() if self._workers is None else self._workers
            try:
                if worker_count > 1:
                    prepare = partial(
                        prepare_entries, source, chunker_settings, embedder=embedder if _is_small(embedder) else None
                    )
                    yield from _prepare_in_workers(prepare, batches, worker_count, pending, is_cancelled)
            except BrokenProcessPool:
                # The system kills a worker when memory runs out; one process needs less memory than several.
                _log.warning("A worker process was killed; the import continues in one process.")
        for batch in chain([batch for batch, _ in pending], batches):
            yield prepare_entries(source, chunker_settings, batch)


def _is_small(embedder: Embedder | None) -> bool:
    """Return whether each process may have a copy of an embedder."""
    return getattr(embedder, "is_small", False)


def _prepare_in_workers(
    prepare: Callable[[list[SourceEntry]], list[EntryResult]],
    batches: Iterator[list[SourceEntry]],
    worker_count: int,
    pending: deque[tuple[list[SourceEntry], Future[list[EntryResult]]]],  # submitted and not yet yielded
    is_cancelled: Callable[[], bool],
) -> Iterator[list[EntryResult]]:
    from bunko.runtime.workers import WorkerPool

    with WorkerPool(worker_count) as pool:
        for batch in batches:
            pending.append((batch, pool.submit(prepare, batch)))
            if len(pending) > 2 * worker_count:
                yield _next_results(pool, pending, is_cancelled)
        while pending:
            yield _next_results(pool, pending, is_cancelled)


def _next_results(
    pool: WorkerPool,
    pending: deque[tuple[list[SourceEntry], Future[list[EntryResult]]]],
    is_cancelled: Callable[[], bool],
) -> list[EntryResult]:
    """Return the next results; if the import is cancelled meanwhile, kill the workers: a large file takes minutes."""
    while True:
        try:
            results = pending[0][1].result(timeout=CANCEL_SECONDS)
        except TimeoutError:
            if not is_cancelled():
                continue
            pool.kill()
            pending.clear()
            return []
        pending.popleft()
        return results
