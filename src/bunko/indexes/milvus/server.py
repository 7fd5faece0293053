"""Talk to Milvus through pymilvus: a Milvus Lite file, a server or a cluster, with a time limit on every request."""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from bunko.errors import IndexFailure, SettingsError
from bunko.indexes.options import MilvusOptions
from bunko.runtime.installation import install_command
from bunko.runtime.remote import strip_credentials

T = TypeVar("T")
# What a row has besides its vectors. `more` has what a card is too long for; a few rows have a note in place of a card.
SCALAR_FIELDS = ("id", "tool", "document_id", "path", "date", "tags", "card", "more")
MAX_RESULTS = 16_384  # of Milvus
MAX_PATH_BYTES, MAX_TAGS, MAX_TAG_BYTES = 4096, 200, 400
_MAX_TEXT_BYTES, _MAX_TEXTS = 65_535, 200  # of Milvus, and of a card: 13 MB
_MAX_MESSAGE_CHARS = 300
# What Milvus Lite says if no row matches, and what servers say of a collection that is not in memory.
_NO_ROWS = "Unsupported data type: 0"
_RELEASED = re.compile(r"released|not loaded|call load\(\)|collection not load", re.IGNORECASE)
_TOKEN_REJECTED = re.compile(r"unauthenticated|auth check|permission", re.IGNORECASE)
_DISK_FULL = re.compile(r"no space left|disk quota|disk is full|disk full|file too large", re.IGNORECASE)
_MIN_VERSION = (2, 5)
_RECONNECT_SECONDS = 0.1
_FIRST_DELAY_SECONDS = 0.5  # before the second attempt of a write


