"""A number in, so many other processes to work in out: deaf to Ctrl-C, and gone when the one that started them is."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MAX_WORKERS = 8


def default_worker_count() -> int:
    """Return how many processes to use where nobody says it: one for each core this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MAX_WORKERS)


class WorkerPool(ProcessPoolExecutor):
    """Processes that call `prepare(*given)` once each, then work; at the end, what is not begun is let go."""

    def __init__(
        self, count: int, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        # A forked worker starts at once with everything loaded. But a forked copy of another thread's lock can hang,
        # and a server has threads: there workers are spawned.
        alone = sys.platform == "linux" and threading.active_count() == 1
        context = get_context("fork" if alone else "spawn")
        super().__init__(count, mp_context=context, initializer=_start_worker, initargs=(initializer, initargs))

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Begin a piece of work; the first ones start the processes."""
        with _block_sigint():
            return super().submit(fn, *args, **kwargs)

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """Let workers be started deaf to Ctrl-C, which a terminal sends to all of us: who started them ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `_deaf` is not possible

    def watch(parent: BaseProcess) -> None:
        # Workers hold each other's pipes open: without a watch none would notice that their parent was killed.
        parent.join()
        os._exit(1)

    if parent := parent_process():
        threading.Thread(target=watch, args=(parent,), daemon=True).start()
    if initializer is not None:
        initializer(*initargs)
