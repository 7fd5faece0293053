"""A server in place of Chroma that answers slowly, without end or with something else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO

import numpy as np
import pytest

from bunko.errors import IndexFailure
from bunko.indexes.chroma import server as server_module
from bunko.indexes.chroma.client import CollectionInfo
from bunko.indexes.chroma.server import ChromaServer
from bunko.indexes.options import ChromaOptions

COLLECTION = CollectionInfo("id", "name", {}, 3, {})
VECTOR = np.zeros(3, dtype=np.float32)


@contextmanager
def serve(write: Callable[[BinaryIO], object], *, timeout: float = 60.0) -> Iterator[ChromaServer]:
    """Run a server that answers every request with what a function writes, and yield a client of it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            with suppress(OSError):  # the client may have hung up
                write(self.wfile)  # type: ignore[arg-type]

        do_POST = do_GET  # noqa: N815, the name that the standard library looks for

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    client = ChromaServer(ChromaOptions(url=f"http://127.0.0.1:{server.server_port}", timeout=timeout))
    try:
        yield client
    finally:
        client.close()
        server.shutdown()
        server.server_close()


def answer_with(value: Any) -> Callable[[BinaryIO], object]:
    content = json.dumps(value).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(content)
    return lambda file: file.write(head + content)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n"])
def test_a_server_that_answers_byte_by_byte_is_given_up(head: bytes) -> None:
    def drip(file: BinaryIO) -> None:
        file.write(head)
        for _ in range(30):
            time.sleep(0.05)
            file.write(b"1")
            file.flush()
        file.write(b"\r\nContent-Length: 1\r\n\r\n1" if b"X-Slow" in head else b"111")

    with serve(drip, timeout=0.3) as client, pytest.raises(IndexFailure, match=r"no answer within 0\.3 s") as raised:
        client.count(COLLECTION)
    assert raised.value.is_away


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_ANSWER_BYTES", 1000)
    with serve(answer_with(["x" * 2000])) as client, pytest.raises(IndexFailure, match="more than 1,000 bytes"):
        client.count(COLLECTION)


@pytest.mark.parametrize("lists", [[], None, ["abc"], [5], {"0": 1}, "abc"])
def test_an_answer_of_another_form_is_told_in_a_sentence(lists: Any) -> None:
    with (
        serve(answer_with({"metadatas": lists})) as client,
        pytest.raises(IndexFailure, match="is not a Chroma server"),
    ):
        client.nearest(COLLECTION, VECTOR, 10)


def test_records_without_an_id_of_a_chunk_are_left_out() -> None:
    ids = [1, 2, -1, 0, 10**30, 2**63, 1.0, True, "1", None]
    records = [*({"chunk_id": chunk_id} for chunk_id in ids), None, "x", [1]]
    with serve(answer_with({"metadatas": [records]})) as client:
        assert client.nearest(COLLECTION, VECTOR, 100) == [1, 2]
        assert client.nearest(COLLECTION, VECTOR, 1) == [1]  # never more than asked for
    with serve(answer_with({"metadatas": [{"document_id": 1, "chunk_id": 2}, None, "x", [1]]})) as client:
        assert client.pairs(COLLECTION, at_most=10) == {(1, 2), (0, 0)}


def test_a_list_of_records_that_never_ends_is_given_up() -> None:
    with serve(answer_with({"metadatas": [{"document_id": 1, "chunk_id": 1}] * 1000})) as client:
        assert client.pairs(COLLECTION, at_most=2500) == {(1, 1)}


@pytest.mark.parametrize(
    "changes", [{"metadata": "abc"}, {"metadata": [1]}, {"configuration_json": {"hnsw": [1]}}], ids=str
)
def test_a_collection_of_another_form_is_told_in_a_sentence(changes: dict[str, Any]) -> None:
    answer = {"id": "1", "name": "x", "metadata": {}, "dimension": 3, "configuration_json": {}} | changes
    with serve(answer_with(answer)) as client, pytest.raises(IndexFailure, match="is not a Chroma server"):
        client.find("x")


def test_the_id_of_a_collection_is_only_a_part_of_the_address() -> None:
    odd = COLLECTION._replace(id="12\r\nX-Evil: é /../x")
    with serve(answer_with(3)) as client:
        assert client.count(odd) == 3
