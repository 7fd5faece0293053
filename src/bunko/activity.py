"""Report searches, imports, cache lookups and timings of this process to a listener, such as a server's metrics.

There is no listener unless somebody sets one, and then a report costs next to nothing. A report has the names of modes,
stages and outcomes, never a query, a path or a name that somebody chose.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from bunko.types import Answer, Report

P = ParamSpec("P")
A = TypeVar("A", bound="Answer")
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


def reports_search(method: Callable[P, A]) -> Callable[P, A]:
    """Report every call of a method that searches."""

    @wraps(method)
    def search(*args: P.args, **kwargs: P.kwargs) -> A:
        listener = _listener
        if listener is None:
            return method(*args, **kwargs)
        start = time.perf_counter()
        try:
            answer = method(*args, **kwargs)
        except BaseException:
            listener.on_search("", "error", time.perf_counter() - start)
            raise
        listener.on_search(answer.mode, "hits" if answer.hits else "none", time.perf_counter() - start)
        return answer

    return search


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
