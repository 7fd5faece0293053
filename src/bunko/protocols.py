"""The shapes that parts fit: whoever has these methods can take the place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bunko.records import (
    ChunkRow,
    DatedDocument,
    DocumentSummary,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    LoggedSearch,
    PreparedDocument,
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
    """Cuts a text into the pieces that are indexed."""

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order; together they hold every non-blank character of the body."""


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Return whatever changes the vectors, the size among it; a remote model may have to be asked for its size."""

    @property
    def size(self) -> int:
        """Return how many numbers a vector has."""

    @property
    def label(self) -> str:
        """Return the provider and the model, known without loading or asking anything."""

    @property
    def noise_floor(self) -> float:
        """Return the cosine below which texts have nothing in common; -1 where that is not known."""

    @property
    def batch_size(self) -> int:
        """Return how many texts are best handed over at once."""

    @property
    def is_remote(self) -> bool:
        """Say whether texts go to a service: it takes time and not work, and it may cost money."""

    def unavailable_reason(self) -> str:
        """Return nothing if vectors can be made, else what is missing and how to get it; nothing is loaded or paid."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row for each text."""


@dataclass(slots=True)
class EmbedderStats:
    """What an embedder with limits did so far."""

    texts: int = 0
    calls: int = 0
    retries: int = 0
    too_long: int = 0  # texts that were embedded in parts, or cut
    sizing_calls: int = 0  # calls that asked for the size alone, until an import takes them to its account


class RemoteEmbedder(Embedder, Protocol):
    """An embedder whose `remote` is true."""

    stats: EmbedderStats

    @property
    def request_size(self) -> int:
        """Return how many texts one request holds at most."""

    def restore_size(self, name: str) -> None:
        """Take the size from a name it had before: then a model of unknown size need not be asked for it."""

    def cancel(self) -> None:
        """Let those who wait for an answer wait no longer than a moment; what is asked later is not touched."""


@dataclass(slots=True)
class Scan:
    """How a source differs from what the library remembers of it."""

    added: list[SourceEntry] = field(default_factory=list)
    updated: list[SourceEntry] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)  # new uri → old uri; the new one is in `added` too
    touched: list[SourceEntry] = field(
        default_factory=list
    )  # same content, other timestamp or place; noted last of all
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    # Gives back the entries it is given, in their order, with those texts that looking has left out.
    load_texts: Callable[[Iterable[SourceEntry]], Iterator[SourceEntry]] = iter


class Source(Protocol):
    """Where documents come from."""

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare what is there with what is known."""

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes and the entry as it was when they were read; not asked for an `Excerpt`."""

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Say whether the whole source has vanished, so that nothing may be concluded from its absence."""


@runtime_checkable
class SelfReadingSource(Protocol):
    """A source that reads its own bytes, because their names do not tell what they are."""

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return what the bytes of an entry say; a SourceError says why they are no text."""


class Store(Protocol):
    """Where a library's truth lies."""

    id: str  # no two libraries share it

    def read_transaction(self) -> AbstractContextManager[None]:
        """Let everything that is read inside come from one state, whatever is written meanwhile."""

    def tools(self) -> list[Tool]:
        """Return all tools, by name."""

    def put_tool(self, tool: Tool) -> Tool:
        """Add a tool, or replace the one of the same name; return it as stored."""

    def ensure_tool(self, tool: Tool) -> None:
        """Add a tool unless there is one of its name, which stays as it is."""

    def update_build_info(self, tool_id: int, *, built: dict[str, Any] | None = None, imported_at: str = "") -> None:
        """Note how a tool's index was made or when; what somebody else says of the tool meanwhile stays."""

    def drop_tool(self, tool_id: int) -> None:
        """Remove a tool and all it holds."""

    def swap_tools(self, tool: Tool, shadow: Tool) -> int:
        """Let a tool hold what its shadow holds instead, in one step, and remove the shadow."""

    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Let a tool be as given and hold what a shadow holds, in one step; one of that name is replaced."""

    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return what is remembered of each document, and of what failed, by uri."""

    def failures(self, tool_id: int) -> list[Problem]:
        """Return what could not be used when it was last read."""

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
        """Change documents, all of them or none; return the new generation. A failure replaces its document.

        What was `spent` on vectors is added, by embedder, to what was spent before.
        """

    def pin_vectors(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk has yet, for a tool that will: no sweep forgets them until it is released."""

    def unpin_vectors(self, tool_id: int, embedder: str | None = None) -> None:
        """Let a sweep forget what was kept for a tool and no chunk has, of one embedder or of all."""

    def replace_vectors(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: dict[str, Any]) -> int:
        """Give all chunks of a tool other vectors, in one step; return the new generation.

        `keys` are the names of the vectors by uri, in the order of the chunks; no names mean no vectors. Texts and
        terms stay, and it is an error if a chunk would have a vector that is not stored.
        """

    def embedding_usage(self) -> dict[str, EmbeddingUsage]:
        """Return what imports had of each embedder, by its name."""

    def missing_vectors(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return those vector names that are not stored."""

    def generation(self) -> int:
        """Return a number that grows with every change of what a search could see."""

    def changes_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Return the chunks of all documents written after a generation, in the order they were written."""

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the documents removed after a generation; None if that is too long ago to tell."""

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Stop remembering what was removed up to a generation."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Remember which derived file is true to this library."""

    def index_file(self, tool_id: int) -> str:
        """Return which derived file is true to this library, if one is."""

    def delete_orphan_vectors(self) -> None:
        """Forget vectors that no chunk has any more, and that are not kept."""

    def chunks(self, ids: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist."""

    def document(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return one document."""

    def export_documents(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return documents as they were put, in the order of their uris."""

    def vectors(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the vectors of these names that are stored."""

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the uris that follow one, in order."""

    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the uris of the documents whose content hash begins so."""

    def select_documents(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that pass a filter."""

    def totals(self, tool_id: int) -> Totals:
        """Return how much a tool holds."""

    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows take."""

    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return how many chunks there are of each length in characters, the shortest first."""

    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return some documents in the order of their uris."""

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag and how many documents have it, the most used first."""

    def recent_documents(self, tool_id: int, *, limit: int = 10) -> list[DatedDocument]:
        """Return the documents of the latest dates, the latest first; those without a date come last."""

    def pages(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return what is known of a tool's web pages, or of some of them, by URL."""

    def page_content(self, tool_id: int, url: str) -> bytes | None:
        """Return a page as it came; None where none ever did."""

    def write_pages(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Change pages, all of them or none; one that is put without new content keeps what it has."""

    def log_search(self, query: str, tool: str, at: str, *, limit: int) -> bool:
        """Remember that a search was made, and at most so many; say no instead of waiting for whoever writes."""

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the searches that are remembered, the most frequent first."""

    def clear_searches(self) -> int:
        """Forget all searches; return how many there were."""

    def cached_answer(self, kind: str, key: bytes, at: float) -> str | None:
        """Return what a remote model answered, unless it is out of date by then, in seconds since 1970."""

    def cache_answer(self, kind: str, key: bytes, value: str, *, at: float, until: float, limit: int) -> bool:
        """Keep an answer until then, and at most so many of a kind; say no instead of waiting for whoever writes."""

    def check(self) -> str:
        """Return what is wrong with what is stored, or nothing."""

    def close(self) -> None:
        """Let go of files."""
