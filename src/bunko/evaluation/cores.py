"""Units of work in, their results out as each is done: on all cores, or in this process where there is little to do."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

U = TypeVar("U")
R = TypeVar("R")

_MOST_WORKERS = 8


def number_of() -> int:
    """Return how many cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


def spread(
    work: Callable[[U], R], units: Sequence[U], workers: int, *, prepare: Callable[..., None], given: tuple[Any, ...]
) -> Iterator[tuple[U, R]]:
    """Yield each unit with its result; every process calls `prepare(*given)` once before its first."""
    done: set[int] = set()
    if workers > 1 and len(units) > 1:
        try:
            with _pool(min(workers, len(units)), prepare, given) as pool:
                waiting: dict[Future[R], int] = {}
                with _deaf():
                    for at, unit in enumerate(units):
                        waiting[pool.submit(work, unit)] = at
                for future in as_completed(waiting):
                    at = waiting[future]
                    yield units[at], future.result()
                    done.add(at)
        except BrokenProcessPool:
            # Where memory runs out the system kills a worker; one process needs less of it than several.
            pass
    left = [unit for at, unit in enumerate(units) if at not in done]
    if left:
        prepare(*given)
    for unit in left:
        yield unit, work(unit)


@contextmanager
def _pool(number: int, prepare: Callable[..., None], given: tuple[Any, ...]) -> Iterator[ProcessPoolExecutor]:
    # A forked worker starts at once with everything loaded, but a forked copy of another thread's lock can hang.
    alone = sys.platform == "linux" and threading.active_count() == 1
    context = get_context("fork" if alone else "spawn")
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_begin, initargs=(prepare, given))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Let workers be started deaf to Ctrl-C, which a terminal sends to all of us: who started them ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(prepare: Callable[..., None], given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `_deaf` is not possible

    def watch(parent: BaseProcess) -> None:
        # Workers hold each other's pipes open: without a watch none would notice that their parent was killed.
        parent.join()
        os._exit(1)

    if parent := parent_process():
        threading.Thread(target=watch, args=(parent,), daemon=True).start()
    prepare(*given)
