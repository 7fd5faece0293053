"""Run work in a pool of processes that ignore Ctrl-C and exit with their parent."""

from __future__ import annotations

import gc
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
    """Return the default number of processes: one for each core this process may use, at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MAX_WORKERS)


class WorkerPool(ProcessPoolExecutor):
    """A pool whose processes each call `initializer(*initargs)` once; leaving it cancels work that has not started."""

    def __init__(
        self, count: int, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        # A forked worker starts at once with everything loaded. But a forked copy of another thread's lock can hang,
        # and a server has threads: with more than one thread, workers are spawned.
        can_fork = sys.platform == "linux" and threading.active_count() == 1
        context = get_context("fork" if can_fork else "spawn")
        super().__init__(count, mp_context=context, initializer=_start_worker, initargs=(initializer, initargs))

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Schedule a call; the first calls start the processes."""
        with _block_sigint():
            return super().submit(fn, *args, **kwargs)

    def kill(self) -> None:
        """Kill the processes, whatever they do; their results are lost."""
        # Killed first: one that is just starting would complain about what the shutdown takes away.
        for process in list((self._processes or {}).values()):
            process.kill()
        self.shutdown(wait=False, cancel_futures=True)

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """Block SIGINT while workers start: a terminal sends Ctrl-C to all of them, only the parent handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start_worker(initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `_block_sigint` has no effect
    # Collecting what the parent had would copy it, page by page.
    gc.freeze()

    def exit_with_parent(parent: BaseProcess) -> None:
        # Workers hold each other's pipes open: without this thread none would notice that their parent was killed.
        parent.join()
        os._exit(1)

    if parent := parent_process():
        threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
    if initializer is not None:
        initializer(*initargs)
