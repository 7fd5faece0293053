"""A service that answers requests in, an embedder out: batches, retries, texts that are too long, answers checked."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from threading import Event, Lock
from time import time
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from bunko.errors import EmbedderError

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

TooLong = Literal["average", "cut"]

# Who asks for more patience than this has no room today; whoever waits should hear it instead.
_LONGEST_WAIT = 120.0
_CROWDED = 3.0  # times the usual wait, where a service says that it is asked too often and not how long to wait
_SHORTEST = 16  # characters; a service that refuses less than that means something else
_LONGEST_MESSAGE = 300
_QUERIES = 256  # remembered; 3 MB at most of the largest vectors
_LONE = re.compile("[\ud800-\udfff]")
# Services have no common code for this. Some use 500, none of them 429.
_SIZE_STATUSES = (400, 413, 422, 500)
_SIZE_WORDS = re.compile(
    r"too (?:large|long|many)|context length|context size|array length|payload size|in one batch"
    r"|batch size|max(?:imum)?\b.{0,20}\btokens|tokens?\b.{0,20}\blimit|exceeds? .{0,30}\b(?:length|limit|size|tokens)",
    re.IGNORECASE,
)


class Failure(Exception):
    """A request that failed, in the words of its service: status 0 means that no whole answer came."""

    def __init__(self, message: str, *, status: int = 0, wait: float | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.wait = message, status, wait

    def is_passing(self) -> bool:
        """Say whether the same request may succeed later."""
        return self.status in (0, 429) or self.status >= 500

    def is_about_size(self) -> bool:
        """Say whether a smaller request may succeed."""
        return self.status == 413 or (self.status in _SIZE_STATUSES and bool(_SIZE_WORDS.search(self.message)))


class Service(Protocol):
    """One provider's way to ask."""

    label: str  # how the name of the embedder begins: everything that changes the vectors, but the size
    size: int | None  # of its vectors; None: not known before it answers
    address: str
    secret: str
    fix: str  # what to set when it does not know who asks

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


@dataclass(slots=True)
class Counts:
    """What an embedder did so far."""

    texts: int = 0
    calls: int = 0
    retries: int = 0
    too_long: int = 0


