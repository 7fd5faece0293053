"""Report searches, imports, cache lookups and timings of this process to a listener, such as a server's metrics.

There is no listener unless somebody sets one, and then a report costs next to nothing. A report has the names of modes,
stages and outcomes, never a query, a path or a name that somebody chose.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from bunko.types import Answer, Report

P = ParamSpec("P")
R = TypeVar("R", bound="Report")

SearchResult = Literal["hits", "none", "error"]
ImportResult = Literal["done", "interrupted", "error"]


class ActivityListener(Protocol):
    """Hears what this process does, from any of its threads."""

    def on_search(self, mode: str, result: SearchResult, seconds: float) -> None:
        """A search has ended; without a mode if it failed."""

    def on_import(self, result: ImportResult, documents: int) -> None:
        """An import of a tool has ended, and has written or removed some documents."""

    def on_cache(self, cache: str, *, is_hit: bool) -> None:
        """Something was looked up in a cache."""

    def on_stage(self, stage: str, seconds: float) -> None:
        """A step has ended."""


_listener: ActivityListener | None = None


def set_listener(listener: ActivityListener | None) -> None:
    """Report to this listener from now on."""
    global _listener
    _listener = listener


def current_listener() -> ActivityListener | None:
    """Return the listener, if there is one."""
    return _listener


@contextmanager
def reported_search() -> Iterator[Callable[[Answer], Answer]]:
    """Report a search; call what this yields with its answer, which it returns."""
    answers: list[Answer] = []
    start = time.perf_counter()

    def note(answer: Answer) -> Answer:
        answers.append(answer)
        return answer

    try:
        yield note
    finally:
        if _listener is not None:
            result: SearchResult = "error" if not answers else "hits" if answers[-1].hits else "none"
            _listener.on_search(answers[-1].mode if answers else "", result, time.perf_counter() - start)


def reports_import(method: Callable[P, R]) -> Callable[P, R]:
    """Report every call of a method that imports a tool."""

    @wraps(method)
    def import_tool(*args: P.args, **kwargs: P.kwargs) -> R:
        listener = _listener
        if listener is None:
            return method(*args, **kwargs)
        try:
            report = method(*args, **kwargs)
        except BaseException:
            listener.on_import("error", 0)
            raise
        changes = report.added + report.updated + report.deleted
        listener.on_import("interrupted" if report.interrupted else "done", changes)
        return report

    return import_tool


def report_lookup(cache: str, *, is_hit: bool) -> None:
    """Report whether something was in a cache."""
    if _listener is not None:
        _listener.on_cache(cache, is_hit=is_hit)
