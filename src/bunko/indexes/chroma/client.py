"""Define the client of the index for Chroma, in files or on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bunko.indexes.replica import Stamp

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The keys of the metadata of a collection that bunko made.
LIBRARY_KEY, TOOL_KEY = "bunko_library", "bunko_tool"
GENERATION_KEY, COPY_KEY, NONCE_KEY = "bunko_generation", "bunko_copy", "bunko_nonce"
_MAX_ID = 2**63 - 1  # of a chunk in a store


class CollectionInfo(NamedTuple):
    """A collection as it was when it was looked up."""

    id: str
    name: str
    metadata: Mapping[str, Any]
    dimension: int | None  # None before the first vector
    hnsw: Mapping[str, Any]  # space, ef_construction, ef_search, max_neighbors

    def belongs_to(self, library_id: str, tool_id: int | None = None) -> bool:
        """Return whether bunko made it for this library, and for this tool if that is given."""
        is_ours = bool(self.metadata.get(LIBRARY_KEY) == library_id)
        return is_ours and (tool_id is None or self.metadata.get(TOOL_KEY) == tool_id)

    @property
    def stamp(self) -> Stamp:
        """Return its own description."""
        generation = self.metadata.get(GENERATION_KEY)
        copy, nonce = (str(self.metadata.get(key, "")) for key in (COPY_KEY, NONCE_KEY))
        return Stamp(generation if type(generation) is int else 0, copy, nonce)


class ChunkRecord(NamedTuple):
    """A chunk as Chroma keeps it."""

    id: str  # {path}::chunk_{n}
    vector: npt.NDArray[np.float32]
    metadata: Mapping[str, str | int]
    text: str


class ChromaClient(Protocol):
    """Reads and writes collections; raises `IndexFailure` if Chroma cannot be used."""

    location: str  # for messages

    def find(self, name: str) -> CollectionInfo | None:
        """Return the current state of a collection, or None if there is none of that name."""

    def create(self, name: str, metadata: Mapping[str, Any], hnsw: Mapping[str, Any]) -> CollectionInfo:
        """Create a collection."""

    def drop(self, name: str) -> None:
        """Delete a collection."""

    def stamp(self, collection: CollectionInfo, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata of a collection."""

    def set_search_ef(self, collection: CollectionInfo, search_ef: int) -> None:
        """Set how many candidates a search of a collection keeps."""

    def check_files(self, collection: CollectionInfo) -> None:
        """Raise an error if the files of a collection are damaged."""

    def writing(self, collection: CollectionInfo) -> AbstractContextManager[None]:
        """Write records inside the block; if it does not end, the collection is checked before it is used again."""

    def upsert(self, collection: CollectionInfo, records: Sequence[ChunkRecord]) -> None:
        """Add records, or replace those with the same ids."""

    def delete_documents(self, collection: CollectionInfo, document_ids: Sequence[int]) -> None:
        """Delete the records of documents."""

    def nearest(
        self,
        collection: CollectionInfo,
        vector: npt.NDArray[np.float32],
        k: int,
        document_ids: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the ids of the k nearest chunks, nearest first; of these documents if given."""

    def count(self, collection: CollectionInfo) -> int:
        """Return the number of records."""

    def pairs(self, collection: CollectionInfo, *, at_most: int) -> set[tuple[int, int]]:
        """Return the document id and chunk id of every record; if there are more than `at_most`, of some."""

    def close(self) -> None:
        """Close connections and files."""


def where_documents(document_ids: Sequence[int]) -> dict[str, Any]:
    """Return the filter that matches the records of documents."""
    return {"document_id": {"$in": [int(document_id) for document_id in document_ids]}}


def chunk_ids_of(metadatas: Sequence[Mapping[str, Any] | None]) -> list[int]:
    """Return the chunk ids of records, without records that are not ours or were deleted meanwhile."""
    ids = (metadata.get("chunk_id") for metadata in metadatas if isinstance(metadata, Mapping))
    return [chunk_id for chunk_id in ids if type(chunk_id) is int and 0 < chunk_id <= _MAX_ID]


def pairs_of(metadatas: Sequence[Mapping[str, Any] | None]) -> set[tuple[int, int]]:
    """Return the document id and chunk id of records; (0, 0) stands for a record that is not ours."""
    return {
        (metadata["document_id"], metadata["chunk_id"])
        if isinstance(metadata, Mapping)
        and type(metadata.get("document_id")) is int
        and type(metadata.get("chunk_id")) is int
        else (0, 0)
        for metadata in metadatas
    }
