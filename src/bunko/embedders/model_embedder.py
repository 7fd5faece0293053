"""What embedders with a model on this machine share: its vectors by text, its limit of tokens, and its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING

from bunko.embedders.query_cache import QueryCache

if TYPE_CHECKING:
    from bunko.embedders.checkpoint import Checkpoint
    from bunko.embedders.long_texts import LongTextPolicy
    from bunko.types import Vectors

_BATCH_SIZE = 32  # texts per call: the vectors are stored after each call


class ModelEmbedder(ABC):
    """An embedder whose model is in memory or not; a subclass loads it and runs it."""

    batch_size = _BATCH_SIZE
    noise_floor = -1.0
    is_remote = False
    is_large = True  # one copy uses all cores of a machine, or a GPU

    def __init__(self, *, max_tokens: int | None, too_long: LongTextPolicy) -> None:
        from bunko.protocols import EmbedderStats

        self._max_tokens, self._too_long = max_tokens, too_long
        self._lock = RLock()  # held while texts are embedded, and while the model is loaded or unloaded
        self._cached_checkpoint: Checkpoint | None = None
        self._size: int | None = None
        self._query_cache = QueryCache()
        self.stats = EmbedderStats()

    @property
    @abstractmethod
    def label(self) -> str:
        """Return the provider and the model."""

    @abstractmethod
    def _read_checkpoint(self) -> Checkpoint:
        """Read the configuration of the model."""

    @abstractmethod
    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        """Return one unit row per text, of which there is at least one."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label})"

    @property
    def size(self) -> int:
        """Return the size of a vector; the model is loaded if its files do not give the size."""
        with self._lock:
            self._size = self._size or self._checkpoint().size or len(self._embed(["size"], query=False)[0])
            return self._size

    @property
    def name(self) -> str:
        """Return a name that identifies everything the vectors depend on."""
        limit = f":{self._too_long}-{self._token_limit()}" if self._token_limit() else ""
        return f"{self.label}:{self.size}{limit}{self._name_suffix()}:{self._checkpoint().digest()}"

    def _name_suffix(self) -> str:
        """Return what else the vectors depend on, after a colon."""
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row per text; only documents may download a missing model."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.size), np.float32)
        with self._lock:
            self.stats.texts += len(texts)
            if not query or len(texts) > 1:
                return self._embed(texts, query=query)
            return self._query_cache.vector(texts[0], lambda: self._embed(texts, query=True))

    def _checkpoint(self) -> Checkpoint:
        with self._lock:
            if self._cached_checkpoint is None:
                self._cached_checkpoint = self._read_checkpoint()
            return self._cached_checkpoint

    def _token_limit(self) -> int | None:
        limits = [limit for limit in (self._max_tokens, self._checkpoint().max_tokens) if limit]
        return min(limits, default=None)

    def _embed_in_parts(
        self,
        texts: Sequence[str],
        count_tokens: Callable[[Sequence[str]], Sequence[int]],
        vectors_of: Callable[[list[str]], Vectors],
    ) -> Vectors:
        """Return one row per text: of those too long for the model, the mean of their parts, or their beginning."""
        from bunko.embedders.long_texts import join_parts

        parts_by_text = self._fit_texts(texts, count_tokens)
        return join_parts(vectors_of([part for parts in parts_by_text for part in parts]), parts_by_text)

    def _fit_texts(
        self, texts: Sequence[str], count_tokens: Callable[[Sequence[str]], Sequence[int]]
    ) -> list[list[str]]:
        """Split each text into parts that fit the model, or return only its beginning."""
        from bunko.embedders.long_texts import split_to_fit

        max_tokens = self._token_limit()
        if max_tokens is None:
            return [[text] for text in texts]
        counts = count_tokens(texts)
        self.stats.too_long += sum(count > max_tokens for count in counts)
        parts_by_text = [
            split_to_fit(text, count, max_tokens, count_tokens) for text, count in zip(texts, counts, strict=True)
        ]
        return [parts[:1] for parts in parts_by_text] if self._too_long == "cut" else parts_by_text
