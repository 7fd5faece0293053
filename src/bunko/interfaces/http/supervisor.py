"""Keep several server processes running: start one again that ends, replace them one by one, and end them together."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

# A process that ended sooner failed to start, or fails at its first requests: the next attempt waits, twice as long
# each time.
_STABLE_SECONDS = 10.0
FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS = 0.5, 30.0
_CALL_SECONDS = 5.0  # for calls that still run when all processes end; one that is replaced has longer
STOP_SECONDS = 15.0  # more than that, and then the library
_READY_SECONDS = 60.0  # for a new process to answer, before the old ones are kept
_LEAVE_SECONDS = 60.0  # for an old one: more than it gives its calls, and then the library
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Closing a terminal sends it too, and then the server shall end.
_REPLACE_SIGNAL = None if os.isatty(0) else getattr(signal, "SIGHUP", None)


Start = Callable[[], tuple[BaseProcess, Connection]]  # the connection says when the process can answer


class _Worker:
    """One place for a process, which may be empty until the next attempt."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: BaseProcess | None = None
        self.ready: Connection | None = None
        self.started_at = 0.0
        self.next_start = 0.0
        self.short_lives = 0  # in a row

    def plan_start(self) -> float:
        """Return after how many seconds the next process is to be started, now that the last one has ended."""
        has_lasted = time.monotonic() - self.started_at >= _STABLE_SECONDS
        self.short_lives = 0 if has_lasted else self.short_lives + 1
        delay = min(FIRST_DELAY_SECONDS * 2.0 ** max(0, self.short_lives - 1), MAX_DELAY_SECONDS)
        self.next_start = time.monotonic() + delay
        return delay

    def can_answer(self) -> bool:
        """Return whether the process says so; one that ends only closes the connection."""
        if self.ready is None or not self.ready.poll():
            return False
        try:
            return bool(self.ready.recv())
        except EOFError:
            self.ready = None
            return False


