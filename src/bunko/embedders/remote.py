"""A service that answers requests in, an embedder out: batches, retries, texts that are too long, answers checked."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Event, Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from bunko.embedders.long_texts import LongTextPolicy, cut_text, estimate_tokens, mean_vector, split_text
from bunko.embedders.query_cache import QueryCache
from bunko.errors import EmbedderError
from bunko.protocols import EmbedderStats
from bunko.remote import RemoteFailure, explain_failure, strip_credentials
from bunko.text.subwords import replace_surrogates

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

# Who asks for more patience than this has no room today; whoever waits should hear it instead.
_MAX_WAIT_SECONDS = 120.0
_RATE_LIMIT_FACTOR = (
    3.0  # times the usual wait, where a service says that it is asked too often and not how long to wait
)
_GRACE_SECONDS = 2.0  # seconds in which an answer that is paid for may still come after nobody waits for the rest
_MIN_SPLIT_CHARS = 16  # characters; a service that refuses less than that means something else


class EmbeddingService(Protocol):
    """One provider's way to ask."""

    label: str  # how the name of the embedder begins: everything that changes the vectors, but the size
    size: int | None  # of its vectors; None: not known before it answers
    address: str
    secret: str
    fix: str  # what to set when it does not know who asks

    def unavailable_reason(self) -> str:
        """Return what is missing and how to get it, if something is, without a request that costs."""

    def request_vectors(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return a vector for each text, in their order, or raise a Failure."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may hold, and how often it is tried."""

    batch_size: int = 100  # texts
    parallel: int = 4  # requests in flight
    max_tokens: int | None = None  # of one text; None: as many as the service takes
    too_long: LongTextPolicy = "average"
    retries: int = 3
    delay: float = 1.0  # seconds before the first retry
    backoff: float = 2.0


class _RequestCancelled(Exception):
    """A request that was not made, because another one failed or nobody waits for it any more."""


# The rows of one batch, or why there are none; None where it was not asked for to the end.
_BatchResult: TypeAlias = "list[Vectors] | EmbedderError | None"


class _RequestGroup:
    """Requests that are made together: none is begun or tried again after `stop`, none waited for after `over`."""

    def __init__(self) -> None:
        self.stop = Event()
        self.end_signal: Future[None] = Future()

    def cancel(self) -> None:
        """Let nobody wait any longer."""
        self.stop.set()
        if not self.end_signal.done():
            self.end_signal.set_result(None)


class Remote:
    """Asks a service for vectors."""

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
        # For all who ask for vectors of documents: no more requests are in flight than are allowed.
        self._slots = Semaphore(limits.parallel)
        self.stats = EmbedderStats()
        self.label, self.request_size = service.label, limits.batch_size
        # Whoever hands over this many texts at once keeps all requests busy that may be in flight.
        self.batch_size = limits.batch_size * limits.parallel

    def __repr__(self) -> str:
        return f"Remote({self._service.label})"

    @property
    def size(self) -> int:
        """Return how many numbers a vector has; a model that is not known is asked once."""
        if self._size is None:
            before = self.stats.calls
            self._embed(["size"], query=False)
            self.stats.sizing_calls += self.stats.calls - before
        assert self._size is not None
        return self._size

    @property
    def name(self) -> str:
        """Return what the vectors depend on."""
        limit = f":{self._limits.too_long}-{self._limits.max_tokens}" if self._limits.max_tokens else ""
        return f"{self._service.label}:{self.size}{limit}"

    def unavailable_reason(self) -> str:
        """Return nothing if the service can be asked, else what is missing; it is not asked for vectors."""
        return self._service.unavailable_reason()

    def restore_size(self, name: str) -> None:
        """Take the size from a name it had before: then a model of unknown size need not be asked for it."""
        size = name.removeprefix(f"{self.label}:").partition(":")[0]
        if self._size is None and name.startswith(f"{self.label}:") and size.isdecimal() and int(size):
            self._size = int(size)

    def cancel(self) -> None:
        """Let those who wait for an answer wait no longer than a moment; what is asked later is not touched."""
        with self._lock:
            for flight in self._request_groups:
                flight.cancel()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row for each text; all of them or an error, which holds those that came."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        self._add_stats(texts=len(texts))
        if not query or len(texts) > 1:
            return self._embed(texts, query=query)
        return self._query_cache.vector(texts[0], lambda: self._embed(texts, query=True))

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        before = self.stats.too_long
        clean = [replace_surrogates(text) or " " for text in texts]  # no service takes an empty text
        pieces = [self._fit_text(text) for text in clean]
        flat = [piece for some in pieces for piece in some]
        rows, error = self._request_batches(flat, query)
        vectors: dict[int, Vectors] = {}
        at = 0
        for place, some in enumerate(pieces):
            own = [row for row in rows[at : at + len(some)] if row is not None]
            if len(own) == len(some):
                vectors[place] = mean_vector(own, [len(piece) for piece in some])
            at += len(some)
        if found := self.stats.too_long - before:
            what = "cut" if self._limits.too_long == "cut" else "embedded in parts"
            number = "1 text was" if found == 1 else f"{found} texts were"
            _log.info("%s longer than %s takes, and %s.", number, self.label, what)
        if error is not None:
            error.partial_vectors = vectors
            raise error
        return np.stack(list(vectors.values()))

    def _fit_text(self, text: str) -> list[str]:
        """Return a text in parts that the model takes, or its beginning alone."""
        most = self._limits.max_tokens
        if most is None or estimate_tokens(text) <= most:
            return [text]
        self._add_stats(too_long=1)
        pieces = split_text(text, most)
        return pieces[:1] if self._limits.too_long == "cut" else pieces

    def _request_batches(self, texts: Sequence[str], query: bool) -> tuple[list[Vectors | None], EmbedderError | None]:
        """Return the rows of texts, asked for in batches; the first failure ends the rest, and what came stays."""
        most = self._limits.batch_size
        batches = [texts[at : at + most] for at in range(0, len(texts), most)]
        if query and len(batches) == 1:  # whoever asks a question does not wait for an import, nor for a thread
            answers = [self._try_batch(batches[0], query, Event())]
        else:
            answers = self._request_parallel(batches, query)
        rows: list[Vectors | None] = []
        error = None
        for some, answer in zip(batches, answers, strict=True):
            if isinstance(answer, EmbedderError):
                error = error or answer
            rows += answer if isinstance(answer, list) else [None] * len(some)
        if error is None and None in answers:
            error = EmbedderError(f"{self.label} is not asked any more", hint="What came is kept for the next import.")
        return rows, error

    def _request_parallel(self, batches: Sequence[Sequence[str]], query: bool) -> list[_BatchResult]:
        """Return the answers to batches that are asked for in parallel."""
        flight = _RequestGroup()
        futures: list[Future[_BatchResult]] = [Future() for _ in batches]
        todo = deque(zip(batches, futures, strict=True))
        if not query:  # a question is not given up on because an import is
            with self._lock:
                self._request_groups.add(flight)
        try:
            for _ in batches[: self._limits.parallel]:
                # A process that ends does not wait for these: a service may take a minute not to answer.
                Thread(target=self._run_worker, args=(todo, query, flight.stop), name="embed", daemon=True).start()
            left: set[Future[Any]] = set(futures)
            while left and not flight.end_signal.done():
                left = wait({*left, flight.end_signal}, return_when=FIRST_COMPLETED).not_done - {flight.end_signal}
            wait(left, timeout=_GRACE_SECONDS)
        except BaseException:
            flight.stop.set()  # nobody goes on to wait or to pay for what is thrown away
            raise
        finally:
            with self._lock:
                self._request_groups.discard(flight)
        return [future.result() if future.done() else None for future in futures]

    def _run_worker(self, todo: deque[tuple[Sequence[str], Future[_BatchResult]]], query: bool, stop: Event) -> None:
        while todo:
            try:
                texts, future = todo.popleft()
            except IndexError:  # another thread was quicker
                return
            try:
                with self._slots:
                    future.set_result(self._try_batch(texts, query, stop))
            except BaseException as error:  # whoever waits has to hear of it
                future.set_exception(error)

    def _try_batch(self, texts: Sequence[str], query: bool, stop: Event) -> _BatchResult:
        """Return what one batch is answered."""
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
        """Return the rows of one batch; one that is refused for its size is asked for in halves.

        What is part of a text that was found to be too long is `counted` already.
        """
        found = self._request_with_retries(texts, query, stop)
        if not isinstance(found, RemoteFailure):
            return self._validate_rows(found, len(texts))
        if found.is_too_large():
            if len(texts) > 1:
                half = len(texts) // 2
                halves = (texts[:half], texts[half:])
                return [
                    row
                    for some in halves
                    for row in self._embed_batch(some, query, stop, already_counted=already_counted)
                ]
            text = texts[0]
            if len(text) > _MIN_SPLIT_CHARS:
                self._add_stats(too_long=0 if already_counted else 1)
                return [self._embed_in_halves(text, query, stop)]
        raise self._embedder_error(found)

    def _embed_in_halves(self, text: str, query: bool, stop: Event) -> Vectors:
        """Return the row of a text that is too long by nobody knows how much."""
        most, number = self._limits.batch_size, 1
        while True:
            number *= 2
            pieces = cut_text(text, -(-len(text) // number))
            if self._limits.too_long == "cut":
                pieces = pieces[:1]
            answer = self._request_with_retries(pieces[:1], query, stop)
            if isinstance(answer, RemoteFailure):
                if not answer.is_too_large() or len(pieces[0]) <= _MIN_SPLIT_CHARS:
                    raise self._embedder_error(answer)
                continue
            rows = self._validate_rows(answer, 1)
            for at in range(1, len(pieces), most):
                rows += self._embed_batch(pieces[at : at + most], query, stop, already_counted=True)
            return mean_vector(rows, [len(piece) for piece in pieces])

    def _request_with_retries(
        self, texts: Sequence[str], query: bool, stop: Event
    ) -> list[Sequence[float]] | RemoteFailure:
        """Ask, and ask again later where that may help; return the last failure where it did not."""
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
            wait = limits.delay * limits.backoff**attempt * random.uniform(1, 1.25)
            if failure.retry_after is not None:
                wait = max(failure.retry_after, 0) * random.uniform(1, 1.1)
            elif failure.status == 429:
                wait *= _RATE_LIMIT_FACTOR
            if wait > _MAX_WAIT_SECONDS:
                break
            self._add_stats(retries=1)
            _log.debug("%s: asking again in %.1f s (status %d)", self._service.label, wait, failure.status)
            (self._sleep or stop.wait)(wait)
        return failure.without_traceback()

    def _validate_rows(self, vectors: list[Sequence[float]], expected: int) -> list[Vectors]:
        """Return rows of unit length, all of one size, as many as there were texts."""
        label = self._service.label
        nothing = "Nothing of this answer was stored."
        if len(vectors) != expected:
            raise EmbedderError(
                f"{label} returned {len(vectors)} vectors for {expected} texts",
                hint=f"{nothing} Check that {strip_credentials(self._service.address)} serves an embedding model.",
            )
        sizes = {len(values) for values in vectors}
        size = self._size or max(sizes)
        if wrong := sizes - {size} or sizes & {0}:
            raise EmbedderError(
                f"{label} returned a vector of {min(wrong)} numbers instead of {size}",
                hint=f"{nothing} Check that the model and the dimension in the settings are what it serves.",
            )
        try:
            with np.errstate(over="ignore"):  # a number that is too large is none, as is found below
                rows = np.asarray(vectors, np.float32).reshape(expected, size)
        except (TypeError, ValueError):
            rows = np.zeros((expected, size), np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise EmbedderError(
                f"{label} returned a vector that points nowhere", hint=f"{nothing} Try again, or another model."
            )
        with self._lock:
            self._size = self._size or size  # what an answer says of it that is wrong otherwise is not believed
        return list(rows / lengths[:, None].astype(np.float32))

    def _embedder_error(self, failure: RemoteFailure) -> EmbedderError:
        message, hint = explain_failure(self._service, failure)
        if failure.is_transient():
            hint += " What was stored stays; the next import goes on from there."
        return EmbedderError(message, hint=hint)

    def _add_stats(self, *, texts: int = 0, calls: int = 0, retries: int = 0, too_long: int = 0) -> None:
        with self._lock:
            self.stats.texts += texts
            self.stats.calls += calls
            self.stats.retries += retries
            self.stats.too_long += too_long


def missing_package_error(package: str, extra: str) -> EmbedderError:
    """Make the error for a package that comes with an extra."""
    return EmbedderError(
        f"The package {package} is not installed", hint=f'Install it with: pip install "bunko[{extra}]"'
    )


def missing_package_message(module: str, package: str, extra: str) -> str:
    """Return the sentence for a package that is not installed; nothing if it is, without loading it."""
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        found = False
    return "" if found else f'The package {package} is not installed; get it with: pip install "bunko[{extra}]".'
