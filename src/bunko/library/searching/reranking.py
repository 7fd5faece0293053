"""Let the reranker of the settings put results in order, within its time; whatever it does, there is an answer."""

from __future__ import annotations

import atexit
import logging
import math
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Event, Thread
from typing import TYPE_CHECKING

from bunko import rerankers
from bunko.errors import BunkoError
from bunko.runtime.timing import timer
from bunko.search.request import RankRequest
from bunko.search.selection import select_reranked
from bunko.settings.schema import SearchSection
from bunko.types import Hit

if TYPE_CHECKING:
    from bunko.protocols import Reranker

_log = logging.getLogger("bunko.library")

_MAX_CACHED = 64  # searches whose scores are kept: the next page of results begins with the same candidates
_EXIT_SECONDS = 5.0


class Reranking:
    """The reranker that the settings name, built at first use; none by default."""

    def __init__(self, settings: SearchSection) -> None:
        self._settings = settings
        self._reranker: Reranker | None = None
        self._cached: OrderedDict[bytes, list[float]] = OrderedDict()

    @property
    def count(self) -> int:
        """Return how many of the first hits are reranked; 0 without a reranker."""
        return self._settings.rerank_count if self._settings.reranker else 0

    def rerank(self, request: RankRequest, candidates: list[Hit], notices: list[str]) -> tuple[list[Hit], str]:
        """Return the hits of a request and the model that put them in order; a failure is a notice."""
        if not request.rerank_count:
            return candidates, ""
        first = candidates[: request.rerank_count]
        scores: list[float] | None = None
        label = ""
        if first:
            texts = [hit.chunk.text_to_index(hit.title) for hit in first]
            try:
                reranker = self._build()
                with timer("rerank", _log):
                    scores = self._scores(reranker, request.query, texts)
                label = reranker.label
            except BunkoError as error:
                # Without a hint, the message may end with a command, which people copy up to the end of the line.
                reason = f"{error.message.rstrip('.')}. {error.hint}" if error.hint else error.message
                notices.append(f"The results were not reranked: {reason}")
            except Exception as error:  # the code of another package, or of a model, may raise anything
                _log.warning("The reranker failed", exc_info=error)
                notices.append(f"The results were not reranked: {type(error).__name__}: {error}")
        return select_reranked(request, candidates, scores), label

    def _build(self) -> Reranker:
        if self._reranker is None:
            self._reranker = rerankers.build(self._settings.reranker or "")
        if reason := self._reranker.unavailable_reason():
            raise BunkoError(reason)
        return self._reranker

    def _scores(self, reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
        key = blake2b("\0".join((reranker.label, query, *texts)).encode("utf-8", "surrogatepass")).digest()
        scores = self._cached.get(key)
        if scores is None:
            scores = _run(reranker, query, texts, self._settings.rerank_seconds)
            if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
                raise BunkoError(f"{reranker.label} returned {len(scores)} scores for {len(texts)} texts")
            self._cached[key] = scores
            while len(self._cached) > _MAX_CACHED:
                self._cached.popitem(last=False)
        return scores


def _run(reranker: Reranker, query: str, texts: Sequence[str], seconds: float) -> list[float]:
    """Return the scores of texts; raise an error if they take too long. The model that was loaded by then is kept."""
    results: list[list[float] | None] = []
    errors: list[BaseException] = []
    is_cancelled = Event()

    def compute() -> None:
        try:
            results.append(reranker.scores(query, texts, is_cancelled=is_cancelled.is_set))
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=compute, name="bunko-rerank", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results or results[0] is None:
        is_cancelled.set()
        # The thread leaves native code before the interpreter ends, which would crash in it.
        atexit.register(thread.join, _EXIT_SECONDS)
        raise BunkoError(f"{reranker.label} took longer than {seconds:g} s; search.rerank_seconds allows more")
    return list(results[0])
