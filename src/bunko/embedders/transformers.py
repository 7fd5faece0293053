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

from bunko.embedders.checkpoint import Checkpoint, ModelLocation, has_weights
from bunko.embedders.long_texts import LongTextPolicy, cut_text, mean_vector
from bunko.embedders.query_cache import QueryCache
from bunko.embedders.remote import missing_package_error, missing_package_message
from bunko.embedders.torch_model import TRUST_HINT, Device, LoadedModel, release_memory, untrusted_code_message
from bunko.errors import EmbedderError
from bunko.protocols import EmbedderStats
from bunko.text.subwords import replace_surrogates

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

PLAMO = "pfnet/plamo-embedding-1b"
_PACKAGES = ("torch", "transformers", "psutil")
_BATCH_SIZE = 32  # texts handed over at once: what is embedded is stored so often
# Where memory is scarce, a model is let go this soon after its last use, in seconds: an import is not over between two
# batches, and loading takes longer than that.
_LOW_MEMORY_IDLE_SECONDS = 5.0
_MEMORY_CHECK_SECONDS = 30.0  # seconds between two looks at the memory while a model is idle


class Transformers:
    """One model, whether it is in memory or not."""

    batch_size = _BATCH_SIZE
    noise_floor = -1.0
    is_remote = False

    def __init__(
        self,
        model: str,
        *,
        device: Device,
        device_batch: int | None,
        max_tokens: int | None,
        too_long: LongTextPolicy,
        trust_remote_code: bool,
        idle_seconds: float,
        memory_threshold: float,
        low_memory_idle: float,
    ) -> None:
        self._location = ModelLocation(model)
        self._device, self._device_batch, self._trust_remote_code = device, device_batch, trust_remote_code
        self._max_tokens, self._too_long = max_tokens, too_long
        self._idle_seconds, self._memory_threshold, self._low_memory_idle = (
            idle_seconds,
            memory_threshold,
            low_memory_idle,
        )
        self._lock = RLock()  # held while texts are embedded, and while the model comes or goes
        self._cached_checkpoint: Checkpoint | None = None
        self._size: int | None = None
        self._loaded_model: LoadedModel | None = None
        self._load_count = 0  # how often it was loaded
        self._last_used = 0.0
        self._wake = Event()
        self._query_cache = QueryCache()
        self.stats = EmbedderStats()

    def __repr__(self) -> str:
        return f"Transformers({self.label})"

    @property
    def label(self) -> str:
        """Return the provider and the model."""
        return f"transformers:{self._location.label}"

    @property
    def size(self) -> int:
        """Return how many numbers a vector has; a model whose files do not say it is loaded."""
        with self._lock:
            self._size = self._size or self._checkpoint().size or len(self._embed(["size"], query=False)[0])
            return self._size

    @property
    def name(self) -> str:
        """Return what the vectors depend on."""
        about = self._checkpoint()
        code = ":code" if about.has_code and self._trust_remote_code else ""
        limit = f":{self._too_long}-{self._token_limit()}" if self._token_limit() else ""
        return f"{self.label}:{self.size}{limit}{code}:{about.digest()}"

    @property
    def is_loaded(self) -> bool:
        """Say whether the model takes memory now."""
        return self._loaded_model is not None

    def unavailable_reason(self) -> str:
        """Return nothing if the model can be used, else what is missing and how to get it; nothing is loaded."""
        for package in _PACKAGES:
            if sentence := missing_package_message(package, package, "transformers"):
                return sentence
        if absent := self._location.missing_reason():
            return absent
        try:
            about = self._cached_checkpoint or self._location.read_checkpoint(fetch=False)
        except EmbedderError as error:
            return f"{error.message}. {error.hint}"
        if about.has_code and not self._trust_remote_code:
            from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

            if about.model_type not in CONFIG_MAPPING_NAMES:
                return f"{untrusted_code_message(about.label)}. {TRUST_HINT}"
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row for each text; a model that is not on this machine is fetched for documents only."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        with self._lock:
            self.stats.texts += len(texts)
            if not query or len(texts) > 1:
                return self._embed(texts, query=query)
            return self._query_cache.vector(texts[0], lambda: self._embed(texts, query=True))

    def unload(self) -> None:
        """Give the memory of the model back; the next text loads it again."""
        with self._lock:
            if self._loaded_model is None:
                return
            self._loaded_model = None
            self._wake.set()
            release_memory()
        _log.debug("%s is unloaded", self.label)

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        network = self._load_model(fetch=not query)
        try:
            clean = [replace_surrogates(text) or " " for text in texts]
            pieces = self._fit_texts(network, clean, query)
            flat = [piece for some in pieces for piece in some]
            rows = network.vectors(flat, query=query, max_tokens=self._token_limit(), on_call=self._count_call)
        finally:
            self._last_used = monotonic()
            self._wake.set()
        if len(flat) == len(texts):
            return rows
        found, at = [], 0
        for some in pieces:
            found.append(mean_vector(list(rows[at : at + len(some)]), [len(piece) for piece in some]))
            at += len(some)
        return np.stack(found)

    def _fit_texts(self, model: LoadedModel, texts: list[str], query: bool) -> list[list[str]]:
        """Return each text in parts that the model takes, or its beginning alone."""
        most = self._token_limit()
        if most is None:
            return [[text] for text in texts]
        found, long = [], 0
        for text, number in zip(texts, model.token_counts(texts, query=query), strict=True):
            parts = [text]
            if number > most:
                long += 1
                parts = _split_to_fit(model, text, number, most, query)
            found.append(parts[:1] if self._too_long == "cut" else parts)
        if long:
            self.stats.too_long += long
            what = "cut" if self._too_long == "cut" else "embedded in parts"
            texts_were = "1 text was" if long == 1 else f"{long} texts were"
            _log.warning("%s longer than %s takes, and %s.", texts_were, self.label, what)
        return found

    def _load_model(self, *, fetch: bool) -> LoadedModel:
        if self._loaded_model is None:
            for package in _PACKAGES:
                if missing_package_message(package, package, "transformers"):
                    raise missing_package_error(package, "transformers")
            about = self._checkpoint()
            if not has_weights(about.folder):
                if not fetch:
                    raise EmbedderError(
                        f"{self.label} cannot answer questions yet", hint=self._location.missing_reason()
                    )
                _log.warning("Fetching %s. This is done once, and may take long.", about.label)
                self._location.fetch_weights(about.folder)
            if self._location.is_stale(about):
                raise EmbedderError(
                    f"{about.label} is not the model any more that it was before", hint="Run the command again."
                )
            self._loaded_model = LoadedModel(
                about, device=self._device, batch_size=self._device_batch, trust_remote_code=self._trust_remote_code
            )
            self._last_used = monotonic()
            self._load_count += 1
            self._wake = Event()
            given = (weakref.ref(self), self._wake, self._load_count)
            Thread(target=_unload_when_idle, args=given, name="bunko-unload", daemon=True).start()
        return self._loaded_model

    def _checkpoint(self) -> Checkpoint:
        with self._lock:
            if self._cached_checkpoint is None:
                self._cached_checkpoint = self._location.read_checkpoint()
            return self._cached_checkpoint

    def _token_limit(self) -> int | None:
        known = [tokens for tokens in (self._max_tokens, self._checkpoint().max_tokens) if tokens]
        return min(known, default=None)

    def _count_call(self) -> None:
        self.stats.calls += 1

    def _unload_if_idle(self, load_number: int) -> float | None:
        """Let the model go if it is time; return when to look again, None if it is gone."""
        with self._lock:
            if self._loaded_model is None or load_number != self._load_count:
                return None
            patience = self._idle_seconds
            if _memory_in_use() > self._memory_threshold:
                patience = min(self._low_memory_idle, patience)
            left = patience - (monotonic() - self._last_used)
            if left <= 0:
                self.unload()
                return None
            return min(left, _MEMORY_CHECK_SECONDS)


