"""Embed texts through a remote service: batch, run in parallel, retry, split long texts, and validate responses."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from copy import copy
from dataclasses import dataclass, replace
from threading import Event, Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from bunko.embedders.long_texts import LongTextPolicy, cut_text, estimate_tokens, mean_vector, split_text
from bunko.embedders.names import display_name
from bunko.embedders.query_cache import QueryCache
from bunko.errors import EmbedderError
from bunko.protocols import EmbedderStats
from bunko.runtime.remote import RemoteFailure, explain_failure, strip_credentials
from bunko.text.subwords import replace_surrogates

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

# A service that asks for a longer wait has no capacity for now; the caller gets an error instead.
_MAX_WAIT_SECONDS = 120.0
_RATE_LIMIT_FACTOR = 3.0  # times the usual delay, if the service reports a rate limit without a Retry-After
_GRACE_SECONDS = 2.0  # seconds to wait after a cancellation for responses that are already paid for
_MIN_SPLIT_CHARS = 16  # a service that refuses a shorter text has another reason


class EmbeddingService(Protocol):
    """The API of one provider."""

    label: str  # prefix of the embedder's name: everything that changes the vectors, except the size
    size: int | None  # of its vectors; None: unknown until the first response
    address: str
    secret: str
    fix: str  # what to set when authentication fails

    def setup_problem(self) -> str:
        """Return what is missing here, a package or a key, and how to get it, or an empty string; asks nobody."""

    def unavailable_reason(self) -> str:
        """Return what is missing and how to get it, or an empty string; sends no request that costs money."""

    def request_vectors(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return one vector per text, in the order of the texts, or raise RemoteFailure."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on the size of a request and on retries."""

    batch_size: int = 100  # texts
    parallel: int = 4  # requests in flight
    max_tokens: int | None = None  # of one text; None: as many as the service takes
    too_long: LongTextPolicy = "average"
    retries: int = 3
    delay: float = 1.0  # seconds before the first retry
    backoff: float = 2.0
    query_timeout: float = 3.0  # seconds that a search waits for the vector of its query


class _RequestCancelled(Exception):
    """A request that was not sent, because another one failed or the caller cancelled."""


# The rows of one batch, or its error; None if the batch was cancelled.
_BatchResult: TypeAlias = "list[Vectors] | EmbedderError | None"


class _RequestGroup:
    """Requests sent together: none is started or retried after `stop`, none is awaited after `end_signal`."""

    def __init__(self) -> None:
        self.stop = Event()
        self.end_signal: Future[None] = Future()

    def cancel(self) -> None:
        """Stop sending requests and waiting for responses."""
        self.stop.set()
        if not self.end_signal.done():
            self.end_signal.set_result(None)


