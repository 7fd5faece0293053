"""Keep Chroma's collections in files of their own, with the package chromadb."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bunko.errors import IndexFailure
from bunko.indexes.chroma.client import ChunkRecord, CollectionInfo, chunk_ids_of, pairs_of, where_documents
from bunko.indexes.chroma.file_guard import FileGuard
from bunko.runtime.installation import install_command

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T")
_PAGE_SIZE = 1000
_MAX_MESSAGE_CHARS = 300


class ChromaFiles:
    """The collections in a folder, as chromadb's `PersistentClient` keeps them.

    A client does not notice vectors that another process wrote, so it is opened again once a collection has a stamp
    that this process did not write.
    """

    def __init__(self, folder: Path) -> None:
        self.location = str(folder)
        self._folder = folder
        self._lock = threading.RLock()
        self._client: Any = None
        self._stamps: dict[str, tuple[str, Any]] = {}  # id and metadata, by name, as this client read them
        self._guard = FileGuard(folder)
        self._checked: set[str] = set()  # the ids of collections whose files can be read

    def find(self, name: str) -> CollectionInfo | None:
        """Return the current state of a collection, or None if there is none of that name."""
        if self._client is None and not self._folder.is_dir():
            return None  # opening a client would create it
        with self._lock:
            collection = self._get(name)
            if collection is not None:
                stamp = (str(collection.id), collection.metadata)
                if self._stamps.get(name, stamp) != stamp:
                    self.close()
                    collection = self._get(name)
                self._stamps[name] = stamp
        return None if collection is None else _info(collection)

    def create(self, name: str, metadata: Mapping[str, Any], hnsw: Mapping[str, Any]) -> CollectionInfo:
        """Create a collection."""
        with self._translate_errors():
            collection = self._open().create_collection(
                name, embedding_function=None, metadata=dict(metadata), configuration={"hnsw": dict(hnsw)}
            )
        self._stamps[name] = (str(collection.id), collection.metadata)
        return _info(collection)

    def drop(self, name: str) -> None:
        """Delete a collection."""
        collection = self._get(name)
        if collection is not None:
            with self._translate_errors():
                self._open().delete_collection(name)
            self._guard.forget(str(collection.id))
        self._stamps.pop(name, None)

    def stamp(self, collection: CollectionInfo, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata of a collection."""
        self._call(collection, lambda handle: handle.modify(metadata=dict(metadata)))
        self._stamps[collection.name] = (collection.id, dict(metadata))

    def set_search_ef(self, collection: CollectionInfo, search_ef: int) -> None:
        """Set how many candidates a search of a collection keeps."""
        self._call(collection, lambda handle: handle.modify(configuration={"hnsw": {"ef_search": search_ef}}))

    def check_files(self, collection: CollectionInfo) -> None:
        """Raise an error if the files of a collection are damaged; they are read once by each client."""
        if collection.id not in self._checked:
            self._guard.check(collection.name, collection.id)
            self._checked.add(collection.id)

    @contextmanager
    def writing(self, collection: CollectionInfo) -> Iterator[None]:
        """Write records inside the block; if it does not end, the collection is checked before it is used again."""
        with self._guard.writing(collection.name, collection.id):
            yield
        self._checked.add(collection.id)

    def upsert(self, collection: CollectionInfo, records: Sequence[ChunkRecord]) -> None:
        """Add records, or replace those with the same ids."""
        self._call(
            collection,
            lambda handle: handle.upsert(
                ids=[record.id for record in records],
                embeddings=np.stack([record.vector for record in records]),
                metadatas=[dict(record.metadata) for record in records],
                documents=[record.text for record in records],
            ),
        )

    def delete_documents(self, collection: CollectionInfo, document_ids: Sequence[int]) -> None:
        """Delete the records of documents."""
        self._call(collection, lambda handle: handle.delete(where=where_documents(document_ids)))

    def nearest(
        self,
        collection: CollectionInfo,
        vector: npt.NDArray[np.float32],
        k: int,
        document_ids: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the ids of the k nearest chunks, nearest first; of these documents if given."""
        self.check_files(collection)
        where = None if document_ids is None else where_documents(document_ids)
        answer = self._call(
            collection,
            lambda handle: handle.query(query_embeddings=vector[None], n_results=k, where=where, include=["metadatas"]),
        )
        return chunk_ids_of(answer["metadatas"][0])

    def count(self, collection: CollectionInfo) -> int:
        """Return the number of records."""
        return int(self._call(collection, lambda handle: handle.count()))

    def pairs(self, collection: CollectionInfo, *, at_most: int) -> set[tuple[int, int]]:
        """Return the document id and chunk id of every record; if there are more than `at_most`, of some."""
        pairs: set[tuple[int, int]] = set()
        for offset in range(0, min(self.count(collection), at_most + 1), _PAGE_SIZE):
            page = self._call(collection, _page_reader(offset))
            pairs |= pairs_of(page["metadatas"])
        return pairs

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            client, self._client, self._stamps = self._client, None, {}
            self._checked.clear()
            if client is not None:
                with suppress(Exception):  # nothing is lost: each write was complete
                    client.close()

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                try:
                    import chromadb
                    from chromadb.config import Settings
                except ImportError as error:
                    raise IndexFailure(
                        "The index chroma needs the package chromadb to keep its vectors in files",
                        hint=f"Install it: {install_command('chroma')}; or set chromadb.url to use a server.",
                    ) from error
                with self._translate_errors():
                    self._folder.mkdir(parents=True, exist_ok=True)
                    self._client = chromadb.PersistentClient(
                        str(self._folder), settings=Settings(anonymized_telemetry=False)
                    )
            return self._client

    def _get(self, name: str) -> Any:
        """Return the handle of a collection, or None."""
        from_client = self._open()
        from chromadb.errors import NotFoundError

        with self._translate_errors():
            try:
                return from_client.get_collection(name, embedding_function=None)
            except NotFoundError:
                return None

    def _call(self, collection: CollectionInfo, action: Callable[[Any], T]) -> T:
        handle = self._get(collection.name)
        if handle is None or str(handle.id) != collection.id:
            raise IndexFailure(
                f"The collection {collection.name!r} in {self.location} was deleted meanwhile",
                hint="Run: bunko index sync.",
            )
        with self._translate_errors():
            return action(handle)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise every error of Chroma as `IndexFailure`: they have no common class."""
        try:
            yield
        except IndexFailure:
            raise
        except Exception as error:
            if type(error).__name__ == "NotFoundError":
                raise
            detail = " ".join(str(error).split())[:_MAX_MESSAGE_CHARS]
            raise IndexFailure(
                f"Chroma cannot use its files in {self.location}: {detail or type(error).__name__}",
                hint="Check the folder and its free disk space. If its files are damaged and nothing else uses them,"
                " delete it and run: bunko index sync.",
            ) from error


def _info(collection: Any) -> CollectionInfo:
    hnsw = collection.configuration.get("hnsw") or {}
    dimension = collection._model.dimension
    return CollectionInfo(str(collection.id), collection.name, dict(collection.metadata or {}), dimension, hnsw)


def _page_reader(offset: int) -> Callable[[Any], Any]:
    return lambda handle: handle.get(limit=_PAGE_SIZE, offset=offset, include=["metadatas"])
