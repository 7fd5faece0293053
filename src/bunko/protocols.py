"""Define the protocols of chunkers, embedders, sources, stores and indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bunko.build_info import BuildInfo
from bunko.records import (
    ChunkRow,
    DatedDocument,
    DocumentSummary,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    LoggedSearch,
    NearestRows,
    PreparedDocument,
    QueryTerm,
    Ranking,
    StorageSize,
    StoredChunk,
    StoredDocument,
    Totals,
    WebPage,
)
from bunko.types import Chunk, Fingerprint, Problem, SourceEntry, Text, Tool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import Vectors


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
    def request_size(self) -> int:
        """Return the maximum number of texts per request."""

    def restore_size(self, name: str) -> None:
        """Set the size from an earlier `name`, to save the request for a model of unknown size."""

    def cancel(self) -> None:
        """Make pending requests return soon; later requests are not affected."""


@dataclass(slots=True)
class Scan:
    """The differences between a source and its stored fingerprints."""

    added: list[SourceEntry] = field(default_factory=list)
    updated: list[SourceEntry] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)  # new uri → old uri; the new one is in `added` too
    touched: list[SourceEntry] = field(default_factory=list)  # same content, new timestamp or lines; stored last
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    # Returns the given entries in order, with the texts that the scan omitted.
    load_texts: Callable[[Iterable[SourceEntry]], Iterator[SourceEntry]] = iter


class Source(Protocol):
    """Provides documents."""

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the source with the stored fingerprints."""

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes and the entry as of reading; not called for an `ExcerptEntry`."""

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Return whether the whole source is missing, in which case no document is treated as deleted."""


