"""Log how long named steps take, and format the current time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime

_NO_TIMER = nullcontext()  # created once: a search uses a dozen timers


def timer(label: str, log: logging.Logger, *, detail: str = "", indent: int = 0) -> AbstractContextManager[None]:
    """Log how long the block took, in milliseconds, at DEBUG."""
    return _log_duration(label, log, detail, indent) if log.isEnabledFor(logging.DEBUG) else _NO_TIMER


@contextmanager
def _log_duration(label: str, log: logging.Logger, detail: str, indent: int) -> Iterator[None]:
    start = time.perf_counter()
    yield
    elapsed = (time.perf_counter() - start) * 1000
    log.debug("[TIMER] %s%s: %.1fms%s", "  " * indent, label, elapsed, f" ({detail})" if detail else "")


def now() -> str:
    """Return the current time in UTC, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")
