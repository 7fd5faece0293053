"""Run a parser in a process of its own, so that a file that hangs or crashes it costs that file only."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

_MAX_MESSAGE_BYTES = 256 << 20
_MAX_MEMORY_BYTES, _MIN_MEMORY_BYTES = 1 << 30, 256 << 20  # a helper needs 30 MB for itself
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
# The modules beside a script have names of the standard library, so that its folder must not be on the path.
_OPTIONS = ("-P", "-W", "ignore")


class HelperProcess:
    """A script that answers one request after the other, because starting Python takes longer than most of them.

    A message is its length in four bytes and its content. An answer is some JSON objects; the last has the key "end"
    or "error".
    """

    def __init__(self, script: Path) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._owner = 0
        self._inherited: list[subprocess.Popen[bytes]] = []  # of the process that this one was forked from
        self.process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, request: bytes, max_seconds: float, arguments: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the answer to a request; `arguments` are those of the script, if it has to be started.

        Raise EOFError if it crashes or takes too long, and OSError if it cannot be started.
        """
        with self._lock:
            if self.process is not None and (self._owner != os.getpid() or self.process.poll() is not None):
                self.close()
            try:
                if self.process is None:
                    self.process, self._owner = _start(self._script, arguments), os.getpid()
                return list(_messages(self.process, request, max_seconds))
            except BaseException:
                self.close()  # it may still be busy with this request
                raise

    def close(self) -> None:
        """End the process, if there is one; the next request starts another."""
        process, self.process = self.process, None
        if process is None:
            return
        if self._owner != os.getpid():
            self._inherited.append(process)  # the original is still in use
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def read_request(stream: BinaryIO) -> bytes | None:
    """Return the next request of a script's input, None at its end."""
    header = stream.read(4)
    return stream.read(int.from_bytes(header, "big")) if header else None


def write_message(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write a message with its length."""
    data = json.dumps(message).encode()
    stream.write(len(data).to_bytes(4, "big") + data)


def memory_limit() -> int:
    """Return the bytes that a helper may have: all workers of an import together get half of the machine's memory."""
    from bunko.runtime.workers import default_worker_count

    total = _MAX_MEMORY_BYTES * 2 * default_worker_count()
    with suppress(ValueError, OSError, AttributeError):  # no such names on Windows
        total = min(total, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):  # "max": the container has no limit
        total = min(total, int(_CONTAINER_LIMIT.read_text(encoding="ascii")))
    return max(_MIN_MEMORY_BYTES, min(_MAX_MEMORY_BYTES, total // 2 // default_worker_count()))


def limit_memory(max_bytes: int) -> None:
    """Let this process have no more than this address space, where the system can do that."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))


def _start(script: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *_OPTIONS, str(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        # Ctrl-C on a terminal reaches all processes of its group; this one ends with its parent.
        start_new_session=True,
    )


def _messages(process: subprocess.Popen[bytes], request: bytes, max_seconds: float) -> Iterator[dict[str, Any]]:
    timer = threading.Timer(max_seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # noticed below
            process.stdin.write(len(request).to_bytes(4, "big"))
            process.stdin.write(request)
            process.stdin.flush()
        while True:
            length = int.from_bytes(process.stdout.read(4), "big")
            content = process.stdout.read(length) if 0 < length < _MAX_MESSAGE_BYTES else b""
            if not length or len(content) < length:
                raise EOFError
            message = json.loads(content)
            yield message
            if "error" in message or "end" in message:
                return
    finally:
        timer.cancel()