@runtime_checkable
class SelfReadingSource(Protocol):
    """A source that decodes its own bytes, because file names do not tell their type."""

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return the text of an entry; raise SourceError if it has none."""


class ToolStore(Protocol):
    """The tools of a library."""

    def all(self) -> list[Tool]:
        """Return all tools, sorted by name."""

    def put(self, tool: Tool) -> Tool:
        """Add a tool or replace the tool of the same name; return it with its id."""

    def ensure(self, tool: Tool) -> None:
        """Add a tool unless one of that name exists."""

    def update_build_info(self, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""

    def drop(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""

    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of its shadow and delete the shadow, atomically."""

    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store a tool with the documents of its shadow, atomically; a tool of the same name is replaced."""


class DocumentStore(Protocol):
    """The documents of all tools, with their chunks."""

    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return the fingerprint of each document and of each failed entry, by URI."""

    def failures(self, tool_id: int) -> list[Problem]:
        """Return the entries that could not be imported."""

    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[PreparedDocument] = (),
        fail: Sequence[FailedDocument] = (),
        remove: Sequence[str] = (),
        touch: Sequence[SourceEntry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> int:
        """Write documents atomically and return the new generation; a failed entry replaces its document.

        `usage` is added to the totals of each embedder.
        """

    def get(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return the document with this URI, or None."""

    def chunks(self, ids: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist."""

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one, sorted."""

    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the URIs of documents whose content hash starts with a prefix."""

    def export(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return the documents as they were written, sorted by URI."""


class VectorStore(Protocol):
    """The vectors of chunks by key, and the usage of the embedders that computed them."""

    def get(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the stored vectors among these keys."""

    def missing(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the keys that have no stored vector."""

    def pin(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk uses yet, and keep them from being deleted as orphans until they are unpinned."""

    def unpin(self, tool_id: int, embedder: str | None = None) -> None:
        """Unpin the vectors of a tool, of one embedder or of all."""

    def replace(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: BuildInfo) -> int:
        """Assign new vectors to all chunks of a tool, atomically; return the new generation.

        `keys` holds the vector keys of each document by URI, in chunk order; an empty mapping removes all vectors.
        Texts and terms do not change. Raises LibraryError if a key is missing or has no stored vector.
        """

    def delete_orphans(self) -> None:
        """Delete vectors that no chunk uses and that are not pinned."""

    def usage(self) -> dict[str, EmbeddingUsage]:
        """Return how much imports have used each embedder, by embedder name."""


class ChangeStore(Protocol):
    """What changed since a generation, for indexes that follow the store."""

    def chunks_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation, or None if those records were pruned."""

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Delete the records of removals up to a generation."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Store the name of the tool's current index file."""

    def index_file(self, tool_id: int) -> str:
        """Return the name of the tool's current index file, or an empty string."""


class WebPageStore(Protocol):
    """The fetched web pages of all tools."""

    def select(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages of a tool, or those with the given URLs, sorted by URL."""

    def content(self, tool_id: int, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""

    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Write pages atomically; a page without new content keeps its old content."""


class CacheStore(Protocol):
    """The search log and cached model answers: data that may be lost."""

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache a model answer, keeping `limit` per kind; return False if another process is writing."""


class StatsStore(Protocol):
    """Counts, sizes and lists of a tool's documents, without their texts."""

    def totals(self, tool_id: int) -> Totals:
        """Return how many documents, chunks, vectors and characters a tool has."""

    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows take."""

    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return pairs of chunk length in characters and number of chunks, shortest first."""

    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return a page of documents, sorted by URI."""

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag with its number of documents, most used first."""

    def recent_documents(self, tool_id: int, *, limit: int = 10) -> list[DatedDocument]:
        """Return the most recent documents, newest first; documents without a date come last."""


class StoreFiles(Protocol):
    """The files of a library, without those of its indexes; a store without files has none but locks."""

    def paths(self) -> list[Path]:
        """Return the files that exist now."""

    def contain(self, real_path: str) -> bool:
        """Return whether a path without symbolic links names one of these files, existing or not."""

    def still_exist(self) -> bool:
        """Return whether the library that was opened is still at its place."""

    def lock_file(self, purpose: str = "") -> Path:
        """Return the lock file that a writer holds, or the one for another purpose."""


class Store(Protocol):
    """Stores the tools and documents of a library, by subject."""

    id: str  # unique to the library
    kind: str  # one of `stores.KINDS`
    location: str  # for messages, and to open the same library in another process
    is_persistent: bool  # False if the library ends with its process, and no other process can open it
    tools: ToolStore
    documents: DocumentStore
    vectors: VectorStore
    changes: ChangeStore
    pages: WebPageStore
    cache: CacheStore
    stats: StatsStore
    files: StoreFiles

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""

    def generation(self) -> int:
        """Return a number that grows with every change that affects search results."""

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""

    def close(self) -> None:
        """Close the store."""


class IndexView(Protocol):
    """One immutable state of an index over some tools, so that a search reads the same rows from start to end.

    A row is a number that means something only to its view. `where` holds the ids of the documents that a method may
    return rows of, None for all; statistics such as term frequencies are over all rows either way. Equal scores are
    sorted by `tie_order`.
    """

    generation: int  # of the store, which the view has caught up with
    size: int  # number of rows

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

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine, without the rows of tools that have no vectors."""

    def cosines(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """Return the cosines of rows; 0 without a vector."""


class Index(Protocol):
    """Answers queries over the tools of a store; everything in it is derived from the store and can be rebuilt."""

    def view(self, tool_ids: Sequence[int]) -> IndexView:
        """Return the state of some tools that matches the store; call it inside the store's `read_transaction`."""

    def sync(self, tool_id: int) -> IndexView:
        """Bring a tool up to date with the store, save what the index keeps of it, and return its state."""

    def storage_bytes(self, tool_id: int | None = None) -> int:
        """Return how many bytes the index keeps outside the store, of a tool or in all."""

    def check(self, tool_id: int) -> str:
        """Return what is wrong with what the index keeps of a tool, or an empty string."""

    def repair(self, tool_id: int) -> bool:
        """Rebuild a tool if what the index keeps of it is damaged; return whether it was."""

    def drop(self, tool_id: int) -> None:
        """Delete what the index keeps of a tool; it is rebuilt if the tool is searched again."""
