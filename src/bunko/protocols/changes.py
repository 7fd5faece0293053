"""What a store tells indexes that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from bunko.types.records import ChunkSentences, ChunkTerms, ChunkText, ChunkVector, StoredChunk, ToolStatistics


class ChangeStore(Protocol):
    """What changed since a generation, for indexes that follow the store."""

    def chunks_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""

    def documents_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of the documents written after a generation, in the order they were written."""

    def chunks_of(self, document_ids: Sequence[int]) -> Iterator[StoredChunk]:
        """Yield the chunks of documents, in the order they were written; a document that was removed has none."""

    def chunk_terms(self, ids: Sequence[int]) -> Iterator[ChunkTerms]:
        """Yield the terms of the chunks with these ids that still exist, in any order."""

    def chunk_vectors(self, ids: Sequence[int]) -> Iterator[ChunkVector]:
        """Yield the vectors of the chunks with these ids that still exist, in any order."""

    def chunk_sentences(self, ids: Sequence[int]) -> Iterator[ChunkSentences]:
        """Yield the sentence vectors of the chunks with these ids that still exist, in any order."""

    def chunk_texts(self, ids: Sequence[int]) -> Iterator[ChunkText]:
        """Yield the texts of the chunks with these ids that still exist, in any order."""

    def chunk_ids(self, tool_id: int) -> list[int]:
        """Return the ids of all chunks of a tool."""

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation, or None if those records were pruned."""

    def redated_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of documents whose date, that of their file, became another day after a generation."""

    def last_generation(self, tool_id: int) -> int:
        """Return a generation after which nothing of a tool was written or removed; it never goes back."""

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Delete the records of removals up to a generation."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Store the name of the tool's current index file."""

    def index_file(self, tool_id: int) -> str:
        """Return the name of the tool's current index file, or an empty string."""

    def set_index_note(self, tool_id: int, index: str, note: str) -> None:
        """Store the note of an index outside the library about its copy of a tool; an empty one deletes it."""

    def index_note(self, tool_id: int, index: str) -> str:
        """Return the note of an index about its copy of a tool, or an empty string."""


class IndexStatisticsStore(Protocol):
    """Statistics over the chunks of tools, for indexes outside the library that cannot compute them for each search.

    They follow the documents by generation: the copying process brings the statistics along. Each copy
    of a tool has statistics of its own, because one may be behind another; `copy` is its id.
    """

    def get(self, tool_id: int, copy: str) -> ToolStatistics | None:
        """Return the statistics of a copy, without the frequencies, or None if there are none."""

    def frequencies(self, tool_id: int, copy: str, keys: Sequence[int]) -> dict[int, int]:
        """Return in how many chunks of a copy each key occurs; a key that occurs in none may be left out."""

    def replace(
        self, tool_id: int, copy: str, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]
    ) -> None:
        """Store the statistics of a copy in place of earlier ones, and delete those of abandoned copies, atomically."""

    def update(
        self, tool_id: int, copy: str, statistics: ToolStatistics, changes: Iterable[tuple[int, int]], *, since: int
    ) -> bool:
        """Replace the statistics of a copy and add changes to its frequencies, atomically.

        If the stored statistics are not of the generation `since`, nothing is stored and the result is False.
        """

    def clear(self, tool_id: int, copy: str) -> None:
        """Delete the statistics of a copy."""
