"""Batches of cut documents in, the same with their vectors out: full requests, in flight while the next are cut."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from bunko.embedders import checked, vector_keys
from bunko.errors import BunkoError, EmbedderError
from bunko.protocols import Counts, Embedder, Paid, Store
from bunko.records import Prepared, Spent
from bunko.timing import timer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")

_log = logging.getLogger("bunko.ingest")

# While the answers to one set of requests are read, those to the next are under way.
_IN_FLIGHT = 2
# So many sets are under way or wait for their turn while a batch is written, which takes longer than two of them.
_AHEAD = 3
# Batches that may wait for a request to be full; more would take memory, and their documents are due.
_MOST_WAITING = 32
# Seconds that whoever stops waits for answers that are paid for already; an embedder gives up on them before that.
_GRACE = 5.0


@dataclass(slots=True)
class Embedded(Generic[T]):
    """A batch whose documents have the names of their vectors, and the vectors that were not stored before."""

    batch: T
    put: list[Prepared]
    vectors: dict[bytes, npt.NDArray[np.float32]] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)  # since the batch before, by embedder


def embedded(
    store: Store,
    embedder: Embedder | None,
    batches: Iterable[T],
    prepared: Callable[[T], list[Prepared]],
    *,
    owner: int,
) -> Generator[Embedded[T], None, None]:
    """Return batches in their order, each as soon as its vectors are there; write it before the next is asked for.

    Where that ends early, vectors that came and belong to no batch that was given out are kept for the tool `owner`.
    """
    if embedder is None:
        return (Embedded(batch, prepared(batch)) for batch in batches)
    if embedder.remote:
        return _Behind[T](store, cast(Paid, embedder), owner).run(batches, prepared)
    return _here(store, embedder, batches, prepared)


def with_vectors(
    store: Store, embedder: Embedder | None, prepared: list[Prepared]
) -> tuple[list[Prepared], dict[bytes, npt.NDArray[np.float32]], int]:
    """Give each chunk the name of its vector, and embed the texts whose vectors are not known yet."""
    if embedder is None:
        return prepared, {}, 0
    put, texts = named(embedder, prepared)
    missing = store.missing(texts)
    vectors: dict[bytes, npt.NDArray[np.float32]] = {}
    wanted = [key for key in texts if key in missing]
    for at in range(0, len(wanted), embedder.batch):
        some = wanted[at : at + embedder.batch]
        vectors.update(zip(some, _made(embedder, [texts[key] for key in some]), strict=True))
    return put, vectors, len(vectors)


def named(embedder: Embedder, prepared: Sequence[Prepared]) -> tuple[list[Prepared], dict[bytes, str]]:
    """Give each chunk the name of its vector; return the texts by these names."""
    texts: dict[bytes, str] = {}
    put = []
    for one in prepared:
        own = [chunk.in_context(one.document.text.title) for chunk in one.chunks]
        keys = vector_keys(embedder, own)
        texts.update(zip(keys, own, strict=True))
        put.append(replace(one, vector_keys=keys))
    return put, texts


def paid(embedder: Embedder | None) -> Paid | None:
    """Return an embedder as one that costs, if it is."""
    return cast(Paid, embedder) if embedder is not None and embedder.remote else None


class TooLong:
    """How many texts were longer than a model takes since this was made, where that is known."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._label = embedder.label if embedder else ""
        counts = getattr(embedder, "counts", None)
        self._counts = counts if isinstance(counts, Counts) else Counts()
        self._before = self._counts.too_long

    def told(self) -> list[str]:
        """Return what a user should know about it; often nothing."""
        number = self._counts.too_long - self._before
        if not number:
            return []
        texts = "1 text is" if number == 1 else f"{number} texts are"
        return [f"{texts} longer than {self._label} takes; embedding.too_long says what becomes of such."]


