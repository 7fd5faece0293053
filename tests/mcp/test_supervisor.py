"""The supervisor of server processes, over small processes that end as a test tells them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals work differently there"),
]

PATIENCE = 60.0
SCRIPT = """
import multiprocessing, os, signal, socket, sys, time
from bunko.interfaces.http import supervisor

def say(text):
    os.write(1, text + b"\\n")  # at once, while other processes write, too

def work(ready):
    supervisor.prepare_worker(0.5)
    BODY

if __name__ == "__main__":
    supervisor.FIRST_DELAY_SECONDS, supervisor.MAX_DELAY_SECONDS, supervisor.STOP_SECONDS = 0.01, 0.05, LIMIT
    context = multiprocessing.get_context("fork")
    reports = []

    def start():
        reader, writer = context.Pipe(duplex=False)
        with writer:
            process = context.Process(target=work, args=(writer,))
            process.start()
        return process, reader

    def report(text):
        print(text, flush=True)
        reports.append(text)
        if len(reports) == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    listener = socket.create_server(("127.0.0.1", 0))
    supervisor.Supervisor(start, COUNT, report, listener).run()
    print("ended", flush=True)
"""


def script_of(body: str, *, count: int = 1, stop_seconds: float = 5.0) -> str:
    return SCRIPT.replace("BODY", body).replace("COUNT", str(count)).replace("LIMIT", str(stop_seconds))


@contextmanager
def running(script: str) -> Iterator[subprocess.Popen[str]]:
    """Run a supervisor; if the test fails, it and its processes are killed, else their pipes would never end."""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        stdin=subprocess.DEVNULL,  # not a terminal, where SIGHUP ends a server
    ) as process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


@pytest.mark.slow
def test_a_process_that_keeps_ending_is_started_less_and_less_often() -> None:
    with running(script_of("sys.exit(3)")) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert errors == ""
    *reports, last = output.splitlines()
    assert last == "ended"
    assert all("Worker 1 (process " in report and ") ended with exit code 3." in report for report in reports)
    delays = [report.rpartition(" in ")[2] for report in reports]
    assert delays == ["0.01 s.", "0.02 s.", "0.04 s.", "0.05 s.", "0.05 s."]


@pytest.mark.slow
def test_a_process_that_does_not_end_in_time_is_killed() -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); say(b'started'); time.sleep(600)"
    with running(script_of(body, count=2, stop_seconds=0.2)) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["started\n"] * 2
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "ended\n", "")


@pytest.mark.slow
def test_a_worker_leaves_the_signal_to_replace_it_to_its_supervisor() -> None:
    body = "os.kill(os.getpid(), signal.SIGHUP); say(b'stayed'); time.sleep(600)"
    with running(script_of(body)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stayed\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "ended\n", "")


@pytest.mark.slow
def test_a_second_signal_kills_at_once() -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: say(b'told')); say(b'started')\n    while True: time.sleep(600)"
    with running(script_of(body, stop_seconds=600)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "told\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "ended\n", "")


@pytest.mark.slow
def test_nobody_can_connect_to_a_server_that_only_finishes_its_calls() -> None:
    body = "port = listener.getsockname()[1]; listener.close(); signal.signal(signal.SIGTERM, lambda *_: say(b'told'))"
    with running(script_of(f"{body}; say(b'%d' % port)\n    while True: time.sleep(600)", stop_seconds=600)) as process:
        assert process.stdout is not None
        address = ("127.0.0.1", int(process.stdout.readline()))
        socket.create_connection(address, PATIENCE).close()
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "told\n"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, PATIENCE)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "ended\n", "")


@pytest.mark.slow
def test_a_process_that_cannot_be_started_is_tried_again_and_the_others_go_on() -> None:
    start_one = "            process = context.Process(target=work, args=(writer,))\n"
    failing = (
        "            attempts.append(1)\n            if len(attempts) > 1: raise OSError(11, 'Try again')\n" + start_one
    )
    script = script_of("time.sleep(600)", count=2).replace(start_one, failing)
    script = script.replace("reports = []", "reports, attempts = [], []")
    with running(script) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    *reports, last = output.splitlines()
    assert last == "ended"
    assert reports[0] == "Worker 2 cannot be started: Try again. Next try in 0.01 s."
    assert len(reports) == 5


@pytest.mark.slow
def test_a_process_stays_while_a_new_one_ends_without_an_answer() -> None:
    body = "ready.close(); say(b'started'); time.sleep(0.5 if reports else 600); sys.exit(1)"
    with running(script_of(body)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGHUP)
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert sorted(lines) == [
        "The workers are replaced one by one.\n",
        "Worker 1 is not replaced, because the new process does not answer.\n",
        "started\n",
    ]
    assert (process.returncode, output, errors) == (0, "ended\n", "")
