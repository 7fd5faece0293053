"""The supervisor of server processes, over small processes that end as a test tells them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals work differently there")

PATIENCE = 60.0
SCRIPT = """
import multiprocessing, os, signal, sys, time
from bunko.interfaces.http import supervisor

def work():
    supervisor.prepare_worker(0.5)
    BODY

if __name__ == "__main__":
    supervisor._FIRST_DELAY_SECONDS, supervisor._MAX_DELAY_SECONDS, supervisor._STOP_SECONDS = 0.01, 0.05, LIMIT
    context = multiprocessing.get_context("fork")
    reports = []

    def start():
        process = context.Process(target=work)
        process.start()
        return process

    def report(text):
        print(text, flush=True)
        reports.append(text)
        if len(reports) == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    supervisor.Supervisor(start, COUNT, report).run()
    print("ended", flush=True)
"""


def start(body: str, *, count: int = 1, stop_seconds: float = 5.0) -> subprocess.Popen[str]:
    script = SCRIPT.replace("BODY", body).replace("COUNT", str(count)).replace("LIMIT", str(stop_seconds))
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_process_that_keeps_ending_is_started_less_and_less_often() -> None:
    output, errors = start("sys.exit(3)").communicate(timeout=PATIENCE)
    assert errors == ""
    *reports, last = output.splitlines()
    assert last == "ended"
    assert all("Worker 1 (process " in report and ") ended with exit code 3." in report for report in reports)
    delays = [report.rpartition(" in ")[2] for report in reports]
    assert delays == ["0.01 s.", "0.02 s.", "0.04 s.", "0.05 s.", "0.05 s."]


def test_a_process_that_does_not_end_in_time_is_killed() -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('started', flush=True); time.sleep(600)"
    with start(body, count=2, stop_seconds=0.2) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["started\n"] * 2
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "ended\n", "")


def test_a_second_signal_kills_at_once() -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: print('told', flush=True)); print('started', flush=True)\n"
    body += "    while True: time.sleep(600)"
    with start(body, stop_seconds=600) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "told\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "ended\n", "")


def test_a_process_that_cannot_be_started_is_tried_again_and_the_others_go_on() -> None:
    start_one = "        process = context.Process(target=work)\n"
    failing = start_one + "        attempts.append(1)\n        if len(attempts) > 1: raise OSError(11, 'Try again')\n"
    script = SCRIPT.replace("reports = []", "reports, attempts = [], []").replace(start_one, failing)
    body = "time.sleep(600)"
    script = script.replace("BODY", body).replace("COUNT", "2").replace("LIMIT", "5.0")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *reports, last = done.stdout.splitlines()
    assert last == "ended"
    assert reports[0] == "Worker 2 cannot be started: Try again. Next try in 0.01 s."
    assert len(reports) == 5
