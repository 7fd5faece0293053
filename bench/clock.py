"""Work in, the CPU time it took out: in this process with its peers taking turns, or in a process of its own."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

_LEAST_SECONDS = 0.02  # a round shorter than this measures the clock
_ROUNDS = 7
Result = TypeVar("Result")


@dataclass(slots=True)
class Spent:
    """What some work cost; all in seconds and bytes."""

    cpu: float = 0.0
    wall: float = 0.0
    peak: int = 0
    output: str = ""


def race(steps: Mapping[str, Callable[[], object]], rounds: int = _ROUNDS) -> dict[str, float]:
    """Return the best CPU seconds of a call of each step; they take turns, so that noise meets all of them."""
    numbers = {name: _enough(step) for name, step in steps.items()}
    best = dict.fromkeys(steps, float("inf"))
    with _without_collector():
        for _ in range(rounds):
            for name, step in steps.items():
                best[name] = min(best[name], _once(step, numbers[name]))
    return best


def cpu(step: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """Return the best CPU seconds of a call."""
    return race({"": step}, rounds)[""]


@contextmanager
def spent():
    """Measure the block: CPU of this process and of the children it waited for, and the time on the wall."""
    found = Spent()
    before, start = _used(), time.perf_counter()
    yield found
    found.wall = time.perf_counter() - start
    found.cpu = _used() - before


def child(arguments: Sequence[str], **environ: str) -> Spent:
    """Run this Python with some arguments; its CPU time includes that of the workers it started."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment(**environ), stdout=subprocess.PIPE, text=True
    )
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return Spent(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss * 1024, output)


def apart(work: Callable[..., Result], *arguments: object) -> Result:
    """Return what a function of a module returns in a process of its own.

    An allocator that has served a peer's gigabytes hands out large arrays without asking the system for their pages
    again; a process that holds a library and nothing else has no such luck, and takes twice as long for some queries.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def environment(**environ: str) -> dict[str, str]:
    """Return the environment without what would change a measurement: settings of bunko, uncached bytecode."""
    own = ("BUNKO_", "RAG_", "EMBEDDING_", "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)} | environ


def _used() -> float:
    # os.times() counts in hundredths of a second.
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _enough(step: Callable[[], object]) -> int:
    step()
    number = 1
    while True:
        seconds = _once(step, number) * number
        if seconds >= _LEAST_SECONDS:
            return number
        number = max(2 * number, int(number * _LEAST_SECONDS / seconds) if seconds else 0)


def _once(step: Callable[[], object], number: int) -> float:
    start = time.process_time()
    for _ in range(number):
        step()
    return (time.process_time() - start) / number


@contextmanager
def _without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