def _made(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    provider = embedder.label.partition(":")[0]
    with timer(f"{provider}_embed", _log, indent=1, detail=f"batch_size={len(texts)}"):
        return checked(embedder, texts)


class _Account:
    """What was spent and saved since somebody last asked."""

    def __init__(self, embedder: Embedder, request: int) -> None:
        self._name, self._request = embedder.name, request
        self.texts = self.known = self.calls = 0
        self._told = Spent()

    def since(self) -> dict[str, Spent]:
        """Return what came to be spent since the last time; nothing where nothing did."""
        size, told = self._request, self._told
        without = -(-(self.texts + self.known) // size)  # calls that would have been made if nothing had been stored
        self._told = Spent(self.texts, self.calls, self.known, without - -(-self.texts // size))
        new = Spent(
            self._told.texts - told.texts,
            self._told.calls - told.calls,
            self._told.saved_texts - told.saved_texts,
            self._told.saved_calls - told.saved_calls,
        )
        return {} if new == Spent() else {self._name: new}


def _here(
    store: Store, embedder: Embedder, batches: Iterable[T], prepared: Callable[[T], list[Prepared]]
) -> Generator[Embedded[T], None, None]:
    """Embed in this process, one batch after the other."""
    account = _Account(embedder, embedder.batch)
    for batch in batches:
        put, vectors, number = with_vectors(store, embedder, prepared(batch))
        account.texts += number
        account.known += len({key for one in put for key in one.vector_keys}) - number
        account.calls += -(-number // embedder.batch)
        yield Embedded(batch, put, vectors, account.since())


@dataclass(slots=True)
class _Waiting(Generic[T]):
    """A batch and those of its vectors that have to come yet."""

    batch: T
    put: list[Prepared]
    keys: list[bytes]


class _Behind(Generic[T]):
    """Asks a service while others cut: texts of several batches share requests, so that these are full."""

    def __init__(self, store: Store, embedder: Paid, owner: int) -> None:
        self._store, self._embedder, self._owner = store, embedder, owner
        self._account = _Account(embedder, embedder.request)
        # A model of unknown size was asked for it before there was an import to account for that.
        self._calls = embedder.counts.calls - embedder.counts.sizing
        embedder.counts.sizing = 0
        self._waiting: deque[_Waiting[T]] = deque()
        self._unsent: dict[bytes, str] = {}
        self._sent: deque[tuple[list[bytes], Future[npt.NDArray[np.float32]]]] = deque()
        self._asked: set[bytes] = set()  # all that were sent, or will be
        self._given: set[bytes] = set()  # with batches that were given out, and are stored by now
        self._came: dict[bytes, npt.NDArray[np.float32]] = {}
        self._error: EmbedderError | None = None
        self._turns, self._over = Semaphore(_IN_FLIGHT), Event()

    def run(self, batches: Iterable[T], prepared: Callable[[T], list[Prepared]]) -> Generator[Embedded[T], None, None]:
        """Return batches in their order, each as soon as its vectors are there."""
        try:
            for batch in batches:
                self._add(batch, prepared(batch))
                while len(self._unsent) >= self._embedder.batch:
                    self._send()
                if len(self._waiting) <= _MOST_WAITING:
                    self._collect(leave=_AHEAD)
                else:
                    if self._unsent and not self._sent:
                        self._send()
                    self._collect(leave=0)
                if self._error is not None:
                    break
                yield from self._ready()
            while self._unsent and self._error is None:
                self._send()
            while self._sent and self._error is None:
                self._collect(leave=len(self._sent) - 1)
                yield from self._ready()
            if self._error is not None:
                self._end()
                yield from self._ready()
                raise self._error
        finally:
            self._end()
            self._keep()

    def _add(self, batch: T, prepared: list[Prepared]) -> None:
        put, texts = named(self._embedder, prepared)
        missing = self._store.missing(texts)
        wanted = [key for key in texts if key in missing]
        new = [key for key in wanted if key not in self._asked]
        self._waiting.append(_Waiting(batch, put, wanted))
        self._unsent |= {key: texts[key] for key in new}
        self._asked.update(new)
        self._account.known += len(texts) - len(new)

    def _send(self) -> None:
        keys = list(self._unsent)[: self._embedder.batch]
        texts = [self._unsent.pop(key) for key in keys]
        future: Future[npt.NDArray[np.float32]] = Future()
        # Noted first: Ctrl-C may come while the thread starts, and what it asks for is not to be forgotten. A process
        # that ends does not wait for such a thread.
        self._sent.append((keys, future))
        Thread(target=self._ask, args=(texts, future), name="embedding", daemon=True).start()

    def _ask(self, texts: list[str], future: Future[npt.NDArray[np.float32]]) -> None:
        with self._turns:
            if self._over.is_set():
                future.cancel()
                future.set_running_or_notify_cancel()  # only then do those who wait hear of it
                return
            try:
                future.set_result(_made(self._embedder, texts))
            except BaseException as error:  # whoever waits has to hear of it
                future.set_exception(error)

    def _collect(self, *, leave: int) -> None:
        """Take what has come; wait until no more than so many calls are under way."""
        while self._sent and (len(self._sent) > leave or self._sent[0][1].done()) and self._error is None:
            keys, future = self._sent[0]
            try:
                vectors = future.result()
            except EmbedderError as error:
                self._error = error
                self._take({keys[place]: vector for place, vector in error.came.items()})
            else:
                self._take(dict(zip(keys, vectors, strict=True)))
            self._sent.popleft()

    def _take(self, vectors: dict[bytes, npt.NDArray[np.float32]]) -> None:
        self._came |= vectors
        self._account.texts += len(vectors)

    def _ready(self) -> Iterator[Embedded[T]]:
        while self._waiting and all(key in self._came or key in self._given for key in self._waiting[0].keys):
            one = self._waiting[0]
            vectors = {key: self._came[key] for key in one.keys if key in self._came}
            yield Embedded(one.batch, one.put, vectors, self._spent())
            # Whoever comes back for the next has written this one.
            self._waiting.popleft()
            self._given.update(vectors)
            for key in vectors:
                del self._came[key]

    def _spent(self) -> dict[str, Spent]:
        self._account.calls = self._embedder.counts.calls - self._calls
        return self._account.since()

    def _end(self) -> None:
        """Ask for nothing more, and take what is paid for already, if it comes soon."""
        self._over.set()
        if not self._sent:
            return
        self._embedder.cancel()
        wait([future for _, future in self._sent], timeout=_GRACE)
        while self._sent:
            keys, future = self._sent.popleft()
            if not future.done() or future.cancelled():
                continue
            error = future.exception()
            if error is None:
                self._take(dict(zip(keys, future.result(), strict=True)))
            elif isinstance(error, EmbedderError):
                self._take({keys[place]: vector for place, vector in error.came.items()})

    def _keep(self) -> None:
        spent = self._spent()
        if not (self._came or spent):
            return
        try:
            self._store.keep(self._owner, self._embedder.name, self._came, spent=spent)
        except BunkoError as error:  # why it ends is told already, or was as bad
            _log.warning("%d vectors that came could not be kept: %s", len(self._came), error.message)