class Supervisor:
    """Runs a number of processes until SIGINT or SIGTERM, and reports what happens to them; SIGHUP replaces them.

    The socket that they share is closed before they end. Else connections would wait for somebody to accept them, and a
    load balancer asks another server only if it is refused.
    """

    def __init__(self, start: Start, count: int, report: Callable[[str], None], listener: socket.socket) -> None:
        self._start, self._report, self._listener = start, report, listener
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._signals: list[int] = []
        self._to_replace: list[_Worker] = []
        self._successor: _Worker | None = None  # starts for the first of these
        self._leaving: _Worker | None = None  # finishes its calls
        self._leaving_until = 0.0

    def run(self) -> None:
        """Return once all processes have ended; raise KeyboardInterrupt after SIGINT."""
        with _signal_socket(self._signals) as signalled:
            try:
                while not self._is_ending():
                    self._start_due()
                    self._replace()
                    wait([*self._sentinels(), signalled], self._seconds_to_wait())
                    with suppress(BlockingIOError):
                        signalled.recv(64)
                    self._notice_ended()
            finally:
                self._listener.close()
                self._stop()
        if signal.SIGINT in self._signals:
            raise KeyboardInterrupt

    def _is_ending(self) -> bool:
        return any(number in _END_SIGNALS for number in self._signals)

    def _start_due(self) -> None:
        for worker in self._workers:
            if worker.process is None and worker.next_start <= time.monotonic():
                self._start_process(worker)

    def _start_process(self, worker: _Worker) -> None:
        worker.started_at = time.monotonic()
        try:
            worker.process, worker.ready = self._start()
        except OSError as error:  # too many processes, or no memory
            delay = worker.plan_start()
            self._report(f"Worker {worker.number} cannot be started: {error.strerror}. Next try in {delay:g} s.")

    def _replace(self) -> None:
        """Take the next step of replacing the processes one by one: no old one ends before a new one answers."""
        if _REPLACE_SIGNAL in self._signals:
            self._signals[:] = [number for number in self._signals if number != _REPLACE_SIGNAL]
            self._to_replace = list(self._workers)
            self._report("The workers are replaced one by one.")
        leaving = self._leaving.process if self._leaving is not None else None
        if leaving is not None and time.monotonic() > self._leaving_until:
            leaving.kill()
        if self._leaving is not None and (leaving is None or not leaving.is_alive()):
            self._leaving = None
            if not self._to_replace:
                self._report("All workers are replaced.")
        if self._successor is not None:
            self._judge_successor(self._successor)
        elif self._leaving is None and self._to_replace:
            self._successor = _Worker(self._to_replace[0].number)
            self._start_process(self._successor)

    def _judge_successor(self, successor: _Worker) -> None:
        """Let a new process take its place if it answers, or keep the old ones if it will not."""
        process = successor.process
        if process is not None and successor.can_answer() and process.is_alive():
            place = self._to_replace.pop(0)
            self._leaving = _Worker(place.number)
            self._leaving.process = place.process
            place.process, place.ready, place.started_at = process, None, successor.started_at
            self._successor, self._leaving_until = None, time.monotonic() + _LEAVE_SECONDS
            if self._leaving.process is not None:
                self._leaving.process.terminate()
        elif process is None or not process.is_alive() or time.monotonic() - successor.started_at > _READY_SECONDS:
            if process is not None:
                process.kill()
            self._to_replace, self._successor = [], None
            self._report(f"Worker {successor.number} is not replaced, because the new process does not answer.")

    def _processes(self) -> list[BaseProcess]:
        workers = [*self._workers, *filter(None, (self._successor, self._leaving))]
        return [worker.process for worker in workers if worker.process is not None]

    def _sentinels(self) -> list[Any]:
        successor = self._successor
        ready = [successor.ready] if successor is not None and successor.ready is not None else []
        return [*(process.sentinel for process in self._processes()), *ready]

    def _seconds_to_wait(self) -> float | None:
        waiting = [worker.next_start for worker in self._workers if worker.process is None]
        if self._successor is not None:
            waiting.append(self._successor.started_at + _READY_SECONDS)
        if self._leaving is not None:
            waiting.append(self._leaving_until)
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _notice_ended(self) -> None:
        """Plan the next start of each process that has ended."""
        for worker in self._workers:
            process = worker.process
            if process is None or process.is_alive():
                continue
            worker.process, delay = None, worker.plan_start()
            if not self._is_ending():
                code = process.exitcode
                end = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
                self._report(
                    f"Worker {worker.number} (process {process.pid}) ended with {end}."
                    f" It is started again in {delay:g} s."
                )

    def _stop(self) -> None:
        """End all processes, and kill those that take too long or if a second signal comes."""
        processes = self._processes()
        for process in processes:
            process.terminate()
        started_at, has_hurried = time.monotonic(), False
        while any(process.is_alive() for process in processes):
            seconds = time.monotonic() - started_at
            if seconds > STOP_SECONDS or sum(number in _END_SIGNALS for number in self._signals) > 1:
                for process in processes:
                    process.kill()
            elif seconds > _CALL_SECONDS and not has_hurried:
                has_hurried = True
                for process in processes:
                    # Let a process that is already ending wait for its calls no longer.
                    if process.pid is not None and process.is_alive():
                        with suppress(ProcessLookupError):
                            os.kill(process.pid, signal.SIGINT)
            wait([process.sentinel for process in processes if process.is_alive()], 0.2)
        for process in processes:
            process.join()


@contextmanager
def _signal_socket(received: list[int]) -> Iterator[socket.socket]:
    """Collect the signals to a server; yield a socket that becomes readable with each of them."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)

    numbers = _END_SIGNALS if _REPLACE_SIGNAL is None else (*_END_SIGNALS, _REPLACE_SIGNAL)
    previous = {number: signal.signal(number, note) for number in numbers}
    previous_descriptor = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield ours
    finally:
        signal.set_wakeup_fd(previous_descriptor)
        for number, handler in previous.items():
            signal.signal(number, handler)
        ours.close()
        theirs.close()


def prepare_worker(end_seconds: float = STOP_SECONDS) -> threading.Event:
    """Let this process end only with its supervisor: by its SIGTERM, or because it is gone.

    Ctrl-C at a terminal and `killall -HUP` reach all processes, but only the supervisor acts on them. The event that is
    returned is set when the process shall end: code that the exit interrupts may turn it into an exception of its own.
    """
    is_ending = threading.Event()

    def end(*_: object) -> None:
        is_ending.set()
        sys.exit(0)

    for number in filter(None, (signal.SIGINT, _REPLACE_SIGNAL)):
        signal.signal(number, signal.SIG_IGN)
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
