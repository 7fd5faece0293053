"""A service that answers requests in, an embedder out: batches, retries, texts that are too long, answers checked."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Event, Lock
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from bunko.errors import EmbedderError
from bunko.protocols import Counts
from bunko.service import Failure, explained, without_user

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

TooLong = Literal["average", "cut"]

# Who asks for more patience than this has no room today; whoever waits should hear it instead.
_LONGEST_WAIT = 120.0
_CROWDED = 3.0  # times the usual wait, where a service says that it is asked too often and not how long to wait
_SHORTEST = 16  # characters; a service that refuses less than that means something else
_QUERIES = 256  # remembered; 3 MB at most of the largest vectors
_LONE = re.compile("[\ud800-\udfff]")


class Service(Protocol):
    """One provider's way to ask."""

    label: str  # how the name of the embedder begins: everything that changes the vectors, but the size
    size: int | None  # of its vectors; None: not known before it answers
    address: str
    secret: str
    fix: str  # what to set when it does not know who asks

    def available(self) -> str:
        """Return what is missing and how to get it, if something is, without a request that costs."""

    def ask(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return a vector for each text, in their order, or raise a Failure."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold, and how often it is tried."""

    batch: int = 100  # texts
    parallel: int = 4  # requests in flight
    tokens: int | None = None  # of one text; None: as many as the service takes
    too_long: TooLong = "average"
    retries: int = 3
    delay: float = 1.0  # seconds before the first retry
    backoff: float = 2.0


class _Stopped(Exception):
    """A request that was not made, because another one failed or nobody waits for it any more."""


class Remote:
    """Asks a service for vectors."""

    floor = -1.0
    remote = True

    def __init__(self, service: Service, limits: Limits, *, sleep: Callable[[float], object] | None = None) -> None:
        self._service, self._limits, self._sleep = service, limits, sleep
        self._size = service.size
        self._lock = Lock()
        self._queries: dict[str, Vectors] = {}
        self._made: ThreadPoolExecutor | None = None
        self._stops: set[Event] = set()
        self.counts = Counts()
        self.label, self.request = service.label, limits.batch
        # Whoever hands over this many texts at once keeps all requests busy that may be in flight.
        self.batch = limits.batch * limits.parallel

    def __repr__(self) -> str:
        return f"Remote({self._service.label})"

    @property
    def size(self) -> int:
        """Return how many numbers a vector has; a model that is not known is asked once."""
        if self._size is None:
            self._embed(["size"], query=False)
        assert self._size is not None
        return self._size

    @property
    def name(self) -> str:
        """Return what the vectors depend on."""
        limit = f":{self._limits.too_long}-{self._limits.tokens}" if self._limits.tokens else ""
        return f"{self._service.label}:{self.size}{limit}"

    def available(self) -> str:
        """Return nothing if the service can be asked, else what is missing; it is not asked for vectors."""
        return self._service.available()

    def recall(self, name: str) -> None:
        """Take the size from a name it had before: then a model of unknown size need not be asked for it."""
        size = name.removeprefix(f"{self.label}:").partition(":")[0]
        if self._size is None and name.startswith(f"{self.label}:") and size.isdecimal() and int(size):
            self._size = int(size)

    def cancel(self) -> None:
        """Let those who wait for an answer wait no longer; what is asked later is not touched."""
        with self._lock:
            for stop in self._stops:
                stop.set()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row for each text; all of them or an error, which holds those that came."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        self._count(texts=len(texts))
        if not query or len(texts) > 1:
            return self._embed(texts, query=query)
        # The same question is often asked in several ways, and of several tools.
        found = self._queries.get(texts[0])
        if found is None:
            found = self._embed(texts, query=True)
            if len(self._queries) >= _QUERIES:
                self._queries.clear()
            self._queries[texts[0]] = found
        return found.copy()

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        before = self.counts.too_long
        clean = [_LONE.sub("\ufffd", text) or " " for text in texts]  # no service takes an empty text
        pieces = [self._pieces(text) for text in clean]
        flat = [piece for some in pieces for piece in some]
        rows, error = self._all(flat, query)
        vectors: dict[int, Vectors] = {}
        at = 0
        for place, some in enumerate(pieces):
            own = [row for row in rows[at : at + len(some)] if row is not None]
            if len(own) == len(some):
                vectors[place] = mean(own, [len(piece) for piece in some])
            at += len(some)
        if found := self.counts.too_long - before:
            what = "cut" if self._limits.too_long == "cut" else "embedded in parts"
            number = "1 text was" if found == 1 else f"{found} texts were"
            _log.info("%s longer than %s takes, and %s.", number, self.label, what)
        if error is not None:
            error.came = vectors
            raise error
        return np.stack(list(vectors.values()))

    def _pieces(self, text: str) -> list[str]:
        """Return a text in parts that the model takes, or its beginning alone."""
        most = self._limits.tokens
        if most is None or _tokens(text) <= most:
            return [text]
        self._count(too_long=1)
        pieces = _split(text, most)
        return pieces[:1] if self._limits.too_long == "cut" else pieces

    def _all(self, texts: Sequence[str], query: bool) -> tuple[list[Vectors | None], EmbedderError | None]:
        """Return the rows of texts, asked for in batches; the first failure ends the rest, and what came stays."""
        most = self._limits.batch
        batches = [texts[at : at + most] for at in range(0, len(texts), most)]
        stop = Event()
        if not query:  # a question is not given up on because an import is
            with self._lock:
                self._stops.add(stop)
        futures: list[Future[list[Vectors] | EmbedderError | None]] = []
        try:
            if len(batches) == 1:
                answers = [self._attempt(batches[0], query, stop)]
            else:
                futures = [self._pool().submit(self._attempt, some, query, stop) for some in batches]
                answers = [future.result() for future in futures]
        except BaseException:
            # Nobody goes on to wait or to pay for what is thrown away.
            stop.set()
            for future in futures:
                future.cancel()
            raise
        finally:
            with self._lock:
                self._stops.discard(stop)
        rows: list[Vectors | None] = []
        error = None
        for some, answer in zip(batches, answers, strict=True):
            if isinstance(answer, EmbedderError):
                error = error or answer
            rows += answer if isinstance(answer, list) else [None] * len(some)
        if error is None and None in answers:
            error = EmbedderError(f"{self.label} is not asked any more", hint="What came is kept for the next import.")
        return rows, error

    def _pool(self) -> ThreadPoolExecutor:
        # One for all who ask: no more requests are in flight than are allowed, however many wait for answers.
        with self._lock:
            if self._made is None:
                self._made = ThreadPoolExecutor(self._limits.parallel, "embed")
            return self._made

    def _attempt(self, texts: Sequence[str], query: bool, stop: Event) -> list[Vectors] | EmbedderError | None:
        """Return the rows of one batch, or why there are none; None where it was not asked for to the end."""
        try:
            return self._answer(texts, query, stop)
        except _Stopped:
            return None
        except EmbedderError as error:
            failed = error
        stop.set()
        return failed.with_traceback(None)

    def _answer(self, texts: Sequence[str], query: bool, stop: Event) -> list[Vectors]:
        """Return the rows of one batch; one that is refused for its size is asked for in halves."""
        found = self._patient(texts, query, stop)
        if not isinstance(found, Failure):
            return self._checked(found, len(texts))
        if found.is_about_size():
            if len(texts) > 1:
                half = len(texts) // 2
                return [*self._answer(texts[:half], query, stop), *self._answer(texts[half:], query, stop)]
            text = texts[0]
            if len(text) > _SHORTEST:
                self._count(too_long=1)
                return [self._halved(text, query, stop)]
        raise self._error(found)

    def _halved(self, text: str, query: bool, stop: Event) -> Vectors:
        """Return the row of a text that is too long by nobody knows how much."""
        most, number = self._limits.batch, 1
        while True:
            number *= 2
            pieces = cut(text, -(-len(text) // number))
            if self._limits.too_long == "cut":
                pieces = pieces[:1]
            answer = self._patient(pieces[:1], query, stop)
            if isinstance(answer, Failure):
                if not answer.is_about_size() or len(pieces[0]) <= _SHORTEST:
                    raise self._error(answer)
                continue
            rows = self._checked(answer, 1)
            for at in range(1, len(pieces), most):
                rows += self._answer(pieces[at : at + most], query, stop)
            return mean(rows, [len(piece) for piece in pieces])

    def _patient(self, texts: Sequence[str], query: bool, stop: Event) -> list[Sequence[float]] | Failure:
        """Ask, and ask again later where that may help; return the last failure where it did not."""
        limits = self._limits
        for attempt in range(limits.retries + 1):
            if stop.is_set():
                raise _Stopped
            self._count(calls=1)
            try:
                return self._service.ask(texts, query=query)
            except Failure as error:
                failure = error
            if failure.is_about_size() or not failure.is_passing() or attempt == limits.retries:
                break
            wait = limits.delay * limits.backoff**attempt * random.uniform(1, 1.25)
            if failure.wait is not None:
                wait = max(failure.wait, 0) * random.uniform(1, 1.1)
            elif failure.status == 429:
                wait *= _CROWDED
            if wait > _LONGEST_WAIT:
                break
            self._count(retries=1)
            _log.debug("%s: asking again in %.1f s (status %d)", self._service.label, wait, failure.status)
            (self._sleep or stop.wait)(wait)
        return failure.alone()

    def _checked(self, found: list[Sequence[float]], wanted: int) -> list[Vectors]:
        """Return rows of unit length, all of one size, as many as there were texts."""
        label = self._service.label
        nothing = "Nothing of this answer was stored."
        if len(found) != wanted:
            raise EmbedderError(
                f"{label} returned {len(found)} vectors for {wanted} texts",
                hint=f"{nothing} Check that {without_user(self._service.address)} serves an embedding model.",
            )
        sizes = {len(values) for values in found}
        with self._lock:
            size = self._size = self._size or max(sizes)
        if wrong := sizes - {size} or sizes & {0}:
            raise EmbedderError(
                f"{label} returned a vector of {min(wrong)} numbers instead of {size}",
                hint=f"{nothing} Check that the model and the dimension in the settings are what it serves.",
            )
        rows = np.asarray(found, np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise EmbedderError(
                f"{label} returned a vector that points nowhere", hint=f"{nothing} Try again, or another model."
            )
        return list(rows / lengths[:, None].astype(np.float32))

    def _error(self, failure: Failure) -> EmbedderError:
        message, hint = explained(self._service, failure)
        if failure.is_passing():
            hint += " What was stored stays; the next import goes on from there."
        return EmbedderError(message, hint=hint)

    def _count(self, *, texts: int = 0, calls: int = 0, retries: int = 0, too_long: int = 0) -> None:
        with self._lock:
            self.counts.texts += texts
            self.counts.calls += calls
            self.counts.retries += retries
            self.counts.too_long += too_long


def missing(package: str, extra: str) -> EmbedderError:
    """Make the error for a package that comes with an extra."""
    return EmbedderError(
        f"The package {package} is not installed", hint=f'Install it with: pip install "bunko[{extra}]"'
    )


def lacking(module: str, package: str, extra: str) -> str:
    """Return the sentence for a package that is not installed; nothing if it is, without loading it."""
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        found = False
    return "" if found else f'The package {package} is not installed; get it with: pip install "bunko[{extra}]".'


def mean(rows: Sequence[Vectors], weights: Sequence[int]) -> Vectors:
    """Return the unit row of a text from the rows of its parts and their lengths."""
    if len(rows) == 1:
        return rows[0]
    total = np.average(np.stack(rows), axis=0, weights=weights)
    length = np.linalg.norm(total)
    # Parts that point in opposite ways cancel out; the first says best what a text is about.
    whole: Vectors = (total / length).astype(np.float32) if length else rows[0]
    return whole


def _tokens(text: str) -> int:
    """Guess high how many tokens a text has: a letter of Latin text is a third of one, any other character is one."""
    plain = len(text.encode("ascii", "ignore"))
    return len(text) - plain + -(-plain // 3)


def _split(text: str, tokens: int) -> list[str]:
    """Return a text in as few parts of about one size as have so many tokens at most."""
    number = -(-_tokens(text) // tokens)
    while True:
        pieces = cut(text, -(-len(text) // number))
        if all(_tokens(piece) <= tokens for piece in pieces) or number >= len(text):
            return pieces
        number += 1


def cut(text: str, most: int) -> list[str]:
    """Return the parts of a text, none longer than so many characters; where they can, they end after a sentence."""
    pieces = []
    at = 0
    while len(text) - at > most:
        end = at + most
        low = at + most * 3 // 4
        for ends in ("\n", "。", ". ", " "):
            found = text.rfind(ends, low, end)
            if found >= 0:
                end = found + len(ends)
                break
        pieces.append(text[at:end])
        at = end
    pieces.append(text[at:])
    return [piece for piece in pieces if piece.strip()] or [text]
