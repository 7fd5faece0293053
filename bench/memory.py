"""Watch the anonymous memory of a process and its children: what they hold beside mapped files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SECONDS_BETWEEN = 0.2


class Peak:
    """The most bytes of anonymous memory that were seen; 0 where the system does not tell."""

    bytes = 0


@contextmanager
def watch_peak(pid: int) -> Iterator[Peak]:
    """Watch a process and its children during a block; pages that they share count once."""
    peak, is_over = Peak(), threading.Event()

    def watch() -> None:
        while not is_over.wait(_SECONDS_BETWEEN):
            peak.bytes = max(peak.bytes, sum(map(_anonymous_bytes, _process_tree(pid))))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()


def _process_tree(pid: int) -> list[int]:
    pids = [pid]
    try:
        children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has just ended
        return pids
    return pids + [child for text in children for each in text.split() for child in _process_tree(int(each))]


def _anonymous_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))
