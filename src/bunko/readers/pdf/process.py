"""Run PDFium in a process of its own, so that a file that hangs or crashes it costs that file only."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bunko.errors import SourceError

MAX_PAGES = 5000
MAX_CHARS = 20_000_000
MAX_SECONDS = 120.0  # PDFium reads several hundred pages a second
_MAX_MESSAGE_BYTES = 256 << 20
# The modules beside this file have names of the standard library, so that its folder must not be on the path.
_OPTIONS = ("-P", "-W", "ignore")


class _Extractor:
    """A process that reads one PDF after the other; starting Python takes as long as reading ten pages."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, *_OPTIONS, str(Path(__file__).with_name("extract.py")), str(MAX_PAGES), str(MAX_CHARS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            # Ctrl-C on a terminal reaches all processes of its group; this one ends with its parent.
            start_new_session=True,
        )

    def messages(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the answers for a PDF; raise SourceError if the process fails or takes too long."""
        timer = threading.Timer(MAX_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            stdin, stdout = self._process.stdin, self._process.stdout
            assert stdin is not None
            assert stdout is not None
            with suppress(BrokenPipeError):  # noticed below
                stdin.write(len(data).to_bytes(4, "big"))
                stdin.write(data)
                stdin.flush()
            while True:
                length = int.from_bytes(stdout.read(4), "big")
                content = stdout.read(length) if 0 < length < _MAX_MESSAGE_BYTES else b""
                if not length or len(content) < length:
                    raise SourceError(
                        f"The PDF cannot be read: it takes more than {MAX_SECONDS:.0f} seconds, or is damaged",
                        hint="Open it and save it again, split it, or exclude it.",
                    )
                message = json.loads(content)
                yield message
                if "error" in message or "end" in message:
                    return
        finally:
            timer.cancel()

    def is_usable(self) -> bool:
        """Return whether the process runs and belongs to this one; a forked process has a copy of this object."""
        return self.owner == os.getpid() and self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        if self.owner == os.getpid():
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()


_lock = threading.Lock()
_extractor: _Extractor | None = None
_inherited: list[_Extractor] = []  # copies in a forked process, whose originals are still in use


def extract(data: bytes) -> list[dict[str, Any]]:
    """Return the answers of `extract.py` for a PDF, one file at a time; raise SourceError if there is none."""
    global _extractor
    with _lock:
        if _extractor is not None and not _extractor.is_usable():
            close_process()
        try:
            if _extractor is None:
                _extractor = _Extractor()
            return list(_extractor.messages(data))
        except OSError as error:
            close_process()
            raise SourceError(
                f"The PDF cannot be read: no process could be started for it ({error.strerror})",
                hint="Close other programs, then import it again.",
            ) from error
        except BaseException:
            close_process()  # it may still be busy with this file
            raise


def close_process() -> None:
    """End the process, if there is one; the next file starts another."""
    global _extractor
    if _extractor is not None:
        if _extractor.owner != os.getpid():
            _inherited.append(_extractor)
        _extractor.close()
        _extractor = None


atexit.register(close_process)
