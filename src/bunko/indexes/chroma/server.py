"""Talk to a Chroma server over its HTTP API, with a time limit on every request.

Chroma's own client waits without limit and installs much that only its server needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from bunko.errors import IndexFailure, SettingsError
from bunko.indexes.chroma.client import ChunkRecord, CollectionInfo, chunk_ids_of, pairs_of, where_documents
from bunko.indexes.options import ChromaOptions
from bunko.runtime.remote import key_problem, strip_credentials

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_PAGE_SIZE = 1000
_MAX_MESSAGE_CHARS = 300
_MAX_CONNECTIONS = 8
MAX_ANSWER_BYTES = 64 << 20  # a page of records, whose paths and headings may be long, has far less


class ChromaServer:
    """A database on a Chroma server."""

    def __init__(self, options: ChromaOptions) -> None:
        url = options.url if "://" in options.url else f"http://{options.url}"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(
                f"chromadb.url is not a URL of a server: {strip_credentials(options.url)}",
                hint="Write it like http://127.0.0.1:8000.",
            )
        if problem := key_problem(options.token):
            raise SettingsError(f"chromadb.token cannot be sent: {problem}", hint="Check the token.")
        import httpcore2

        from bunko.runtime.deadlines import DeadlineBackend, RequestState

        self._state = RequestState()
        self._pool = httpcore2.ConnectionPool(
            network_backend=DeadlineBackend(self._state),
            ssl_context=httpcore2.default_ssl_context() if parts.scheme == "https" else None,
            max_connections=_MAX_CONNECTIONS,
        )
        self.location = strip_credentials(url).rstrip("/")
        self._base = (
            f"{url.rstrip('/')}/api/v2/tenants/{quote(options.tenant, safe='')}"
            f"/databases/{quote(options.database, safe='')}/collections"
        )
        self._timeout, self._write_timeout, self._token = options.timeout, options.write_timeout, options.token
        self._place = f"tenant {options.tenant!r}, database {options.database!r}"

    def find(self, name: str) -> CollectionInfo | None:
        """Return the current state of a collection, or None if there is none of that name."""
        answer = self._request("GET", f"/{quote(name, safe='')}", missing_is_none=True)
        return None if answer is None else self._info(answer)

    def create(self, name: str, metadata: Mapping[str, Any], hnsw: Mapping[str, Any]) -> CollectionInfo:
        """Create a collection."""
        body = {"name": name, "metadata": dict(metadata), "configuration": {"hnsw": dict(hnsw)}, "get_or_create": False}
        return self._info(self._request("POST", "", body))

    def drop(self, name: str) -> None:
        """Delete a collection."""
        self._request("DELETE", f"/{quote(name, safe='')}", missing_is_none=True, timeout=self._write_timeout)

    def stamp(self, collection: CollectionInfo, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata of a collection."""
        self._request("PUT", _path(collection), {"new_metadata": dict(metadata)})

    def set_search_ef(self, collection: CollectionInfo, search_ef: int) -> None:
        """Set how many candidates a search of a collection keeps."""
        self._request("PUT", _path(collection), {"new_configuration": {"hnsw": {"ef_search": search_ef}}})

    def check_files(self, collection: CollectionInfo) -> None:
        """Do nothing: the server looks after its files."""

    def writing(self, collection: CollectionInfo) -> AbstractContextManager[None]:
        """Do nothing: the server looks after its files."""
        return nullcontext()

    def upsert(self, collection: CollectionInfo, records: Sequence[ChunkRecord]) -> None:
        """Add records, or replace those with the same ids."""
        body = {
            "ids": [record.id for record in records],
            "embeddings": [record.vector.tolist() for record in records],
            "metadatas": [dict(record.metadata) for record in records],
            "documents": [record.text for record in records],
        }
        self._request("POST", f"{_path(collection)}/upsert", body, timeout=self._write_timeout)

    def delete_documents(self, collection: CollectionInfo, document_ids: Sequence[int]) -> None:
        """Delete the records of documents."""
        body = {"where": where_documents(document_ids)}
        self._request("POST", f"{_path(collection)}/delete", body, timeout=self._write_timeout)

    def nearest(
        self,
        collection: CollectionInfo,
        vector: npt.NDArray[np.float32],
        k: int,
        document_ids: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the ids of the k nearest chunks, nearest first; of these documents if given."""
        body: dict[str, Any] = {"query_embeddings": [vector.tolist()], "n_results": k, "include": ["metadatas"]}
        if document_ids is not None:
            body["where"] = where_documents(document_ids)
        answer = self._request("POST", f"{_path(collection)}/query", body)
        lists = self._list(answer, "metadatas")
        if not lists or not isinstance(lists[0], list):
            raise self._not_chroma()
        return chunk_ids_of(lists[0][:k])

    def count(self, collection: CollectionInfo) -> int:
        """Return the number of records."""
        answer = self._request("GET", f"{_path(collection)}/count")
        return int(answer) if isinstance(answer, int) else 0

    def pairs(self, collection: CollectionInfo, *, at_most: int) -> set[tuple[int, int]]:
        """Return the document id and chunk id of every record; if there are more than `at_most`, of some."""
        pairs: set[tuple[int, int]] = set()
        offset = 0
        while True:
            body = {"limit": _PAGE_SIZE, "offset": offset, "include": ["metadatas"]}
            page = self._list(self._request("POST", f"{_path(collection)}/get", body), "metadatas")
            pairs |= pairs_of(page)
            offset += len(page)
            if len(page) < _PAGE_SIZE or offset > at_most:
                return pairs

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _info(self, answer: Any) -> CollectionInfo:
        configuration, metadata = self._field(answer, "configuration_json"), self._field(answer, "metadata") or {}
        hnsw = (configuration.get("hnsw") if isinstance(configuration, dict) else None) or {}
        if not isinstance(metadata, dict) or not isinstance(hnsw, dict):
            raise self._not_chroma()
        name = str(self._field(answer, "name"))
        return CollectionInfo(str(self._field(answer, "id")), name, metadata, answer.get("dimension"), hnsw)

    def _field(self, answer: Any, name: str) -> Any:
        if not isinstance(answer, dict) or name not in answer:
            raise self._not_chroma()
        return answer[name]

    def _list(self, answer: Any, name: str) -> list[Any]:
        value = self._field(answer, name)
        if not isinstance(value, list):
            raise self._not_chroma()
        return value

    def _request(
        self, method: str, path: str, body: Any = None, *, missing_is_none: bool = False, timeout: float = 0.0
    ) -> Any:
        """Send a request and return the decoded answer; None for a collection that does not exist if that is asked."""
        import httpcore2

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:  # Chroma Cloud reads the second, a proxy in front of a server the first
            headers |= {"Authorization": f"Bearer {self._token}", "X-Chroma-Token": self._token}
        seconds = timeout or self._timeout
        limits = dict.fromkeys(("read", "write", "pool"), seconds) | {"connect": min(seconds, self._timeout)}
        self._state.deadline = monotonic() + seconds
        try:
            with self._pool.stream(
                method,
                f"{self._base}{path}",
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
                content=None if body is None else json.dumps(body).encode("utf-8", "surrogatepass"),
                extensions={"timeout": limits},
            ) as response:
                content = self._read_content(response.iter_stream())
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
            reason = f"no answer within {seconds:g} s" if isinstance(error, httpcore2.TimeoutException) else str(error)
            raise IndexFailure(
                f"Chroma at {self.location} is away: {reason or type(error).__name__}",
                hint="Start it with `chroma run --path DIR`, or set index.kind to embedded.",
                is_away=True,
            ) from error
        return self._decode(response.status, content, missing_is_none=missing_is_none)

    def _read_content(self, parts: Iterable[bytes]) -> bytes:
        content = bytearray()
        for part in parts:
            content += part
            if len(content) > MAX_ANSWER_BYTES:
                raise IndexFailure(
                    f"Chroma at {self.location} sent an answer of more than {MAX_ANSWER_BYTES:,} bytes",
                    hint="Check chromadb.url, and the log of the server.",
                    is_away=True,
                )
        return bytes(content)

    def _decode(self, status: int, content: bytes, *, missing_is_none: bool) -> Any:
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        error = answer.get("error") if isinstance(answer, dict) else None
        if status < 300 and answer is not None:
            return answer
        detail = (
            answer.get("message") if isinstance(answer, dict) else content[:_MAX_MESSAGE_CHARS].decode(errors="replace")
        )
        detail = " ".join(str(detail).split())[:_MAX_MESSAGE_CHARS]
        if self._token:
            detail = detail.replace(self._token, "********")
        if status in (401, 403):
            raise IndexFailure(
                f"Chroma at {self.location} rejected the token ({status})",
                hint="Set chromadb.token, or CHROMADB_TOKEN in the environment.",
            )
        if status == 404 and error == "NotFoundError" and missing_is_none:
            return None
        if error is not None and "does not exist" in detail:  # 400 or 404
            raise IndexFailure(
                f"Chroma at {self.location} does not have what was asked for ({status}): {detail}",
                hint=f"Check {self._place}, then run: bunko index sync.",
            )
        if error is None:
            raise self._not_chroma()
        raise IndexFailure(
            f"Chroma at {self.location} failed ({status}): {detail}",
            hint="Check the log of the server, and its free disk space.",
        )

    def _not_chroma(self) -> IndexFailure:
        return IndexFailure(
            f"{self.location} is not a Chroma server of version 1.0 or newer",
            hint="Check chromadb.url, and upgrade the server if it is older.",
        )


def _path(collection: CollectionInfo) -> str:
    return f"/{quote(collection.id, safe='')}"
