"""A number of milliseconds in, a server of vectors on loopback out, in a process of its own, that answers so late."""

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

SIZE = 768  # numbers of a vector, as Gemini by default and nomic-embed-text give


@dataclass(slots=True)
class Service:
    """Where it listens, and what it was asked."""

    address: str
    _pipe: Connection

    def calls(self) -> list[int]:
        """Return how many texts each call had since this was asked last."""
        self._pipe.send("calls")
        found: list[int] = self._pipe.recv()
        return found


@contextmanager
def serving(milliseconds: float) -> Iterator[Service]:
    """Serve the format of OpenAI until the block ends."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(theirs, milliseconds / 1000), daemon=True)
    process.start()
    try:
        yield Service(f"http://127.0.0.1:{ours.recv()}/v1", ours)
    finally:
        process.terminate()
        process.join()


def _run(pipe: Connection, delay: float) -> None:
    calls: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            number = len(json.loads(await reader.readexactly(length))["input"])
            calls.append(number)
            await asyncio.sleep(delay)
            writer.write(_answer(number))
            await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        asyncio.get_running_loop().add_reader(pipe.fileno(), told)
        await server.serve_forever()

    def told() -> None:
        pipe.recv()
        pipe.send(calls)
        calls.clear()

    asyncio.run(serve())


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@cache
def _answer(number: int) -> bytes:
    """Return a whole answer; what the vectors are does not matter to the time, so that they are made once."""
    chance = random.Random(number)
    rows = [base64.b64encode(array("f", [chance.gauss(0, 1) for _ in range(SIZE)]).tobytes()) for _ in range(number)]
    data = [{"object": "embedding", "index": at, "embedding": row.decode()} for at, row in enumerate(rows)]
    body = json.dumps({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return (head + body).encode()
