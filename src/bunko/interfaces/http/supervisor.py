"""Keep several server processes running: start one again that ends, and end all of them together."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

# A process that ended sooner failed to start, or fails at its first requests: the next attempt waits, twice as long
# each time.
_STABLE_SECONDS = 10.0
_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.5, 30.0
_STOP_SECONDS = 15.0  # more than a worker gives the calls that still run, and then the library
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Worker:
    """One place for a process, which may be empty until the next attempt."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: BaseProcess | None = None
        self.started_at = 0.0
        self.next_start = 0.0
        self.short_lives = 0  # in a row

    def plan_start(self) -> float:
        """Return after how many seconds the next process is to be started, now that the last one has ended."""
        has_lasted = time.monotonic() - self.started_at >= _STABLE_SECONDS
        self.short_lives = 0 if has_lasted else self.short_lives + 1
        delay = min(_FIRST_DELAY_SECONDS * 2.0 ** max(0, self.short_lives - 1), _MAX_DELAY_SECONDS)
        self.next_start = time.monotonic() + delay
        return delay


class Supervisor:
    """Runs a number of processes until SIGINT or SIGTERM, and reports what happens to them."""

    def __init__(self, start: Callable[[], BaseProcess], count: int, report: Callable[[str], None]) -> None:
        self._start, self._report = start, report
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._signals: list[int] = []

    def run(self) -> None:
        """Return once all processes have ended; raise KeyboardInterrupt after SIGINT."""
        with _signal_socket(self._signals) as signalled:
            try:
                while not self._signals:
                    self._start_due()
                    wait([*self._sentinels(), signalled], self._seconds_until_start())
                    self._notice_ended()
            finally:
                self._stop()
        if signal.SIGINT in self._signals:
            raise KeyboardInterrupt

    def _start_due(self) -> None:
        for worker in self._workers:
            if worker.process is None and worker.next_start <= time.monotonic():
                worker.started_at = time.monotonic()
                try:
                    worker.process = self._start()
                except OSError as error:  # too many processes, or no memory
                    delay = worker.plan_start()
                    self._report(
                        f"Worker {worker.number} cannot be started: {error.strerror}. Next try in {delay:g} s."
                    )

    def _sentinels(self) -> list[Any]:
        return [worker.process.sentinel for worker in self._workers if worker.process is not None]

    def _seconds_until_start(self) -> float | None:
        waiting = [worker.next_start for worker in self._workers if worker.process is None]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _notice_ended(self) -> None:
        """Plan the next start of each process that has ended."""
        for worker in self._workers:
            process = worker.process
            if process is None or process.is_alive():
                continue
            worker.process, delay = None, worker.plan_start()
            if not self._signals:
                self._report(
                    f"Worker {worker.number} (process {process.pid}) ended with {_describe_exit(process.exitcode)}."
                    f" It is started again in {delay:g} s."
                )

    def _stop(self) -> None:
        """End all processes, and kill those that take too long or if a second signal comes."""
        processes = [worker.process for worker in self._workers if worker.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(process.is_alive() for process in processes):
            if time.monotonic() > deadline or len(self._signals) > 1:
                for process in processes:
                    process.kill()
            wait([process.sentinel for process in processes if process.is_alive()], 0.2)
        for process in processes:
            process.join()


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}"
    return f"exit code {code}"


@contextmanager
def _signal_socket(received: list[int]) -> Iterator[socket.socket]:
    """Collect the signals that end a server; yield a socket that becomes readable with each of them."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)

    previous = {number: signal.signal(number, note) for number in _SIGNALS}
    previous_descriptor = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield ours
    finally:
        signal.set_wakeup_fd(previous_descriptor)
        for number, handler in previous.items():
            signal.signal(number, handler)
        ours.close()
        theirs.close()


def prepare_worker(end_seconds: float = _STOP_SECONDS) -> threading.Event:
    """Let this process end only with its supervisor: by its SIGTERM, or because it is gone.

    Ctrl-C at a terminal reaches all processes, but only the supervisor acts on it. The event that is returned is set
    when the process shall end: code that the exit interrupts may turn it into an exception of its own.
    """
    is_ending = threading.Event()

    def end(*_: object) -> None:
        is_ending.set()
        sys.exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Before the server runs, and after it has let its calls end: an exception closes the library, a signal would not.
    signal.signal(signal.SIGTERM, end)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(end_seconds)
        os._exit(1)

    threading.Thread(target=end_with_parent, name="bunko-parent", daemon=True).start()
    return is_ending