class MilvusServer:
    """The collections of one database; it is connected at the first request."""

    def __init__(self, options: MilvusOptions) -> None:
        if not options.uri:
            raise SettingsError(
                "The index milvus needs a library in files, or a server",
                hint="Set storage.kind to sqlite, or milvus.uri to the URL of a Milvus server.",
            )
        if "://" not in options.uri and not options.uri.endswith(".db"):
            raise SettingsError(
                f"milvus.uri is neither a URL nor a Milvus Lite file: {options.uri}",
                hint="Write a server like http://127.0.0.1:19530, and a file with a name that ends in .db.",
            )
        self._options = options
        self.is_file = "://" not in options.uri
        self.location = options.uri if self.is_file else strip_credentials(options.uri)
        self._lock = threading.Lock()
        self._client: Any = None
        self._last_error: tuple[float, Exception | None] = 0.0, None  # of connecting, and when
        self._has_found_rows = False

    def collections(self) -> list[str]:
        """Return the names of all collections."""
        return list(self._read(lambda client, timeout: client.list_collections(timeout=timeout)))

    def describe(self, name: str) -> tuple[set[str], int] | None:
        """Return the fields of a collection and the dimension of its vectors; None if it does not exist."""
        if not self._read(lambda client, timeout: client.has_collection(name, timeout=timeout)):
            return None
        fields = self._read(lambda client, timeout: client.describe_collection(name, timeout=timeout))["fields"]
        dimension = next((int(field["params"]["dim"]) for field in fields if "dim" in field.get("params", {})), 0)
        return {str(field["name"]) for field in fields}, dimension

    def create(self, name: str, dimension: int) -> None:
        """Create a collection of rows with dense vectors of a dimension and sparse vectors, compared by products."""
        self._write(lambda client, timeout: self._create(client, name, dimension, timeout))

    def drop(self, name: str) -> None:
        """Delete a collection."""
        self._write(lambda client, timeout: client.drop_collection(name, timeout=timeout))

    def upsert(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, or replace those with the same ids."""
        self._write(lambda client, timeout: client.upsert(name, list(rows), timeout=timeout))

    def delete(self, name: str, where: str) -> None:
        """Delete the rows that match an expression."""
        self._write(lambda client, timeout: client.delete(name, filter=where, timeout=timeout))

    def query(
        self, name: str, where: str, fields: Sequence[str], *, limit: int = MAX_RESULTS, writing: bool = False
    ) -> list[dict[str, Any]]:
        """Return the rows that match an expression, as they are after all writes."""

        arguments = {"filter": where, "output_fields": list(fields), "limit": limit, "consistency_level": "Strong"}
        request = self._loaded(name, lambda client, timeout: client.query(name, timeout=timeout, **arguments))
        return (self._write if writing else self._read)(self._or_no_rows(request))

    def cards_where(self, name: str, where: str) -> dict[int, str]:
        """Return the packed cards of the rows that match an expression, by id, as they are after all writes."""
        return self._complete(name, self.query(name, where, ["card"], writing=True))

    def cards(self, name: str, ids: Sequence[int]) -> dict[int, str]:
        """Return the packed cards of rows, by id."""
        request = self._loaded(
            name, lambda client, timeout: client.get(name, list(ids), output_fields=["card"], timeout=timeout)
        )
        return self._complete(name, self._read(self._or_no_rows(request)))

    def _complete(self, name: str, rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
        cards = {int(row["id"]): str(row["card"]) for row in rows}
        for row_id in [row_id for row_id, text in cards.items() if len(text) == _MAX_TEXT_BYTES]:
            for row in self.query(name, f"id == {row_id}", ["more"]):
                cards[row_id] += "".join(row["more"])
        return cards

    def _or_no_rows(self, request: Callable[[Any, float], Sequence[dict[str, Any]]]) -> Callable[..., list[Any]]:
        def request_rows(client: Any, timeout: float) -> list[dict[str, Any]]:
            try:
                return list(request(client, timeout))
            except Exception as error:
                if self.is_file and _NO_ROWS in str(error):
                    return []
                raise

        return request_rows

    def count(self, name: str, where: str) -> int:
        """Return how many rows match an expression."""
        rows = self._read(
            self._loaded(
                name,
                lambda client, timeout: client.query(
                    name, filter=where, output_fields=["count(*)"], consistency_level="Strong", timeout=timeout
                ),
            )
        )
        return int(rows[0]["count(*)"])

    def search(
        self, name: str, field: str, vectors: Sequence[Any], limit: int, where: str
    ) -> list[list[tuple[int, float]]]:
        """Return for each vector the ids of the rows with the highest products and these, highest first."""
        answer = self._read(
            self._loaded(
                name,
                lambda client, timeout: client.search(
                    name,
                    data=list(vectors),
                    anns_field=field,
                    limit=min(limit, MAX_RESULTS),
                    filter=where,
                    search_params={"metric_type": "IP"},
                    consistency_level=self._options.consistency_level,
                    timeout=timeout,
                ),
            )
        )
        return [[(int(hit["id"]), float(hit["distance"])) for hit in hits] for hits in answer]

    def _loaded(self, name: str, request: Callable[[Any, float], T]) -> Callable[[Any, float], T]:
        """Return a request that loads its collection if that was released, as by a restart of some servers."""

        def request_loaded(client: Any, timeout: float) -> T:
            try:
                answer = request(client, timeout)
            except Exception as error:
                if not _RELEASED.search(str(error)):
                    raise
                client.load_collection(name, timeout=timeout)
                answer = request(client, timeout)
            self._has_found_rows = True
            return answer

        return request_loaded

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._disconnect(self._client)

    def _create(self, client: Any, name: str, dimension: int, timeout: float) -> None:
        from pymilvus import DataType

        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        # A Milvus Lite file has no partitions by key, and accepts no filter over such a field.
        schema.add_field("tool", DataType.INT64, is_partition_key=not self.is_file)
        schema.add_field("document_id", DataType.INT64)
        schema.add_field("path", DataType.VARCHAR, max_length=MAX_PATH_BYTES)
        schema.add_field("date", DataType.INT64)
        schema.add_field(
            "tags", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=MAX_TAGS, max_length=MAX_TAG_BYTES
        )
        schema.add_field("card", DataType.VARCHAR, max_length=_MAX_TEXT_BYTES)
        schema.add_field(
            "more", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=_MAX_TEXTS, max_length=_MAX_TEXT_BYTES
        )
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        indexes = client.prepare_index_params()
        indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        if dimension:
            schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dimension)
            # In a file with 100,000 rows, AUTOINDEX finds a third of the nearest ones, for any limit.
            indexes.add_index("dense", index_type="FLAT" if self.is_file else "AUTOINDEX", metric_type="IP")
        client.create_collection(
            name,
            schema=schema,
            index_params=indexes,
            consistency_level=self._options.consistency_level,
            timeout=timeout,
        )

    def _connect(self) -> Any:
        began = time.monotonic()
        with self._lock:
            if self._client is None:
                failed_at, error = self._last_error
                if error is not None and failed_at >= began:
                    raise error  # while this thread waited: all that wait fail at once, and not one after the other
                try:
                    self._client = self._open_client()
                except Exception as error:
                    self._last_error = time.monotonic(), error
                    raise
            return self._client

    def _open_client(self) -> Any:
        """Return a client of a server that answers; for a moment after a failure, gRPC itself says that it is away."""
        deadline = time.monotonic() + self._options.timeout
        while True:
            client = None
            try:
                client = open_client(self._options, is_file=self.is_file)
                if not self.is_file:
                    self._check_version(str(client.get_server_version(timeout=self._options.timeout)))
                return client
            except BaseException as error:
                if client is not None:
                    close_client(client, self._options, is_file=self.is_file)
                is_away = isinstance(error, Exception) and "UNAVAILABLE" in _rpc_status(_rpc_cause(error))
                if not is_away or time.monotonic() > deadline:
                    raise
            time.sleep(_RECONNECT_SECONDS)

    def _disconnect(self, client: Any) -> None:
        """Connect again at the next request: after a failure, gRPC would wait for up to two minutes by itself."""
        with self._lock:
            if self._client is not client:
                return  # another thread was faster
            self._client, self._has_found_rows = None, False
        close_client(client, self._options, is_file=self.is_file)

    def _check_version(self, version: str) -> None:
        numbers = re.search(r"(\d+)\.(\d+)", version)  # a build of Milvus from source has none
        if numbers and (int(numbers[1]), int(numbers[2])) < _MIN_VERSION:
            raise IndexFailure(
                f"Milvus at {self.location} has the version {version}, which is older than 2.5",
                hint="Upgrade the server, or set index.kind to embedded.",
            )

    def _read(self, request: Callable[[Any, float], T]) -> T:
        # The first rows are found when a file has been read: ten seconds for 100,000 rows.
        is_opening = self.is_file and not self._has_found_rows
        return self._call(request, self._options.write_timeout if is_opening else self._options.timeout)

    def _write(self, request: Callable[[Any, float], T]) -> T:
        """Run a request that may be repeated: writes replace rows of the same ids."""
        delay = _FIRST_DELAY_SECONDS
        for attempt in range(self._options.retries + 1):
            try:
                return self._call(request, self._options.write_timeout)
            except IndexFailure as failure:
                if not failure.is_away or attempt == self._options.retries:
                    raise
            time.sleep(delay)
            delay *= 2
        raise AssertionError("the last attempt returns or raises")

    def _call(self, request: Callable[[Any, float], T], timeout: float) -> T:
        client = None
        try:
            client = self._connect()
            return request(client, timeout)
        except IndexFailure:
            raise
        except Exception as error:  # pymilvus raises errors of its own, of gRPC, and plain ones
            cause = _rpc_cause(error)
            failure = self._explain(cause, timeout)
            # After a request that took too long, others may go on.
            if client is not None and failure.is_away and "DEADLINE_EXCEEDED" not in _rpc_status(cause):
                self._disconnect(client)
            raise failure from error

    def _explain(self, error: Exception, timeout: float) -> IndexFailure:
        """Return a sentence about the failure, and a remedy."""
        status = _rpc_status(error)
        text = error.details() if hasattr(error, "details") else getattr(error, "message", "") or error
        detail = " ".join(str(text).split())
        if self._options.token:
            detail = detail.replace(self._options.token, "********")
        detail, lower = detail[:_MAX_MESSAGE_CHARS], detail.lower()
        if "open local milvus failed" in lower or "milvus-lite is required" in lower:
            return IndexFailure(
                f"The Milvus Lite file {self.location} cannot be opened: {detail}",
                hint="One process can open it at a time; for several, run a server and set milvus.uri to its URL. If"
                f" milvus-lite is missing: {install_command('milvus-lite')}.",
                is_away=True,
            )
        if "UNAUTHENTICATED" in status or _TOKEN_REJECTED.search(detail):
            return IndexFailure(
                f"Milvus at {self.location} rejected the token: {detail}",
                hint="Set milvus.token, or BUNKO_MILVUS_TOKEN in the environment.",
            )
        if _DISK_FULL.search(detail):
            return IndexFailure(
                f"Milvus at {self.location} has no disk space left: {detail}",
                hint="Free some there, then run: bunko index sync.",
            )
        if "UNIMPLEMENTED" in status or "sdk is incompatible" in lower:
            return IndexFailure(
                f"{self.location} is not a Milvus server that bunko can use: {detail or status}",
                hint="Check milvus.uri, and the version of the server: 2.5 or newer.",
            )
        is_refused = "RESOURCE_EXHAUSTED" in status  # such as a message that is too large
        if not is_refused and (status or getattr(error, "code", None) == 2 or "timeout" in lower or "connect" in lower):
            reason = f"no answer within {timeout:g} s" if "DEADLINE_EXCEEDED" in status else detail
            return IndexFailure(
                f"Milvus at {self.location} is away: {reason}",
                hint="Check that it runs and that milvus.uri is right; or set index.kind to embedded.",
                is_away=True,
            )
        return IndexFailure(
            f"Milvus at {self.location} failed: {detail or type(error).__name__}",
            hint="Check the log of the server, its version (2.5 or newer) and its free disk space.",
        )


def split_card(text: str) -> dict[str, Any]:
    """Return the fields of a row that hold a packed card."""
    parts = [text[start : start + _MAX_TEXT_BYTES] for start in range(0, len(text), _MAX_TEXT_BYTES)]
    return {"card": parts[0], "more": parts[1:]}


def _rpc_cause(error: Exception) -> Exception:
    """Return gRPC's error where pymilvus only says that it cannot connect; else the error itself."""
    causes = (error, error.__cause__, error.__context__)
    return next((cause for cause in causes if isinstance(cause, Exception) and _rpc_status(cause)), error)


def _rpc_status(error: Exception) -> str:
    """Return the status of an error of gRPC, such as StatusCode.UNAVAILABLE; an empty string for other errors."""
    return str(error.code()) if type(error).__module__.startswith("grpc") and hasattr(error, "code") else ""


# A process can open a file once, and pymilvus closes it for all clients.
_clients: dict[str, Any] = {}
_users: Counter[str] = Counter()
_lock = threading.Lock()


def open_client(options: MilvusOptions, *, is_file: bool) -> Any:
    """Return a client that is connected."""
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise IndexFailure(
            "The index milvus needs the package pymilvus",
            hint=f"Install it: {install_command('milvus')}; or set index.kind to embedded.",
        ) from error
    # pymilvus logs each failed request with its traceback; what went wrong is in our errors.
    for name in ("pymilvus", *(key for key in logging.root.manager.loggerDict if key.startswith("pymilvus."))):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not is_file:
        return MilvusClient(
            options.uri,
            token=options.token,
            db_name=options.database,
            timeout=options.timeout,
            alias=f"bunko-{secrets.token_hex(8)}",  # else pymilvus shares a connection, and closes it for all
        )
    Path(options.uri).parent.mkdir(parents=True, exist_ok=True)
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that Milvus Lite imports
        if options.uri not in _clients:
            _clients[options.uri] = MilvusClient(options.uri, timeout=options.timeout)
        _users[options.uri] += 1
        return _clients[options.uri]


def close_client(client: Any, options: MilvusOptions, *, is_file: bool) -> None:
    """Close a client, that of a file after its last use."""
    if not is_file:
        with suppress(Exception):  # nothing is lost: each request was complete
            client.close()
        return
    with _lock:
        _users[options.uri] -= 1
        if _users[options.uri] > 0:
            return
        del _clients[options.uri], _users[options.uri]
        with suppress(Exception):
            client.close()
        with suppress(ImportError, AttributeError):  # another version of milvus-lite
            from milvus_lite.server_manager import server_manager_instance

            # It would keep the file until the process ends.
            server_manager_instance.release_server(options.uri)
