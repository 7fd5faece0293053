"""Lines of a client, read and written without threads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from bunko.interfaces.mcp import stdio
from bunko.interfaces.mcp.stdio import LineReader, LineWriter

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there, threads read and write")


def read_lines(*pieces: bytes) -> list[str]:
    """Send pieces one by one, and return the lines that arrive."""
    receiving, sending = os.pipe()

    async def run() -> list[str]:
        lines: list[str] = []

        async def read() -> None:
            async for line in LineReader(receiving):
                lines.append(line)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for piece in pieces:
                os.write(sending, piece)
                await anyio.wait_all_tasks_blocked()
            os.close(sending)
        return lines

    try:
        return anyio.run(run)
    finally:
        os.close(receiving)


def test_lines_arrive_whole_however_they_are_cut() -> None:
    text = '{"query": "京都"}\n'.encode()

    assert read_lines(text[:12], text[12:] + b"2\n3", b"3\n", b"4\n5\n") == ['{"query": "京都"}', "2", "33", "4", "5"]


def test_a_last_line_without_an_end_counts_and_bad_bytes_are_replaced() -> None:
    assert read_lines(b"\xff1\n", b"2") == ["\ufffd1", "2"]
    assert read_lines() == []


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_client_that_does_not_read_keeps_nobody_else_waiting(kind: str) -> None:
    if kind == "pipe":
        receiving, sending = os.pipe()
    else:
        receiving, sending = (end.detach() for end in socket.socketpair())
    line, received = ("あ" * 1_000_000 + "\n").encode(), bytearray()

    async def run() -> None:
        writer = LineWriter(sending)
        writer.write(line[:10])
        writer.write(line[10:])  # the pipe is full, and this goes on
        assert 0 < writer.waiting_bytes < len(line)
        assert os.get_blocking(sending)
        async with anyio.create_task_group() as tasks:

            async def drain() -> None:
                await writer.drain()
                assert writer.waiting_bytes == 0
                writer.close()
                os.close(sending)

            tasks.start_soon(drain)
            while data := await anyio.to_thread.run_sync(os.read, receiving, 1_000_000):
                received.extend(data)

    anyio.run(run)
    os.close(receiving)

    assert received == line


def test_a_client_that_has_gone_is_an_error() -> None:
    receiving, sending = os.pipe()
    os.close(receiving)

    async def run() -> None:
        writer = LineWriter(sending)
        writer.write(b"text\n")
        assert isinstance(await writer.failure, BrokenPipeError)
        writer.write(b"more\n")
        await writer.drain()

    with pytest.raises(BrokenPipeError):
        anyio.run(run)
    os.close(sending)


def test_a_line_without_an_end_is_cut_so_that_it_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE_BYTES", 10)
    monkeypatch.setattr(stdio, "READ_BYTES", 4)
    assert read_lines(b"x" * 1000 + b"\nnext\n") == ["x" * 12, "next"]


PRINTING = """
import anyio, sys
from bunko.interfaces.mcp.stdio import claim_stdio

async def main():
    with claim_stdio() as (reader, writer):
        print("printed")
        async for line in reader:
            writer.write((line.upper() + sys.stdin.read() + "\\n").encode())
        await writer.drain()
    print("after", flush=True)

anyio.run(main)
"""


@pytest.mark.slow
def test_what_is_printed_does_not_reach_the_client() -> None:
    program = [sys.executable, "-c", PRINTING]
    result = subprocess.run(program, input="hello\n", capture_output=True, text=True, check=True)

    assert result.stdout == "HELLO\nafter\n"
    assert result.stderr == "printed\n"


@pytest.mark.slow
def test_files_are_read_and_written_in_the_same_way(tmp_path: Path) -> None:
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    questions.write_bytes(b"hello\r\nworld")
    with questions.open() as source, answers.open("w") as target:
        program = [sys.executable, "-c", PRINTING]
        result = subprocess.run(program, stdin=source, stdout=target, stderr=subprocess.PIPE, text=True, check=True)

    assert answers.read_text() == "HELLO\nWORLD\nafter\n"
    assert result.stderr == "printed\n"


@pytest.mark.slow
def test_a_client_may_use_a_socket() -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-c", PRINTING], stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=-1
        ) as process,
    ):
        theirs.close()
        ours.sendall(b"hello\n")
        ours.shutdown(socket.SHUT_WR)
        with ours.makefile() as answers:
            assert answers.read() == "HELLO\nafter\n"
        assert process.wait() == 0
