"""Batches of cut documents in, the same with their vectors out: full requests, in flight while the next are cut."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from bunko.embedders import embed_and_check, vector_keys
from bunko.errors import BunkoError, EmbedderError
from bunko.protocols import Embedder, EmbedderStats, RemoteEmbedder, Store
from bunko.records import EmbeddingUsage, PreparedDocument
from bunko.timing import timer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# While the answers to one set of requests are read, those to the next are under way.
_MAX_IN_FLIGHT = 2
# So many sets are under way or wait for their turn while a batch is written, which takes longer than two of them.
_MAX_AHEAD = 3
# Batches that may wait for a request to be full; more would take memory, and their documents are due.
_MAX_WAITING_BATCHES = 32
# Seconds that whoever stops waits for answers that are paid for already; an embedder gives up on them before that.
_GRACE_SECONDS = 5.0


@dataclass(slots=True)
class EmbeddedBatch(Generic[T]):
    """A batch whose documents have the names of their vectors, and the vectors that were not stored before."""

    batch: T
    documents: list[PreparedDocument]
    vectors: dict[bytes, npt.NDArray[np.float32]] = field(default_factory=dict)
    usage: dict[str, EmbeddingUsage] = field(default_factory=dict)  # since the batch before, by embedder


def embed_batches(
    store: Store,
    embedder: Embedder | None,
    batches: Iterable[T],
    documents_of: Callable[[T], list[PreparedDocument]],
    *,
    owner_id: int,
) -> Generator[EmbeddedBatch[T], None, None]:
    """Return batches in their order, each as soon as its vectors are there; write it before the next is asked for.

    Where that ends early, vectors that came and belong to no batch that was given out are kept for the tool `owner`.
    """
    if embedder is None:
        return (EmbeddedBatch(batch, documents_of(batch)) for batch in batches)
    if embedder.is_remote:
        return _BackgroundEmbedder[T](store, cast(RemoteEmbedder, embedder), owner_id).run(batches, documents_of)
    return _embed_locally(store, embedder, batches, documents_of)


def embed_documents(
    store: Store, embedder: Embedder | None, documents: list[PreparedDocument]
) -> tuple[list[PreparedDocument], dict[bytes, npt.NDArray[np.float32]], int]:
    """Give each chunk the name of its vector, and embed the texts whose vectors are not known yet."""
    if embedder is None:
        return documents, {}, 0
    put, texts = assign_vector_keys(embedder, documents)
    missing = store.missing_vectors(texts)
    vectors: dict[bytes, npt.NDArray[np.float32]] = {}
    wanted = [key for key in texts if key in missing]
    for at in range(0, len(wanted), embedder.batch_size):
        some = wanted[at : at + embedder.batch_size]
        vectors.update(zip(some, _embed_texts(embedder, [texts[key] for key in some]), strict=True))
    return put, vectors, len(vectors)


def assign_vector_keys(
    embedder: Embedder, documents: Sequence[PreparedDocument]
) -> tuple[list[PreparedDocument], dict[bytes, str]]:
    """Give each chunk the name of its vector; return the texts by these names."""
    texts: dict[bytes, str] = {}
    put = []
    for one in documents:
        own = [chunk.text_in_context(one.document.text.title) for chunk in one.chunks]
        keys = vector_keys(embedder, own)
        texts.update(zip(keys, own, strict=True))
        put.append(replace(one, vector_keys=keys))
    return put, texts


def as_remote(embedder: Embedder | None) -> RemoteEmbedder | None:
    """Return an embedder as one that costs, if it is."""
    return cast(RemoteEmbedder, embedder) if embedder is not None and embedder.is_remote else None


class LongTextCounter:
    """How many texts were longer than a model takes since this was made, where that is known."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._label = embedder.label if embedder else ""
        counts = getattr(embedder, "stats", None)
        self._stats = counts if isinstance(counts, EmbedderStats) else EmbedderStats()
        self._initial_count = self._stats.too_long

    def warnings(self) -> list[str]:
        """Return what a user should know about it; often nothing."""
        number = self._stats.too_long - self._initial_count
        if not number:
            return []
        texts = "1 text is" if number == 1 else f"{number} texts are"
        return [f"{texts} longer than {self._label} takes; embedding.too_long says what becomes of such."]


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    provider = embedder.label.partition(":")[0]
    with timer(f"{provider}_embed", _log, indent=1, detail=f"batch_size={len(texts)}"):
        return embed_and_check(embedder, texts)


