"""Serve embeddings on loopback with a fixed latency, in a separate process."""

from __future__ import annotations

import asyncio
import base64
import json
import multiprocessing
import random
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection

_NO_MODELS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
SIZE = 768  # dimensions, as Gemini by default and nomic-embed-text have


@dataclass(slots=True)
class Service:
    """The address of the service, and its calls."""

    address: str
    _pipe: Connection

    def calls(self) -> list[int]:
        """Return the number of texts of each call since the last time."""
        self._pipe.send("calls")
        calls: list[int] = self._pipe.recv()
        return calls


@contextmanager
def run_service(milliseconds: float) -> Iterator[Service]:
    """Serve the format of OpenAI until the block ends."""
    parent_pipe, child_pipe = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(child_pipe, milliseconds / 1000), daemon=True
    )
    process.start()
    try:
        yield Service(f"http://127.0.0.1:{parent_pipe.recv()}/v1", parent_pipe)
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, delay: float) -> None:
    calls: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _read_head(reader):
            if head.startswith(b"GET "):  # whether the service is there
                writer.write(_NO_MODELS)
                continue
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            text_count = len(json.loads(await reader.readexactly(length))["input"])
            calls.append(text_count)
            await asyncio.sleep(delay)
            writer.write(_response(text_count))
            await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        asyncio.get_running_loop().add_reader(pipe.fileno(), send_calls)
        await server.serve_forever()

    def send_calls() -> None:
        pipe.recv()
        pipe.send(calls)
        calls.clear()

    asyncio.run(serve())


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@cache
def _response(text_count: int) -> bytes:
    """Return a complete response; the vectors do not affect the time, so they are generated once."""
    rng = random.Random(text_count)
    rows = [base64.b64encode(array("f", [rng.gauss(0, 1) for _ in range(SIZE)]).tobytes()) for _ in range(text_count)]
    data = [{"object": "embedding", "index": index, "embedding": row.decode()} for index, row in enumerate(rows)]
    body = json.dumps({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return (head + body).encode()
