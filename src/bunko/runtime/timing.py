"""Log and report how long named steps take, and format the current time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime

from bunko.runtime.activity import current_listener

_NO_TIMER = nullcontext()  # created once: a search uses a dozen timers


def timer(label: str, log: logging.Logger, *, detail: str = "", indent: int = 0) -> AbstractContextManager[None]:
    """Log how long the block took, in milliseconds, at DEBUG, and report it to the listener."""
    if current_listener() is None and not log.isEnabledFor(logging.DEBUG):
        return _NO_TIMER
    return _measure(label, log, detail, indent)


@contextmanager
def _measure(label: str, log: logging.Logger, detail: str, indent: int) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    listener = current_listener()
    if listener is not None:
        listener.on_stage(label, seconds)
    log.debug("[TIMER] %s%s: %.1fms%s", "  " * indent, label, seconds * 1000, f" ({detail})" if detail else "")


def now() -> str:
    """Return the current time in UTC, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")