def _unload_when_idle(ref: weakref.ref[Transformers], wake: Event, load_number: int) -> None:
    """Look after one loading of a model until it is gone; an embedder that nobody holds any more goes with it."""
    while (embedder := ref()) is not None:
        rest = embedder._unload_if_idle(load_number)
        del embedder
        if rest is None:
            return
        wake.wait(rest)
        wake.clear()


def _memory_in_use() -> float:
    """Return the share of the machine's memory that is in use."""
    import psutil

    return float(psutil.virtual_memory().percent) / 100


def _split_to_fit(model: LoadedModel, text: str, token_count: int, max_tokens: int, query: bool) -> list[str]:
    """Return a text in parts of so many tokens at most; those that cannot be cut further stay as they are."""
    if token_count <= max_tokens:
        return [text]
    pieces = cut_text(text, max(-(-len(text) // max(-(-token_count // max_tokens), 2)), 1))
    if pieces == [text]:
        return pieces
    counted = zip(pieces, model.token_counts(pieces, query=query), strict=True)
    return [part for piece, own in counted for part in _split_to_fit(model, piece, own, max_tokens, query)]


def build(
    *,
    model: str = PLAMO,
    device: Device = "auto",
    device_batch: int | None = None,
    max_tokens: int | None = None,
    too_long: LongTextPolicy = "average",
    trust: bool = False,
    idle: float = 600.0,
    threshold: float = 0.8,
    pause: float = _LOW_MEMORY_IDLE_SECONDS,
) -> Transformers:
    """Return the embedder; it is let go after `idle` seconds, or `pause` above a share of memory in use."""
    return Transformers(
        model,
        device=device,
        device_batch=device_batch,
        max_tokens=max_tokens,
        too_long=too_long,
        trust_remote_code=trust,
        idle_seconds=idle,
        memory_threshold=threshold,
        low_memory_idle=pause,
    )
