"""What chunkers, embedders, rerankers and sources must offer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bunko.types import Chunk, Fingerprint, NearWord, Problem, SourceEntry, Text
from bunko.types.entry_table import EntryTable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords, Vectors
    from bunko.types.records import SentenceMatch


class Chunker(Protocol):
    """Splits a text into chunks."""

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order; together they contain every non-blank character of the body."""


class Embedder(Protocol):
    """Computes unit vectors for texts."""

    @property
    def name(self) -> str:
        """Return an identifier of everything that affects the vectors, including their size.

        A remote embedder may have to make a request to learn its size.
        """

    @property
    def size(self) -> int:
        """Return the dimension of the vectors."""

    @property
    def label(self) -> str:
        """Return the provider and the model, without loading anything or making a request."""

    @property
    def noise_floor(self) -> float:
        """Return the cosine below which texts are unrelated, or -1 if unknown."""

    @property
    def batch_size(self) -> int:
        """Return the preferred number of texts per call."""

    @property
    def is_remote(self) -> bool:
        """Return whether texts are sent to a service, which takes no local CPU time and may cost money."""

    def unavailable_reason(self) -> str:
        """Return why the embedder cannot be used and how to fix that, or an empty string.

        Nothing is loaded, and no request that costs money is made.
        """

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one vector per text."""


@runtime_checkable
class SentenceEmbedder(Embedder, Protocol):
    """An embedder that splits texts into sentences too, at no extra cost."""

    def embed_sentences(self, texts: Sequence[str]) -> tuple[Vectors, list[SentenceSubwords]]:
        """Return one vector per text, the same as `embed` returns, and the subwords of the sentences of each text."""


@runtime_checkable
class SentenceReader(SentenceEmbedder, Protocol):
    """An embedder that compares a query with the sentences of texts."""

    def compare(
        self, query: str, vector: npt.NDArray[np.float32], texts: Sequence[SentenceSubwords | str]
    ) -> tuple[list[SentenceMatch], float]:
        """Compare a query with the sentences of texts, which are split here where only the texts are known.

        The number says how far the nearness of words can be trusted: 1 for a short query, 0 for a long one.
        """

    def near_words(self, query: str, text: str) -> list[NearWord]:
        """Return the words of a query that have other, near ones in the sentence of a text that counts for it."""


@dataclass(slots=True)
class EmbedderStats:
    """Counters of a remote embedder."""

    texts: int = 0
    calls: int = 0
    retries: int = 0
    too_long: int = 0  # texts that were embedded in parts or truncated
    sizing_calls: int = 0  # requests made only to learn the size, until an import counts them


class RemoteEmbedder(Embedder, Protocol):
    """An embedder that sends texts to a service."""

    stats: EmbedderStats

    @property
    def identity(self) -> str:
        """Return a secret text that differs for every model, address and key."""

    @property
    def is_size_known(self) -> bool:
        """Return whether `size` and `name` need no request."""

    def setup_problem(self) -> str:
        """Return the missing package or key and how to get it, or an empty string; asks no service."""

    @property
    def request_size(self) -> int:
        """Return the maximum number of texts per request."""

    def restore_size(self, name: str) -> None:
        """Set the size from an earlier `name`, to save the request for a model of unknown size."""

    def with_retries(self, retries: int) -> RemoteEmbedder:
        """Return the same embedder with another number of retries."""

    def cancel(self) -> None:
        """Make pending requests return soon; later requests are not affected."""


class Reranker(Protocol):
    """Judges how well texts answer a query, reading both together."""

    @property
    def label(self) -> str:
        """Return the name of the model, without loading anything."""

    def unavailable_reason(self) -> str:
        """Return why the reranker cannot be used and how to fix that, or an empty string; loads nothing."""

    def scores(self, query: str, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = ...) -> list[float] | None:
        """Return one score per text, the higher the better; None if it was cancelled meanwhile.

        It is called in a thread of its own. After `is_cancelled` returns true, the scores are not waited for.
        """


@dataclass(slots=True)
class Scan:
    """The differences between a source and its stored fingerprints."""

    added: list[SourceEntry] | EntryTable[SourceEntry] = field(default_factory=list)
    updated: list[SourceEntry] | EntryTable[SourceEntry] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)  # new uri → old uri; the new one is in `added` too
    # Same content, new timestamp or lines; stored last.
    touched: list[SourceEntry] | EntryTable[SourceEntry] = field(default_factory=list)
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    skipped_folders: list[str] = field(default_factory=list)  # absolute paths of folders excluded by their names
    # Returns the given entries in order, with the texts that the scan omitted.
    load_texts: Callable[[Iterable[SourceEntry]], Iterator[SourceEntry]] = iter
    dates: tuple[str, str] = field(default=("", ""), compare=False)  # the first and the last of the entries of files
    # The state that was compared. Empty: unknown, or something was found that the state does not show.
    state: str = field(default="", compare=False)
    version: int = field(default=-1, compare=False)  # of the fingerprints in a store; -1: unknown

    @property
    def has_changes(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self.added or self.updated or self.deleted or self.touched)

    def note_date(self, date: str) -> None:
        """Take note of the date of an entry."""
        first, last = self.dates
        self.dates = min(first or date, date), max(last, date)


@dataclass(frozen=True, slots=True)
class Look:
    """What a source shows without the stored fingerprints: its files, their sizes and times."""

    # A digest of all that: while it and the fingerprints stay the same, a scan finds the same. Empty: unknown.
    state: str
    compare: Callable[[Mapping[str, Fingerprint]], Scan]  # may be called once
    problems: Sequence[Problem] = ()
    skipped_folders: Sequence[str] = ()


class Source(Protocol):
    """Provides documents."""

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the source with the stored fingerprints."""

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes and the entry as of reading; not called for an `ExcerptEntry`."""

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Return whether the whole source is missing, in which case no document is treated as deleted."""


@runtime_checkable
class VisibleSource(Source, Protocol):
    """A source that shows whether anything may have changed before anybody knows what is stored."""

    def look(self) -> Look:
        """Return the state of the source, and what compares it with the fingerprints, as `scan` does."""


@runtime_checkable
class WatchableSource(VisibleSource, Protocol):
    """A source below a folder that can be watched while it is looked at."""

    def look(self, on_folder: Callable[[str], None] = ...) -> Look:
        """Look at the source; `on_folder` is called with the path of each folder before it is listed."""

    def watch_root(self) -> Path | None:
        """Return the folder, or None if a look costs no more than to ask about events."""

    def watch_key(self) -> Hashable:
        """Return the settings that decide, together with the files, the result of a look."""


@runtime_checkable
class SelfReadingSource(Protocol):
    """A source that decodes its own bytes, because file names do not tell their type."""

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return the text of an entry; raise SourceError if it has none."""


@runtime_checkable
class PortableSource(Protocol):
    """A source that knows how to be sent to another machine."""

    @property
    def is_local_only(self) -> bool:
        """Return whether no other machine can read its documents, so that their bytes must be sent too."""

    def portable_copy(self, entries: Sequence[SourceEntry]) -> Source:
        """Return a copy that can be pickled and decodes the bytes of these entries without further files."""
