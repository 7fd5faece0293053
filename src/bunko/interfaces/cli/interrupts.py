"""Let Ctrl-C cancel one piece of asynchronous work instead of the whole process."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import anyio


@contextmanager
def cancel_on_interrupt() -> Iterator[anyio.CancelScope]:
    """Cancel the block at Ctrl-C; whether that happened is `cancel_called` of the scope."""
    with anyio.CancelScope() as scope:
        if threading.current_thread() is not threading.main_thread():  # signals go to the main thread only
            yield scope
            return
        loop = asyncio.get_running_loop()
        previous = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(scope.cancel))
        try:
            yield scope
        finally:
            signal.signal(signal.SIGINT, previous)
