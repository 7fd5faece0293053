"""Report the progress of a long operation to its caller, and let the caller cancel it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import has come."""

    files: int
    total_files: int
    chunks: int
    bytes: int
    total_bytes: int
    last: str = ""  # the document that was written last


@dataclass(frozen=True, slots=True)
class CrawlProgress:
    """How far a crawl has come."""

    pages: int  # visited
    total: int  # known so far
    problems: int


def _ignore(_: object) -> None:
    pass


def _ignore_step(_step: str, _done: int, _total: int) -> None:
    pass


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Observer:
    """The callbacks of a long operation; those that are not given do nothing, and nothing is cancelled."""

    on_progress: Callable[[ImportProgress], None] = _ignore
    on_crawl: Callable[[CrawlProgress], None] = _ignore
    on_step: Callable[[str, int, int], None] = _ignore_step  # a step of an evaluation, and how much of it is done
    on_wait: Callable[[str], None] = _ignore  # another process has the library
    is_cancelled: Callable[[], bool] = _never  # checked between transactions: what was written stays

    def for_step(self, step: str) -> Observer:
        """Return an observer that reports an import as a step of an evaluation."""
        on_step = self.on_step
        return replace(self, on_progress=lambda progress: on_step(step, progress.files, progress.total_files))


NO_OBSERVER = Observer()
