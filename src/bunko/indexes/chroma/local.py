"""Keep Chroma's collections in files of their own, with the package chromadb, and repair damaged ones."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bunko.errors import IndexFailure
from bunko.indexes.chroma.client import ChunkRecord, CollectionInfo, chunk_ids_of, pairs_of, where_documents
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.installation import install_command
from bunko.runtime.temporary_files import write_text_file

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


_FORMAT = 1
_TRIAL_SECONDS = 120.0
_WAIT_SECONDS = 60.0
_BLOCK_BYTES = 1 << 20
_DATABASE, _SAVED = "chroma.sqlite3", "index_metadata.pickle"
_HINT = "Make them anew: bunko index sync."


class DamagedFiles(IndexFailure):
    """The files of a collection cannot be read safely."""


class FileGuard:
    """The notes about the collections in a folder, and the lock of their writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def writing(self, name: str, collection_id: str) -> Iterator[None]:
        """Note that a collection is written, and its files afterwards; only one process at a time writes."""
        with self._lock(_WAIT_SECONDS):
            self._check(name, collection_id)
            self._save(collection_id, is_complete=False)
            reach_failpoint("index.opened")
            yield
            self._save(collection_id, is_complete=True)
            reach_failpoint("index.noted")

    def check(self, name: str, collection_id: str) -> None:
        """Raise an error if the files of a collection cannot be read safely, or are being written."""
        note = self._load(collection_id)
        if note is not None and note["complete"]:
            self._compare(name, collection_id, note)
            return
        with self._lock(0.0):
            self._check(name, collection_id)

    def forget(self, collection_id: str) -> None:
        """Delete the note about a collection that was deleted."""
        with suppress(OSError):
            self._path(collection_id).unlink(missing_ok=True)

    def _check(self, name: str, collection_id: str) -> None:
        note = self._load(collection_id)
        if note is not None and note["complete"]:
            self._compare(name, collection_id, note)
        elif self._files(collection_id):  # a write did not end, or there was no note yet
            self._try_files(name)
            self._save(collection_id, is_complete=True)

    def _compare(self, name: str, collection_id: str, note: dict[str, Any]) -> None:
        files = self._files(collection_id)
        is_same = files.keys() == note["files"].keys() and all(
            path.stat().st_size == note["files"][key][0] and _checksum(path) == note["files"][key][1]
            for key, path in files.items()
        )
        # Another process may have written meanwhile; its note is the newer one.
        if not is_same and self._load(collection_id) == note:
            raise DamagedFiles(
                f"The files of the collection {name!r} in {self._folder} are damaged, or something else changed them",
                hint=_HINT,
            )

    def _try_files(self, name: str) -> None:
        """Search a collection in a process of its own, which a damaged file may end."""
        command = [sys.executable, "-m", "bunko.indexes.chroma.trial", str(self._folder), name]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=_TRIAL_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise IndexFailure(f"Chroma's files in {self._folder} could not be tried: {error}", hint=_HINT) from error
        if done.returncode != 0:
            raise DamagedFiles(
                f"The files of the collection {name!r} in {self._folder} are damaged: a process that wrote them was"
                " stopped",
                hint=_HINT,
            )

    def _files(self, collection_id: str) -> dict[str, Path]:
        """Return the files of the graph of a collection, by their paths in the folder."""
        database = self._folder / _DATABASE
        if not database.exists():
            return {}
        query = "SELECT id FROM segments WHERE collection = ? AND scope = 'VECTOR'"
        try:
            with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
                names = [str(row[0]) for row in connection.execute(query, (collection_id,))]
        except sqlite3.Error as error:
            raise IndexFailure(
                f"Chroma cannot use its files in {self._folder}: {error}",
                hint="Delete the folder if nothing else uses it, then run: bunko index sync.",
            ) from error
        # Without this file, Chroma has saved nothing yet: it reads all vectors from its database, and no other file.
        folders = [self._folder / name for name in names if (self._folder / name / _SAVED).exists()]
        paths = sorted(path for folder in folders for path in folder.iterdir() if path.is_file())
        return {path.relative_to(self._folder).as_posix(): path for path in paths}

    def _load(self, collection_id: str) -> dict[str, Any] | None:
        try:
            note = json.loads(self._path(collection_id).read_bytes())
        except (OSError, ValueError):
            return None
        is_known = isinstance(note, dict) and note.get("format") == _FORMAT and isinstance(note.get("files"), dict)
        return note if is_known else None

    def _save(self, collection_id: str, *, is_complete: bool) -> None:
        files = self._files(collection_id) if is_complete else {}
        try:
            sums = {key: [path.stat().st_size, _checksum(path)] for key, path in files.items()}
            note = {"format": _FORMAT, "complete": is_complete, "files": sums}
            write_text_file(self._path(collection_id), json.dumps(note))
        except OSError as error:
            raise IndexFailure(
                f"{self._folder} cannot be written: {error.strerror or error}",
                hint="Check the folder and its free disk space, then run: bunko index sync.",
            ) from error

    def _path(self, collection_id: str) -> Path:
        return self._folder / f"bunko-{collection_id}.json"

    @contextmanager
    def _lock(self, seconds: float) -> Iterator[None]:
        from filelock import FileLock, Timeout

        try:
            with FileLock(self._folder / "bunko.lock", timeout=seconds):
                yield
        except Timeout as error:
            raise IndexFailure(
                f"Another process is writing Chroma's files in {self._folder}", hint="Wait until it has finished."
            ) from error


def _checksum(path: Path) -> int:
    """Return the CRC-32 of a file: damage is by accident, and a gigabyte should take about a second."""
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum
