"""What a search index must offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.types.records import (
    IndexState,
    NearestRows,
    QueryTerm,
    Ranking,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords


class DamagedIndex(Exception):
    """What an index has kept may be damaged, or not what the library has: `Index.repair` checks that, and mends it."""


class IndexView(Protocol):
    """One immutable state of an index over some tools, so that a search reads the same rows from start to end.

    A row is a number that means something only to its view. `where` holds the ids of the documents that a method may
    return rows of, None for all; statistics such as term frequencies are over all rows either way. Equal scores are
    sorted by `tie_order`.
    """

    generation: int  # of the store, which the view has caught up with
    size: int  # number of rows
    notices: Sequence[str]  # for the user, such as that a server is away; a method may add one

    def rows(self) -> list[int]:
        """Return all rows, in the order they were written."""

    def chunk_ids(self, rows: Sequence[int]) -> list[int]:
        """Return the chunk ids of rows."""

    def tie_order(self, rows: Sequence[int]) -> list[int]:
        """Return the sort keys of rows among equal scores, which do not depend on how the index was built."""

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25; n-grams, by presence, only add to the scores of rows that words found."""

    def max_score(self, terms: Sequence[QueryTerm], *, k1: float) -> float:
        """Return an upper bound of a row's score by words: the score of a row with unlimited occurrences of each."""

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""

    def rank_key_ranges(
        self, ranges: Sequence[tuple[int, int]], k: int, *, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with n-grams in the most key ranges (start, end); ranges rarer in `where` count more."""

    def matches(self, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
        """Return for each row which of the terms it contains."""

    def term_scores(self, terms: Sequence[QueryTerm], rows: Sequence[int], *, k1: float, b: float) -> list[list[float]]:
        """Return for each row what each of the terms alone adds to its score by `rank`, without regard to groups."""

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine, without the rows of tools that have no vectors."""

    def cosines(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """Return the cosines of rows; 0 without a vector."""

    def sentences(self, rows: Sequence[int]) -> list[SentenceSubwords | str | None]:
        """Return the subwords of each row's sentences, None without a vector.

        Of a row that was imported before they were kept, its text.
        """


@runtime_checkable
class ApproximateView(Protocol):
    """A view whose `nearest` may miss rows where there are very many."""

    def sampled_recall(self, k: int, sample_count: int) -> tuple[int, int] | None:
        """Search with vectors of some rows, and return how many of their k nearest rows were found, and of how many.

        None if `nearest` is exact.
        """


class Index(Protocol):
    """Answers queries over the tools of a store; everything in it is derived from the store and can be rebuilt.

    A server that is away costs quality, never an answer: `view` and `sync` tell of it in the notices of their view.
    The other methods raise `IndexFailure`.
    """

    kind: str  # one of `indexes.KINDS`
    location: str  # of its server or files, for messages; empty if it is part of the library

    def view(self, tool_ids: Sequence[int], *, without_vectors: Sequence[int] = ()) -> IndexView:
        """Return the state of some tools that matches the store; call it inside the store's `read_transaction`.

        The vectors of the tools `without_vectors`, which come from another embedder, are left out.
        """

    def sync(self, tool_id: int, observer: Observer = NO_OBSERVER) -> IndexView:
        """Bring a tool up to date with the store, save what the index keeps of it, and return its state.

        If it is interrupted, the next one goes on. What copies chunks elsewhere reports its steps to the observer.
        Call it while no other process can change the tool, as with the lock of an import.
        """

    def unsaved_tools(self) -> list[int]:
        """Return the tools that this process had to build, so that the next one must too unless `sync` saves them."""

    def state(self, tool_id: int) -> IndexState:
        """Return how far the index has followed the store, and why searches do not use it if they do not."""

    def storage_bytes(self, tool_id: int | None = None) -> int:
        """Return how many bytes the index keeps outside the store, of a tool or in all."""

    def check(self, tool_id: int) -> str:
        """Return the problem of the index of a tool, or an empty string."""

    def repair(self, tool_id: int) -> bool:
        """Rebuild a tool if what the index keeps of it is damaged; return whether it was."""

    def drop(self, tool_id: int, *, copy_only: bool = False) -> None:
        """Delete the index of a tool; it is rebuilt if the tool is searched again.

        `copy_only`: leave in the library what another index uses too.
        """

    def close(self) -> None:
        """Close connections and files."""