class Remote:
    """Asks a service for vectors."""

    floor = -1.0

    def __init__(self, service: Service, limits: Limits, *, sleep: Callable[[float], object] | None = None) -> None:
        self._service, self._limits, self._sleep = service, limits, sleep
        self._size = service.size
        self._lock = Lock()
        self._queries: dict[str, Vectors] = {}
        self.counts = Counts()
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

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row for each text; all of them or an error."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        self.counts.texts += len(texts)
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
        rows = self._all(flat, query)
        vectors = []
        at = 0
        for some in pieces:
            vectors.append(_mean(rows[at : at + len(some)], [len(piece) for piece in some]))
            at += len(some)
        if found := self.counts.too_long - before:
            what = "cut" if self._limits.too_long == "cut" else "embedded in parts"
            number = "1 text was" if found == 1 else f"{found} texts were"
            _log.warning("%s longer than %s takes, and %s.", number, self._service.label, what)
        return np.stack(vectors)

    def _pieces(self, text: str) -> list[str]:
        """Return a text in parts that the model takes, or its beginning alone."""
        most = self._limits.tokens
        if most is None or _tokens(text) <= most:
            return [text]
        self._count(too_long=1)
        pieces = _split(text, most)
        return pieces[:1] if self._limits.too_long == "cut" else pieces

    def _all(self, texts: Sequence[str], query: bool) -> list[Vectors]:
        """Return the rows of texts, asked for in batches; the first failure ends the rest."""
        most = self._limits.batch
        batches = [texts[at : at + most] for at in range(0, len(texts), most)]
        stop = Event()
        if len(batches) == 1:
            return self._answer(batches[0], query, stop)
        with ThreadPoolExecutor(min(self._limits.parallel, len(batches)), "embed") as pool:
            try:
                return [row for rows in pool.map(lambda some: self._answer(some, query, stop), batches) for row in rows]
            except BaseException:
                # Nobody goes on to wait or to pay for what is thrown away.
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

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
            pieces = _cut(text, -(-len(text) // number))
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
            return _mean(rows, [len(piece) for piece in pieces])

    def _patient(self, texts: Sequence[str], query: bool, stop: Event) -> list[Sequence[float]] | Failure:
        """Ask, and ask again later where that may help; return the last failure where it did not."""
        limits = self._limits
        for attempt in range(limits.retries + 1):
            if stop.is_set():
                return Failure("stopped, because another request failed")
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
        # Away from its traceback and its cause: those may hold a key.
        return Failure(failure.message, status=failure.status, wait=failure.wait)

    def _checked(self, found: list[Sequence[float]], wanted: int) -> list[Vectors]:
        """Return rows of unit length, all of one size, as many as there were texts."""
        label = self._service.label
        nothing = "Nothing of this answer was stored."
        if len(found) != wanted:
            raise EmbedderError(
                f"{label} returned {len(found)} vectors for {wanted} texts",
                hint=f"{nothing} Check that {_without_user(self._service.address)} serves an embedding model.",
            )
        rows = []
        for values in found:
            row = np.asarray(values, np.float32)
            with self._lock:
                size = self._size = self._size or len(row)
            if row.shape != (size,) or not size:
                raise EmbedderError(
                    f"{label} returned a vector of {len(row)} numbers instead of {size}",
                    hint=f"{nothing} Check that the model and the dimension in the settings are what it serves.",
                )
            length = float(np.linalg.norm(row.astype(np.float64)))
            if not (np.isfinite(length) and length):
                raise EmbedderError(
                    f"{label} returned a vector that points nowhere", hint=f"{nothing} Try again, or another model."
                )
            rows.append((row / length).astype(np.float32))
        return rows

    def _error(self, failure: Failure) -> EmbedderError:
        service, status, address = self._service, failure.status, _without_user(self._service.address)
        said = " ".join(failure.message.split())
        if service.secret:
            said = said.replace(service.secret, "********")
        said = said[:_LONGEST_MESSAGE]
        if not status:
            message, hint = f"{service.label} did not answer: {said}", f"Check that {address} is up."
        elif status in (401, 403):
            message, hint = f"{service.label} does not let us in ({status}): {said}", service.fix
        elif status == 402:
            message, hint = f"{service.label} wants to be paid (402): {said}", "Check the credit of the account."
        elif status == 429:
            until = f" in {failure.wait:.0f} s" if failure.wait else " later"
            message, hint = f"{service.label} is asked too often (429): {said}", f"Run the command again{until}."
        else:
            message = f"{service.label} refused ({status}): {said}"
            hint = f"Check the model in the settings, and that {address} serves it."
        if failure.is_passing():
            hint += " What was stored stays; the next import goes on from there."
        return EmbedderError(message, hint=hint)

    def _count(self, *, calls: int = 0, retries: int = 0, too_long: int = 0) -> None:
        with self._lock:
            self.counts.calls += calls
            self.counts.retries += retries
            self.counts.too_long += too_long


def retry_after(value: str | None) -> float | None:
    """Return how many seconds a Retry-After header asks for: it holds a number or a date."""
    if not value:
        return None
    try:
        return max(float(value), 0.0) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def missing(package: str, extra: str) -> EmbedderError:
    """Make the error for a package that comes with an extra."""
    return EmbedderError(
        f"The package {package} is not installed", hint=f'Install it with: pip install "bunko[{extra}]"'
    )


def _without_user(address: str) -> str:
    """Return an address without the name, the password and the parameters that may be in it."""
    return re.sub(r"//[^/@]*@", "//", address).partition("?")[0]


def _mean(rows: Sequence[Vectors], weights: Sequence[int]) -> Vectors:
    if len(rows) == 1:
        return rows[0]
    total = np.average(np.stack(rows), axis=0, weights=weights)
    length = np.linalg.norm(total)
    # Parts that point in opposite ways cancel out; the first says best what a text is about.
    mean: Vectors = (total / length).astype(np.float32) if length else rows[0]
    return mean


def _tokens(text: str) -> int:
    """Guess high how many tokens a text has: a letter of Latin text is a third of one, any other character is one."""
    plain = len(text.encode("ascii", "ignore"))
    return len(text) - plain + -(-plain // 3)


def _split(text: str, tokens: int) -> list[str]:
    """Return a text in as few parts of about one size as have so many tokens at most."""
    number = -(-_tokens(text) // tokens)
    while True:
        pieces = _cut(text, -(-len(text) // number))
        if all(_tokens(piece) <= tokens for piece in pieces) or number >= len(text):
            return pieces
        number += 1


def _cut(text: str, most: int) -> list[str]:
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
