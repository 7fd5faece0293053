"""Embed batches of chunked documents, with full requests that run while the next documents are chunked."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from bunko.embedders.embed import embed_texts, vector_keys
from bunko.embedders.names import display_name
from bunko.errors import BunkoError, EmbedderError
from bunko.protocols import Embedder, EmbedderStats, RemoteEmbedder, SentenceEmbedder, Store
from bunko.runtime.timing import timer
from bunko.types.records import EmbeddingUsage, PreparedDocument

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords, Vectors

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# While the answers to one set of requests are read, the next set is in flight.
_MAX_IN_FLIGHT = 2
# Sets that are in flight or queued while a batch is written, which takes longer than two of them.
_MAX_AHEAD = 3
# Batches that may wait for a request to fill up; more would take memory and delay their documents.
_MAX_WAITING_BATCHES = 32
# Seconds to wait, when stopping, for answers that are already paid for; an embedder gives up on them earlier.
_GRACE_SECONDS = 5.0


class EmbeddedText(NamedTuple):
    """The vector of a text, and the subwords of its sentences if the embedder splits them."""

    vector: npt.NDArray[np.float32]
    sentences: SentenceSubwords | None


_NOTHING_READY: Mapping[bytes, EmbeddedText] = {}


@dataclass(slots=True)
class EmbeddedBatch(Generic[T]):
    """A batch whose documents have vector keys, and the vectors that are not stored yet."""

    batch: T
    documents: list[PreparedDocument]
    vectors: dict[bytes, npt.NDArray[np.float32]] = field(default_factory=dict)
    sentences: dict[bytes, SentenceSubwords] = field(default_factory=dict)
    usage: dict[str, EmbeddingUsage] = field(default_factory=dict)  # since the previous batch, by embedder
    seconds: float = 0.0  # that it took here; a service embeds while others are prepared


def embed_batches(
    store: Store,
    embedder: Embedder | None,
    batches: Iterable[tuple[T, list[PreparedDocument]]],
    *,
    owner_id: int,
    ready: Mapping[bytes, EmbeddedText] = _NOTHING_READY,
    failures: list[EmbedderError] | None = None,
) -> Generator[EmbeddedBatch[T], None, None]:
    """Yield batches in order, each as soon as its documents are embedded; write each one before requesting the next.

    `ready` has what is computed already of the batch that was taken last. If the generator ends early, vectors of
    batches that were not yielded are stored for the tool `owner_id`. If the embedder fails, the error is raised; with
    `failures`, it is added there, and the other batches follow without new vectors.
    """
    remaining = iter(batches)  # shared: what one generator has taken does not come again
    if embedder is None:
        for batch, documents in remaining:
            yield EmbeddedBatch(batch, documents)
        return
    requests: _BackgroundEmbedder[T] | _LocalEmbedder[T]
    if embedder.is_remote:
        requests = _BackgroundEmbedder(store, cast(RemoteEmbedder, embedder), owner_id)
    else:
        requests = _LocalEmbedder(store, embedder, ready)
    with closing(requests.run(remaining)) as embedded:
        try:
            yield from embedded
            return
        except EmbedderError as error:
            if failures is None:
                raise
            failures.append(error)
    for batch, documents in chain(requests.take_waiting(), remaining):
        yield EmbeddedBatch(batch, _assign_stored_vectors(store, embedder, documents))


def _assign_stored_vectors(
    store: Store, embedder: Embedder, documents: list[PreparedDocument]
) -> list[PreparedDocument]:
    """Assign vector keys to the documents whose vectors are all stored already."""
    try:
        keyed_documents, texts = assign_vector_keys(embedder, documents)
    except EmbedderError:  # a model that must be asked for its size
        return documents
    missing = store.vectors.missing(texts)
    return [
        keyed if missing.isdisjoint(keyed.vector_keys) else prepared
        for prepared, keyed in zip(documents, keyed_documents, strict=True)
    ]


class EmbeddedDocuments(NamedTuple):
    """Documents with vector keys, and the vectors of texts and of their sentences that are not stored yet."""

    documents: list[PreparedDocument]
    vectors: dict[bytes, npt.NDArray[np.float32]]
    sentences: dict[bytes, SentenceSubwords]


def embed_documents(
    store: Store,
    embedder: Embedder | None,
    documents: list[PreparedDocument],
    ready: Mapping[bytes, EmbeddedText] = _NOTHING_READY,
) -> EmbeddedDocuments:
    """Assign vector keys to all chunks, and embed the texts whose vectors are not stored yet."""
    if embedder is None:
        return EmbeddedDocuments(documents, {}, {})
    keyed_documents, texts = assign_vector_keys(embedder, documents, ready)
    missing = store.vectors.missing({**ready, **texts}, split=isinstance(embedder, SentenceEmbedder))
    found = {key: text for key, text in ready.items() if key in missing}
    others = [key for key in texts if key in missing]
    found.update(zip(others, embed_all(embedder, [texts[key] for key in others]), strict=True))
    vectors = {key: one.vector for key, one in found.items()}
    sentences = {key: one.sentences for key, one in found.items() if one.sentences is not None}
    return EmbeddedDocuments(keyed_documents, vectors, sentences)


def embed_all(embedder: Embedder, texts: Sequence[str]) -> Iterator[EmbeddedText]:
    """Yield what an embedder computes of texts, as many at a time as it takes."""
    for start in range(0, len(texts), embedder.batch_size):
        vectors, sentences = _embed_texts(embedder, texts[start : start + embedder.batch_size])
        yield from map(EmbeddedText, vectors, sentences or repeat(None))


def assign_vector_keys(
    embedder: Embedder,
    documents: Sequence[PreparedDocument],
    ready: Mapping[bytes, EmbeddedText] = _NOTHING_READY,
) -> tuple[list[PreparedDocument], dict[bytes, str]]:
    """Assign a vector key to each chunk; return the documents, and by key the texts of those that are not ready."""
    texts: dict[bytes, str] = {}
    keyed_documents = []
    for prepared in documents:
        if prepared.vector_keys and ready.keys() >= set(prepared.vector_keys):
            keyed_documents.append(prepared)
            continue
        chunk_texts = prepared.texts_to_embed()
        keys = vector_keys(embedder, chunk_texts)
        texts.update(zip(keys, chunk_texts, strict=True))
        keyed_documents.append(replace(prepared, vector_keys=keys))
    return keyed_documents, texts


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> tuple[Vectors, list[SentenceSubwords]]:
    """Return the vectors of texts, and the subwords of their sentences if the embedder splits them."""
    provider = embedder.label.partition(":")[0]
    with timer(f"{provider}_embed", _log, indent=1, detail=f"batch_size={len(texts)}"):
        return embed_texts(embedder, texts)


class _UsageMeter:
    """Counts embedded and saved texts and calls, and reports the difference since the last report."""

    def __init__(self, embedder: Embedder, request_size: int) -> None:
        self._name, self._request_size = embedder.name, request_size
        self.texts = self.saved_texts = self.calls = 0
        self._reported = EmbeddingUsage()

    def usage_since_last(self) -> dict[str, EmbeddingUsage]:
        """Return the usage since the last call, or an empty dict if there was none."""
        size, previous = self._request_size, self._reported
        # Calls that would have been made if no vector had been stored, less those needed for the texts embedded.
        saved_calls = -(-(self.texts + self.saved_texts) // size) - -(-self.texts // size)
        self._reported = EmbeddingUsage(self.texts, self.calls, self.saved_texts, saved_calls)
        new = EmbeddingUsage(
            self._reported.texts - previous.texts,
            self._reported.calls - previous.calls,
            self._reported.saved_texts - previous.saved_texts,
            self._reported.saved_calls - previous.saved_calls,
        )
        return {} if new == EmbeddingUsage() else {self._name: new}


class _LocalEmbedder(Generic[T]):
    """Embeds in this process, one batch after another."""

    def __init__(self, store: Store, embedder: Embedder, ready: Mapping[bytes, EmbeddedText]) -> None:
        self._store, self._embedder, self._ready = store, embedder, ready
        self._waiting: list[tuple[T, list[PreparedDocument]]] = []

    def run(self, batches: Iterable[tuple[T, list[PreparedDocument]]]) -> Generator[EmbeddedBatch[T], None, None]:
        """Yield batches in order with their vectors."""
        meter: _UsageMeter | None = None
        for batch, documents in batches:
            self._waiting = [(batch, documents)]
            meter = meter or _UsageMeter(self._embedder, self._embedder.batch_size)
            start = time.perf_counter()
            embedded = embed_documents(self._store, self._embedder, documents, self._ready)
            seconds = time.perf_counter() - start
            count = len(embedded.vectors)
            meter.texts += count
            meter.saved_texts += len({key for prepared in embedded.documents for key in prepared.vector_keys}) - count
            meter.calls += -(-count // self._embedder.batch_size)
            self._waiting = []
            yield EmbeddedBatch(batch, *embedded, meter.usage_since_last(), seconds)

    def take_waiting(self) -> list[tuple[T, list[PreparedDocument]]]:
        """Return the batch that could not be embedded, with its documents."""
        return self._waiting


@dataclass(slots=True)
class _WaitingBatch(Generic[T]):
    """A batch and the keys of its vectors that are not stored yet."""

    batch: T
    documents: list[PreparedDocument]
    missing_keys: list[bytes]


class _BackgroundEmbedder(Generic[T]):
    """Embeds with a remote service in the background; texts of several batches share requests to fill them."""

    def __init__(self, store: Store, embedder: RemoteEmbedder, owner_id: int) -> None:
        self._store, self._embedder, self._owner_id = store, embedder, owner_id
        self._cached_meter: _UsageMeter | None = None
        # Calls that determined the dimension of the model came before this import and belong to it.
        self._initial_calls = embedder.stats.calls - embedder.stats.sizing_calls
        embedder.stats.sizing_calls = 0
        self._waiting_batches: deque[_WaitingBatch[T]] = deque()
        self._unsent_texts: dict[bytes, str] = {}
        self._pending_requests: deque[tuple[list[bytes], Future[tuple[Vectors, list[SentenceSubwords]]]]] = deque()
        self._requested_keys: set[bytes] = set()  # sent or queued
        self._delivered_keys: set[bytes] = set()  # of batches that were yielded and are stored
        self._received_vectors: dict[bytes, npt.NDArray[np.float32]] = {}
        self._received_sentences: dict[bytes, SentenceSubwords] = {}
        self._error: EmbedderError | None = None
        self._request_slots, self._stop_event = Semaphore(_MAX_IN_FLIGHT), Event()

    def run(self, batches: Iterable[tuple[T, list[PreparedDocument]]]) -> Generator[EmbeddedBatch[T], None, None]:
        """Yield batches in order, each as soon as its vectors have arrived."""
        try:
            for batch, documents in batches:
                self._add_batch(batch, documents)
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

    def take_waiting(self) -> list[tuple[T, list[PreparedDocument]]]:
        """Return the batches that were not yielded, with their documents."""
        return [
            (waiting.batch, [replace(prepared, vector_keys=[]) for prepared in waiting.documents])
            for waiting in self._waiting_batches
        ]

    @property
    def _meter(self) -> _UsageMeter:
        if self._cached_meter is None:
            self._cached_meter = _UsageMeter(self._embedder, self._embedder.request_size)
        return self._cached_meter

    def _add_batch(self, batch: T, documents: list[PreparedDocument]) -> None:
        self._waiting_batches.append(_WaitingBatch(batch, documents, []))  # the next lines may raise
        keyed_documents, texts = assign_vector_keys(self._embedder, documents)
        missing = self._store.vectors.missing(texts, split=isinstance(self._embedder, SentenceEmbedder))
        missing_keys = [key for key in texts if key in missing]
        new_keys = [key for key in missing_keys if key not in self._requested_keys]
        self._waiting_batches[-1] = _WaitingBatch(batch, keyed_documents, missing_keys)
        self._unsent_texts |= {key: texts[key] for key in new_keys}
        self._requested_keys.update(new_keys)
        self._meter.saved_texts += len(texts) - len(new_keys)

    def _send_request(self) -> None:
        keys = list(self._unsent_texts)[: self._embedder.batch_size]
        texts = [self._unsent_texts.pop(key) for key in keys]
        future: Future[tuple[Vectors, list[SentenceSubwords]]] = Future()
        # Recorded first: Ctrl-C may arrive while the thread starts, and its request must not be lost. A daemon thread
        # does not keep the process alive.
        self._pending_requests.append((keys, future))
        Thread(target=self._embed_in_thread, args=(texts, future), name="embedding", daemon=True).start()

    def _embed_in_thread(self, texts: list[str], future: Future[tuple[Vectors, list[SentenceSubwords]]]) -> None:
        with self._request_slots:
            if self._stop_event.is_set():
                future.cancel()
                future.set_running_or_notify_cancel()  # wakes up the waiting threads
                return
            try:
                future.set_result(_embed_texts(self._embedder, texts))
            except BaseException as error:  # the waiting thread raises it
                future.set_exception(error)

    def _collect_results(self, *, max_pending: int) -> None:
        """Receive finished requests; wait until at most `max_pending` are in flight."""
        while (
            self._pending_requests
            and (len(self._pending_requests) > max_pending or self._pending_requests[0][1].done())
            and self._error is None
        ):
            keys, future = self._pending_requests[0]
            try:
                vectors, sentences = future.result()
            except EmbedderError as error:
                self._error = error
                self._receive_vectors({keys[position]: vector for position, vector in error.partial_vectors.items()})
            else:
                self._receive_vectors(dict(zip(keys, vectors, strict=True)))
                self._received_sentences.update(zip(keys, sentences, strict=False))  # there may be none
            self._pending_requests.popleft()

    def _receive_vectors(self, vectors: dict[bytes, npt.NDArray[np.float32]]) -> None:
        self._received_vectors |= vectors
        self._meter.texts += len(vectors)

    def _ready_batches(self) -> Iterator[EmbeddedBatch[T]]:
        while self._waiting_batches and all(
            key in self._received_vectors or key in self._delivered_keys
            for key in self._waiting_batches[0].missing_keys
        ):
            waiting = self._waiting_batches[0]
            vectors = {
                key: self._received_vectors[key] for key in waiting.missing_keys if key in self._received_vectors
            }
            sentences = {key: rows for key in vectors if (rows := self._received_sentences.pop(key, None)) is not None}
            yield EmbeddedBatch(waiting.batch, waiting.documents, vectors, sentences, self._usage())
            # The caller has written this batch before it asks for the next one.
            self._waiting_batches.popleft()
            self._delivered_keys.update(vectors)
            for key in vectors:
                del self._received_vectors[key]

    def _usage(self) -> dict[str, EmbeddingUsage]:
        self._meter.calls = self._embedder.stats.calls - self._initial_calls
        return self._meter.usage_since_last()

    def _stop_requests(self) -> None:
        """Send no more requests, and receive those already paid for if they finish soon."""
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
                vectors, sentences = future.result()
                self._receive_vectors(dict(zip(keys, vectors, strict=True)))
                self._received_sentences.update(zip(keys, sentences, strict=False))
            elif isinstance(error, EmbedderError):
                self._receive_vectors({keys[position]: vector for position, vector in error.partial_vectors.items()})

    def _pin_leftover_vectors(self) -> None:
        if self._cached_meter is None:
            return  # nothing was embedded
        usage = self._usage()
        if not (self._received_vectors or usage):
            return
        try:
            self._store.vectors.pin(
                self._owner_id,
                self._embedder.name,
                self._received_vectors,
                sentences=self._received_sentences,
                usage=usage,
            )
        except BunkoError as error:  # only logged: the error that ended the import matters more
            _log.warning(
                "Cannot store %d vectors that were already computed: %s", len(self._received_vectors), error.message
            )


class LongTextCounter:
    """Counts the texts that exceed the model's limit since this counter was created, if the embedder reports it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._name = display_name(embedder.label) if embedder else ""
        stats = getattr(embedder, "stats", None)
        self._stats = stats if isinstance(stats, EmbedderStats) else EmbedderStats()
        self._initial_count = self._stats.too_long

    def warnings(self) -> list[str]:
        """Return a warning if texts were too long."""
        count = self._stats.too_long - self._initial_count
        if not count:
            return []
        texts = "1 text is" if count == 1 else f"{count} texts are"
        return [f"{texts} too long for {self._name}; embedding.too_long sets how long texts are handled."]