class Remote:
    """An embedder that sends texts to a service."""

    noise_floor = -1.0
    is_remote = True

    def __init__(
        self, service: EmbeddingService, limits: RequestLimits, *, sleep: Callable[[float], object] | None = None
    ) -> None:
        self._service, self._limits, self._sleep = service, limits, sleep
        self._size = service.size
        self._lock = Lock()
        self._query_cache = QueryCache()
        self._request_groups: set[_RequestGroup] = set()
        # Shared by all callers that embed documents: limits the requests in flight.
        self._slots = Semaphore(limits.parallel)
        self.stats = EmbedderStats()
        self.label, self.request_size = service.label, limits.batch_size
        # A caller that passes this many texts at once uses all parallel requests.
        self.batch_size = limits.batch_size * limits.parallel

    def __repr__(self) -> str:
        return f"Remote({self._service.label})"

    @property
    def size(self) -> int:
        """Return the size of a vector; for an unknown model this sends one request, once."""
        if self._size is None:
            before = self.stats.calls
            self._embed(["size"], query=False)
            self.stats.sizing_calls += self.stats.calls - before
        assert self._size is not None
        return self._size

    @property
    def name(self) -> str:
        """Return a name that identifies everything the vectors depend on."""
        limit = f":{self._limits.too_long}-{self._limits.max_tokens}" if self._limits.max_tokens else ""
        return f"{self._service.label}:{self.size}{limit}"

    @property
    def identity(self) -> str:
        """Return a secret text that differs for every model, address and key."""
        return "\0".join((self.label, self._service.address, self._service.secret))

    @property
    def is_size_known(self) -> bool:
        """Whether `size` and `name` need no request."""
        return self._size is not None

    def setup_problem(self) -> str:
        """Return what is missing here, a package or a key, or an empty string; the service may be away."""
        return self._service.setup_problem()

    def unavailable_reason(self) -> str:
        """Return what is missing, or an empty string if the service can be used; requests no vectors."""
        return self._service.unavailable_reason()

    def restore_size(self, name: str) -> None:
        """Take the size from an earlier name, so that a model of unknown size needs no request for it."""
        size = name.removeprefix(f"{self.label}:").partition(":")[0]
        if self._size is None and name.startswith(f"{self.label}:") and size.isdecimal() and int(size):
            self._size = int(size)

    def with_retries(self, retries: int) -> Remote:
        """Return the same embedder with another number of retries."""
        other = copy(self)
        other._limits = replace(self._limits, retries=retries)
        return other

    def cancel(self) -> None:
        """Cancel the requests in flight after a short grace period; later requests are not affected."""
        with self._lock:
            for group in self._request_groups:
                group.cancel()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row per text; an error carries the rows received before it as `partial_vectors`."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        self._add_stats(texts=len(texts))
        if not query or len(texts) > 1:
            return self._embed(texts, query=query)
        return self._query_cache.vector(texts[0], lambda: self._embed(texts, query=True))

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        before = self.stats.too_long
        clean = [replace_surrogates(text) or " " for text in texts]  # no service accepts an empty text
        parts_by_text = [self._fit_text(text) for text in clean]
        rows, error = self._request_batches([part for parts in parts_by_text for part in parts], query)
        vectors: dict[int, Vectors] = {}
        start = 0
        for index, parts in enumerate(parts_by_text):
            part_rows = [row for row in rows[start : start + len(parts)] if row is not None]
            if len(part_rows) == len(parts):
                vectors[index] = mean_vector(part_rows, [len(part) for part in parts])
            start += len(parts)
        if long_count := self.stats.too_long - before:
            action = "cut" if self._limits.too_long == "cut" else "embedded in parts"
            subject = "1 text was" if long_count == 1 else f"{long_count} texts were"
            _log.info("%s too long for %s, and %s.", subject, display_name(self.label), action)
        if error is not None:
            error.partial_vectors = vectors
            raise error
        return np.stack(list(vectors.values()))

    def _fit_text(self, text: str) -> list[str]:
        """Split a text into parts that fit the model, or return only its beginning."""
        max_tokens = self._limits.max_tokens
        if max_tokens is None or estimate_tokens(text) <= max_tokens:
            return [text]
        self._add_stats(too_long=1)
        parts = split_text(text, max_tokens)
        return parts[:1] if self._limits.too_long == "cut" else parts

    def _request_batches(self, texts: Sequence[str], query: bool) -> tuple[list[Vectors | None], EmbedderError | None]:
        """Embed texts in batches; the first error cancels the other batches, rows already received are returned."""
        batch_size = self._limits.batch_size
        batches = [texts[start : start + batch_size] for start in range(0, len(texts), batch_size)]
        results = [self._try_query(texts)] if query and len(texts) == 1 else self._request_parallel(batches, query)
        rows: list[Vectors | None] = []
        error = None
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, EmbedderError):
                error = error or result
            rows += result if isinstance(result, list) else [None] * len(batch)
        if error is None and None in results:
            message = f"Embedding with {display_name(self.label)} was cancelled"
            error = EmbedderError(message, hint="The vectors received so far are kept.")
        return rows, error

    def _try_query(self, texts: Sequence[str]) -> _BatchResult:
        """Embed one query with a single request, which waits for no import and only for a moment."""
        future: Future[_BatchResult] = Future()
        without_retries = self.with_retries(0)

        def run() -> None:
            try:
                future.set_result(without_retries._try_batch(texts, True, Event()))
            except BaseException as error:  # the waiting thread raises it
                future.set_exception(error)

        Thread(target=run, name="embed-query", daemon=True).start()
        wait([future], timeout=(seconds := self._limits.query_timeout))
        if future.done():
            return future.result()
        hint = "Check that the service is up, or set embedding.query_timeout."
        return EmbedderError(f"{display_name(self.label)} did not answer within {seconds:g} s", hint=hint)

    def _request_parallel(self, batches: Sequence[Sequence[str]], query: bool) -> list[_BatchResult]:
        """Return the results of batches requested in parallel."""
        group = _RequestGroup()
        futures: list[Future[_BatchResult]] = [Future() for _ in batches]
        queue = deque(zip(batches, futures, strict=True))
        if not query:  # cancelling an import does not cancel a query
            with self._lock:
                self._request_groups.add(group)
        try:
            for _ in batches[: self._limits.parallel]:
                # Daemon threads, so that the process can exit: a service may take a minute to time out.
                Thread(target=self._run_worker, args=(queue, query, group.stop), name="embed", daemon=True).start()
            pending: set[Future[Any]] = set(futures)
            while pending and not group.end_signal.done():
                pending = wait({*pending, group.end_signal}, return_when=FIRST_COMPLETED).not_done - {group.end_signal}
            wait(pending, timeout=_GRACE_SECONDS)
        except BaseException:
            group.stop.set()  # do not wait or pay for results that are thrown away
            raise
        finally:
            with self._lock:
                self._request_groups.discard(group)
        return [future.result() if future.done() else None for future in futures]

    def _run_worker(self, queue: deque[tuple[Sequence[str], Future[_BatchResult]]], query: bool, stop: Event) -> None:
        while queue:
            try:
                texts, future = queue.popleft()
            except IndexError:  # another thread was quicker
                return
            try:
                with self._slots:
                    future.set_result(self._try_batch(texts, query, stop))
            except BaseException as error:  # reported to the thread that waits for the future
                future.set_exception(error)

    def _try_batch(self, texts: Sequence[str], query: bool, stop: Event) -> _BatchResult:
        """Return the rows of one batch, its error, or None if it was cancelled."""
        try:
            return self._embed_batch(texts, query, stop)
        except _RequestCancelled:
            return None
        except EmbedderError as error:
            failed = error
        stop.set()
        return failed.with_traceback(None)

    def _embed_batch(
        self, texts: Sequence[str], query: bool, stop: Event, *, already_counted: bool = False
    ) -> list[Vectors]:
        """Return the rows of one batch; a batch that is too large for the service is requested in halves.

        Parts of a text that was too long are `already_counted` in the statistics.
        """
        response = self._request_with_retries(texts, query, stop)
        if not isinstance(response, RemoteFailure):
            return self._validate_rows(response, len(texts))
        if response.is_too_large():
            if len(texts) > 1:
                half = len(texts) // 2
                halves = (texts[:half], texts[half:])
                return [
                    row
                    for part_texts in halves
                    for row in self._embed_batch(part_texts, query, stop, already_counted=already_counted)
                ]
            text = texts[0]
            if len(text) > _MIN_SPLIT_CHARS:
                self._add_stats(too_long=0 if already_counted else 1)
                return [self._embed_in_halves(text, query, stop)]
        raise self._embedder_error(response)

    def _embed_in_halves(self, text: str, query: bool, stop: Event) -> Vectors:
        """Return the row of a text that exceeds an unknown limit: halve its parts until the first one fits."""
        batch_size, part_count = self._limits.batch_size, 1
        while True:
            part_count *= 2
            parts = cut_text(text, -(-len(text) // part_count))
            if self._limits.too_long == "cut":
                parts = parts[:1]
            response = self._request_with_retries(parts[:1], query, stop)
            if isinstance(response, RemoteFailure):
                if not response.is_too_large() or len(parts[0]) <= _MIN_SPLIT_CHARS:
                    raise self._embedder_error(response)
                continue
            rows = self._validate_rows(response, 1)
            for start in range(1, len(parts), batch_size):
                rows += self._embed_batch(parts[start : start + batch_size], query, stop, already_counted=True)
            return mean_vector(rows, [len(part) for part in parts])

    def _request_with_retries(
        self, texts: Sequence[str], query: bool, stop: Event
    ) -> list[Sequence[float]] | RemoteFailure:
        """Send a request, retry transient failures, and return the vectors or the last failure."""
        limits = self._limits
        for attempt in range(limits.retries + 1):
            if stop.is_set():
                raise _RequestCancelled
            self._add_stats(calls=1)
            try:
                return self._service.request_vectors(texts, query=query)
            except RemoteFailure as error:
                failure = error
            if failure.is_too_large() or not failure.is_transient() or attempt == limits.retries:
                break
            seconds = limits.delay * limits.backoff**attempt * random.uniform(1, 1.25)
            if failure.retry_after is not None:
                seconds = max(failure.retry_after, 0) * random.uniform(1, 1.1)
            elif failure.status == 429:
                seconds *= _RATE_LIMIT_FACTOR
            if seconds > _MAX_WAIT_SECONDS:
                break
            self._add_stats(retries=1)
            _log.debug("%s: retrying in %.1f s (status %d)", self._service.label, seconds, failure.status)
            (self._sleep or stop.wait)(seconds)
        return failure.without_traceback()

    def _validate_rows(self, vectors: list[Sequence[float]], expected: int) -> list[Vectors]:
        """Return the vectors as unit rows; raise an error on a wrong count, a wrong size or an invalid value."""
        model = display_name(self._service.label)
        not_stored = "Nothing of this response was stored."
        if len(vectors) != expected:
            raise EmbedderError(
                f"{model} returned {len(vectors)} vectors for {expected} texts",
                hint=f"{not_stored} Check that {strip_credentials(self._service.address)} serves an embedding model.",
            )
        sizes = {len(values) for values in vectors}
        size = self._size or max(sizes)
        if wrong := sizes - {size} or sizes & {0}:
            raise EmbedderError(
                f"{model} returned a vector of {min(wrong)} numbers instead of {size}",
                hint=f"{not_stored} Check that the server provides the model and dimension in the settings.",
            )
        try:
            with np.errstate(over="ignore"):  # a number that is too large becomes infinity, which is rejected below
                rows = np.asarray(vectors, np.float32).reshape(expected, size)
        except (TypeError, ValueError):
            rows = np.zeros((expected, size), np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise EmbedderError(
                f"{model} returned a zero or invalid vector", hint=f"{not_stored} Try again, or choose another model."
            )
        with self._lock:
            self._size = self._size or size  # only a valid response sets the size
        return list(rows / lengths[:, None].astype(np.float32))

    def _embedder_error(self, failure: RemoteFailure) -> EmbedderError:
        message, hint = explain_failure(self._service, failure, name=display_name(self.label))
        if failure.is_transient():
            hint += " Stored vectors are kept, and the next import continues from there."
        return EmbedderError(message, hint=hint)

    def _add_stats(self, *, texts: int = 0, calls: int = 0, retries: int = 0, too_long: int = 0) -> None:
        with self._lock:
            self.stats.texts += texts
            self.stats.calls += calls
            self.stats.retries += retries
            self.stats.too_long += too_long