class _UsageMeter:
    """What was spent and saved since somebody last asked."""

    def __init__(self, embedder: Embedder, request_size: int) -> None:
        self._name, self._request_size = embedder.name, request_size
        self.texts = self.saved_texts = self.calls = 0
        self._reported = EmbeddingUsage()

    def usage_since_last(self) -> dict[str, EmbeddingUsage]:
        """Return what came to be spent since the last time; nothing where nothing did."""
        size, told = self._request_size, self._reported
        without = -(
            -(self.texts + self.saved_texts) // size
        )  # calls that would have been made if nothing had been stored
        self._reported = EmbeddingUsage(self.texts, self.calls, self.saved_texts, without - -(-self.texts // size))
        new = EmbeddingUsage(
            self._reported.texts - told.texts,
            self._reported.calls - told.calls,
            self._reported.saved_texts - told.saved_texts,
            self._reported.saved_calls - told.saved_calls,
        )
        return {} if new == EmbeddingUsage() else {self._name: new}


def _embed_locally(
    store: Store, embedder: Embedder, batches: Iterable[T], documents_of: Callable[[T], list[PreparedDocument]]
) -> Generator[EmbeddedBatch[T], None, None]:
    """Embed in this process, one batch after the other."""
    account = _UsageMeter(embedder, embedder.batch_size)
    for batch in batches:
        put, vectors, number = embed_documents(store, embedder, documents_of(batch))
        account.texts += number
        account.saved_texts += len({key for one in put for key in one.vector_keys}) - number
        account.calls += -(-number // embedder.batch_size)
        yield EmbeddedBatch(batch, put, vectors, account.usage_since_last())


@dataclass(slots=True)
class _WaitingBatch(Generic[T]):
    """A batch and those of its vectors that have to come yet."""

    batch: T
    documents: list[PreparedDocument]
    missing_keys: list[bytes]


class _BackgroundEmbedder(Generic[T]):
    """Asks a service while others cut: texts of several batches share requests, so that these are full."""

    def __init__(self, store: Store, embedder: RemoteEmbedder, owner_id: int) -> None:
        self._store, self._embedder, self._owner_id = store, embedder, owner_id
        self._meter = _UsageMeter(embedder, embedder.request_size)
        # A model of unknown size was asked for it before there was an import to account for that.
        self._initial_calls = embedder.stats.calls - embedder.stats.sizing_calls
        embedder.stats.sizing_calls = 0
        self._waiting_batches: deque[_WaitingBatch[T]] = deque()
        self._unsent_texts: dict[bytes, str] = {}
        self._pending_requests: deque[tuple[list[bytes], Future[npt.NDArray[np.float32]]]] = deque()
        self._requested_keys: set[bytes] = set()  # all that were sent, or will be
        self._delivered_keys: set[bytes] = set()  # with batches that were given out, and are stored by now
        self._received_vectors: dict[bytes, npt.NDArray[np.float32]] = {}
        self._error: EmbedderError | None = None
        self._request_slots, self._stop_event = Semaphore(_MAX_IN_FLIGHT), Event()

    def run(
        self, batches: Iterable[T], documents_of: Callable[[T], list[PreparedDocument]]
    ) -> Generator[EmbeddedBatch[T], None, None]:
        """Return batches in their order, each as soon as its vectors are there."""
        try:
            for batch in batches:
                self._add_batch(batch, documents_of(batch))
                while len(self._unsent_texts) >= self._embedder.batch_size:
                    self._send_request()
                if len(self._waiting_batches) <= _MAX_WAITING_BATCHES:
                    self._collect_results(max_pending=_MAX_AHEAD)
                else:
                    if self._unsent_texts and not self._pending_requests:
                        self._send_request()
                    self._collect_results(max_pending=0)
                if self._error is not None:
                    break
                yield from self._ready_batches()
            while self._unsent_texts and self._error is None:
                self._send_request()
            while self._pending_requests and self._error is None:
                self._collect_results(max_pending=len(self._pending_requests) - 1)
                yield from self._ready_batches()
            if self._error is not None:
                self._stop_requests()
                yield from self._ready_batches()
                raise self._error
        finally:
            self._stop_requests()
            self._pin_leftover_vectors()

    def _add_batch(self, batch: T, documents: list[PreparedDocument]) -> None:
        put, texts = assign_vector_keys(self._embedder, documents)
        missing = self._store.missing_vectors(texts)
        wanted = [key for key in texts if key in missing]
        new = [key for key in wanted if key not in self._requested_keys]
        self._waiting_batches.append(_WaitingBatch(batch, put, wanted))
        self._unsent_texts |= {key: texts[key] for key in new}
        self._requested_keys.update(new)
        self._meter.saved_texts += len(texts) - len(new)

    def _send_request(self) -> None:
        keys = list(self._unsent_texts)[: self._embedder.batch_size]
        texts = [self._unsent_texts.pop(key) for key in keys]
        future: Future[npt.NDArray[np.float32]] = Future()
        # Noted first: Ctrl-C may come while the thread starts, and what it asks for is not to be forgotten. A process
        # that ends does not wait for such a thread.
        self._pending_requests.append((keys, future))
        Thread(target=self._embed_in_thread, args=(texts, future), name="embedding", daemon=True).start()

    def _embed_in_thread(self, texts: list[str], future: Future[npt.NDArray[np.float32]]) -> None:
        with self._request_slots:
            if self._stop_event.is_set():
                future.cancel()
                future.set_running_or_notify_cancel()  # only then do those who wait hear of it
                return
            try:
                future.set_result(_embed_texts(self._embedder, texts))
            except BaseException as error:  # whoever waits has to hear of it
                future.set_exception(error)

    def _collect_results(self, *, max_pending: int) -> None:
        """Take what has come; wait until no more than so many calls are under way."""
        while (
            self._pending_requests
            and (len(self._pending_requests) > max_pending or self._pending_requests[0][1].done())
            and self._error is None
        ):
            keys, future = self._pending_requests[0]
            try:
                vectors = future.result()
            except EmbedderError as error:
                self._error = error
                self._receive_vectors({keys[place]: vector for place, vector in error.partial_vectors.items()})
            else:
                self._receive_vectors(dict(zip(keys, vectors, strict=True)))
            self._pending_requests.popleft()

    def _receive_vectors(self, vectors: dict[bytes, npt.NDArray[np.float32]]) -> None:
        self._received_vectors |= vectors
        self._meter.texts += len(vectors)

    def _ready_batches(self) -> Iterator[EmbeddedBatch[T]]:
        while self._waiting_batches and all(
            key in self._received_vectors or key in self._delivered_keys
            for key in self._waiting_batches[0].missing_keys
        ):
            one = self._waiting_batches[0]
            vectors = {key: self._received_vectors[key] for key in one.missing_keys if key in self._received_vectors}
            yield EmbeddedBatch(one.batch, one.documents, vectors, self._usage())
            # Whoever comes back for the next has written this one.
            self._waiting_batches.popleft()
            self._delivered_keys.update(vectors)
            for key in vectors:
                del self._received_vectors[key]

    def _usage(self) -> dict[str, EmbeddingUsage]:
        self._meter.calls = self._embedder.stats.calls - self._initial_calls
        return self._meter.usage_since_last()

    def _stop_requests(self) -> None:
        """Ask for nothing more, and take what is paid for already, if it comes soon."""
        self._stop_event.set()
        if not self._pending_requests:
            return
        self._embedder.cancel()
        wait([future for _, future in self._pending_requests], timeout=_GRACE_SECONDS)
        while self._pending_requests:
            keys, future = self._pending_requests.popleft()
            if not future.done() or future.cancelled():
                continue
            error = future.exception()
            if error is None:
                self._receive_vectors(dict(zip(keys, future.result(), strict=True)))
            elif isinstance(error, EmbedderError):
                self._receive_vectors({keys[place]: vector for place, vector in error.partial_vectors.items()})

    def _pin_leftover_vectors(self) -> None:
        spent = self._usage()
        if not (self._received_vectors or spent):
            return
        try:
            self._store.pin_vectors(self._owner_id, self._embedder.name, self._received_vectors, usage=spent)
        except BunkoError as error:  # why it ends is told already, or was as bad
            _log.warning("%d vectors that came could not be kept: %s", len(self._received_vectors), error.message)
