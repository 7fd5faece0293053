"""Times a named step and logs it, so that `--verbose` shows where a search or an import spends its time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def timer(label: str, log: logging.Logger, *, detail: str = "", indent: int = 0) -> Iterator[None]:
    """Log how long the block took, in milliseconds, at DEBUG."""
    if not log.isEnabledFor(logging.DEBUG):
        yield
        return
    start = time.perf_counter()
    yield
    elapsed = (time.perf_counter() - start) * 1000
    log.debug("[TIMER] %s%s: %.1fms%s", "  " * indent, label, elapsed, f" ({detail})" if detail else "")
