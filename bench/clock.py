"""Measure CPU time: of steps that take turns in this process, or of a child process."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

from bench.memory import watch_peak

_LEAST_SECONDS = 0.02  # a shorter round would measure the clock
_ROUNDS = 7
Result = TypeVar("Result")


@dataclass(slots=True)
class Cost:
    """The cost of some work, in seconds and bytes."""

    cpu: float = 0.0
    wall: float = 0.0
    peak: int = 0  # of the process alone, with the files that it has mapped
    anonymous: int = 0  # the peak of all processes together, without mapped files
    output: str = ""


def race(steps: Mapping[str, Callable[[], object]], rounds: int = _ROUNDS) -> dict[str, float]:
    """Return the best CPU seconds per call of each step; the steps take turns, so that noise affects all of them."""
    call_counts = {name: _call_count(step) for name, step in steps.items()}
    best = dict.fromkeys(steps, float("inf"))
    with _pause_gc():
        for _ in range(rounds):
            for name, step in steps.items():
                best[name] = min(best[name], _seconds_per_call(step, call_counts[name]))
    return best


def cpu(step: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """Return the best CPU seconds per call."""
    return race({"": step}, rounds)[""]


@contextmanager
def measure() -> Iterator[Cost]:
    """Measure a block: the CPU time of this process and of the children it waited for, and the wall time."""
    cost = Cost()
    before, start = _cpu_total(), time.perf_counter()
    yield cost
    cost.wall = time.perf_counter() - start
    cost.cpu = _cpu_total() - before


def run_child(arguments: Sequence[str], **environ: str) -> Cost:
    """Run this Python with arguments; its CPU time includes that of its workers."""
    return run_program([sys.executable, *arguments], **environ)


def run_program(command: Sequence[str], **environ: str) -> Cost:
    """Run a program; its CPU time includes that of its workers."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment(**environ), stdout=subprocess.PIPE, text=True)
    with watch_peak(process.pid) as anonymous:
        output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    seconds, wall_seconds = usage.ru_utime + usage.ru_stime, time.perf_counter() - start
    return Cost(seconds, wall_seconds, usage.ru_maxrss * 1024, anonymous.bytes, output)


def run_apart(work: Callable[..., Result], *arguments: object) -> Result:
    """Run a function in a separate process and return its result.

    An allocator that has served the gigabytes of a peer reuses their pages for large arrays without asking the system
    again; a process that holds only a library cannot, and takes twice as long for some queries.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def environment(**environ: str) -> dict[str, str]:
    """Return the environment without variables that would change a measurement, such as settings of bunko."""
    dropped_prefixes = ("BUNKO_", "RAG_", "EMBEDDING_", "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped_prefixes)} | environ


def _cpu_total() -> float:
    # os.times() counts in hundredths of a second.
    usages = [resource.getrusage(target) for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _call_count(step: Callable[[], object]) -> int:
    step()
    count = 1
    while True:
        seconds = _seconds_per_call(step, count) * count
        if seconds >= _LEAST_SECONDS:
            return count
        count = max(2 * count, int(count * _LEAST_SECONDS / seconds) if seconds else 0)


def _seconds_per_call(step: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - start) / count


@contextmanager
def _pause_gc() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
