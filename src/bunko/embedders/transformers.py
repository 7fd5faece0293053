"""Runs a model on this machine, through transformers and torch: PLaMo, or any other that makes vectors of texts.

It is loaded at first use and let go when nobody has used it for a while, or where memory is scarce.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from bunko.embedders.checkpoint import Checkpoint, Place, has_weights
from bunko.embedders.long_texts import TooLong, cut, mean
from bunko.embedders.query_cache import Questions
from bunko.embedders.remote import lacking, missing
from bunko.embedders.torch_model import TRUST, Device, Network, give_back, needs_trust
from bunko.errors import EmbedderError
from bunko.protocols import Counts
from bunko.text.subwords import writable

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

PLAMO = "pfnet/plamo-embedding-1b"
_PACKAGES = ("torch", "transformers", "psutil")
_BATCH = 32  # texts handed over at once: what is embedded is stored so often
# Where memory is scarce, a model is let go this soon after its last use, in seconds: an import is not over between two
# batches, and loading takes longer than that.
_PAUSE = 5.0
_LOOK = 30.0  # seconds between two looks at the memory while a model is idle


class Transformers:
    """One model, whether it is in memory or not."""

    batch = _BATCH
    floor = -1.0
    remote = False

    def __init__(
        self,
        model: str,
        *,
        device: Device,
        device_batch: int | None,
        max_tokens: int | None,
        too_long: TooLong,
        trust: bool,
        idle: float,
        threshold: float,
        pause: float,
    ) -> None:
        self._place = Place(model)
        self._device, self._device_batch, self._trust = device, device_batch, trust
        self._max_tokens, self._too_long = max_tokens, too_long
        self._idle, self._threshold, self._pause = idle, threshold, pause
        self._lock = RLock()  # held while texts are embedded, and while the model comes or goes
        self._read: Checkpoint | None = None
        self._size: int | None = None
        self._network: Network | None = None
        self._turn = 0  # how often it was loaded
        self._used = 0.0
        self._wake = Event()
        self._questions = Questions()
        self.counts = Counts()

    def __repr__(self) -> str:
        return f"Transformers({self.label})"

    @property
    def label(self) -> str:
        """Return the provider and the model."""
        return f"transformers:{self._place.label}"

    @property
    def size(self) -> int:
        """Return how many numbers a vector has; a model whose files do not say it is loaded."""
        with self._lock:
            self._size = self._size or self._about().size or len(self._embed(["size"], query=False)[0])
            return self._size

    @property
    def name(self) -> str:
        """Return what the vectors depend on."""
        about = self._about()
        code = ":code" if about.has_code and self._trust else ""
        limit = f":{self._too_long}-{self._most()}" if self._most() else ""
        return f"{self.label}:{self.size}{limit}{code}:{about.digest()}"

    @property
    def is_loaded(self) -> bool:
        """Say whether the model takes memory now."""
        return self._network is not None

    def available(self) -> str:
        """Return nothing if the model can be used, else what is missing and how to get it; nothing is loaded."""
        for package in _PACKAGES:
            if sentence := lacking(package, package, "transformers"):
                return sentence
        if absent := self._place.absent():
            return absent
        try:
            about = self._read or self._place.read(fetch=False)
        except EmbedderError as error:
            return f"{error.message}. {error.hint}"
        if about.has_code and not self._trust:
            from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

            if about.kind not in CONFIG_MAPPING_NAMES:
                return f"{needs_trust(about.label)}. {TRUST}"
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row for each text; a model that is not on this machine is fetched for documents only."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        with self._lock:
            self.counts.texts += len(texts)
            if not query or len(texts) > 1:
                return self._embed(texts, query=query)
            return self._questions.vector(texts[0], lambda: self._embed(texts, query=True))

    def unload(self) -> None:
        """Give the memory of the model back; the next text loads it again."""
        with self._lock:
            if self._network is None:
                return
            self._network = None
            self._wake.set()
            give_back()
        _log.debug("%s is unloaded", self.label)

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        network = self._loaded(fetch=not query)
        try:
            clean = [writable(text) or " " for text in texts]
            pieces = self._pieces(network, clean, query)
            flat = [piece for some in pieces for piece in some]
            rows = network.vectors(flat, query=query, most=self._most(), called=self._called)
        finally:
            self._used = monotonic()
            self._wake.set()
        if len(flat) == len(texts):
            return rows
        found, at = [], 0
        for some in pieces:
            found.append(mean(list(rows[at : at + len(some)]), [len(piece) for piece in some]))
            at += len(some)
        return np.stack(found)

    def _pieces(self, network: Network, texts: list[str], query: bool) -> list[list[str]]:
        """Return each text in parts that the model takes, or its beginning alone."""
        most = self._most()
        if most is None:
            return [[text] for text in texts]
        found, long = [], 0
        for text, number in zip(texts, network.counts(texts, query=query), strict=True):
            parts = [text]
            if number > most:
                long += 1
                parts = _fitting(network, text, number, most, query)
            found.append(parts[:1] if self._too_long == "cut" else parts)
        if long:
            self.counts.too_long += long
            what = "cut" if self._too_long == "cut" else "embedded in parts"
            texts_were = "1 text was" if long == 1 else f"{long} texts were"
            _log.warning("%s longer than %s takes, and %s.", texts_were, self.label, what)
        return found

    def _loaded(self, *, fetch: bool) -> Network:
        if self._network is None:
            for package in _PACKAGES:
                if lacking(package, package, "transformers"):
                    raise missing(package, "transformers")
            about = self._about()
            if not has_weights(about.folder):
                if not fetch:
                    raise EmbedderError(f"{self.label} cannot answer questions yet", hint=self._place.absent())
                _log.warning("Fetching %s. This is done once, and may take long.", about.label)
                self._place.fetch(about.folder)
            if self._place.has_changed(about):
                raise EmbedderError(
                    f"{about.label} is not the model any more that it was before", hint="Run the command again."
                )
            self._network = Network(about, device=self._device, batch=self._device_batch, trust=self._trust)
            self._used = monotonic()
            self._turn += 1
            self._wake = Event()
            given = (weakref.ref(self), self._wake, self._turn)
            Thread(target=_watch, args=given, name="bunko-unload", daemon=True).start()
        return self._network

    def _about(self) -> Checkpoint:
        with self._lock:
            if self._read is None:
                self._read = self._place.read()
            return self._read

    def _most(self) -> int | None:
        known = [tokens for tokens in (self._max_tokens, self._about().tokens) if tokens]
        return min(known, default=None)

    def _called(self) -> None:
        self.counts.calls += 1

    def _rest(self, turn: int) -> float | None:
        """Let the model go if it is time; return when to look again, None if it is gone."""
        with self._lock:
            if self._network is None or turn != self._turn:
                return None
            patience = self._idle
            if _memory_in_use() > self._threshold:
                patience = min(self._pause, patience)
            left = patience - (monotonic() - self._used)
            if left <= 0:
                self.unload()
                return None
            return min(left, _LOOK)


def _watch(ref: weakref.ref[Transformers], wake: Event, turn: int) -> None:
    """Look after one loading of a model until it is gone; an embedder that nobody holds any more goes with it."""
    while (embedder := ref()) is not None:
        rest = embedder._rest(turn)
        del embedder
        if rest is None:
            return
        wake.wait(rest)
        wake.clear()


def _memory_in_use() -> float:
    """Return the share of the machine's memory that is in use."""
    import psutil

    return float(psutil.virtual_memory().percent) / 100


def _fitting(network: Network, text: str, number: int, most: int, query: bool) -> list[str]:
    """Return a text in parts of so many tokens at most; those that cannot be cut further stay as they are."""
    if number <= most:
        return [text]
    pieces = cut(text, max(-(-len(text) // max(-(-number // most), 2)), 1))
    if pieces == [text]:
        return pieces
    counted = zip(pieces, network.counts(pieces, query=query), strict=True)
    return [part for piece, own in counted for part in _fitting(network, piece, own, most, query)]


def build(
    *,
    model: str = PLAMO,
    device: Device = "auto",
    device_batch: int | None = None,
    max_tokens: int | None = None,
    too_long: TooLong = "average",
    trust: bool = False,
    idle: float = 600.0,
    threshold: float = 0.8,
    pause: float = _PAUSE,
) -> Transformers:
    """Return the embedder; it is let go after `idle` seconds, or `pause` above a share of memory in use."""
    return Transformers(
        model,
        device=device,
        device_batch=device_batch,
        max_tokens=max_tokens,
        too_long=too_long,
        trust=trust,
        idle=idle,
        threshold=threshold,
        pause=pause,
    )
