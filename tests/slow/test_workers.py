"""A server of several processes that lose one, their supervisor, or are told to stop."""

from __future__ import annotations

import http.client
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from bunko.stores.sqlite import schema
from tests.http.server import ask
from tests.slow import corpus
from tests.slow.serving import TOKEN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc"),
]
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Workers:
    """`bunko serve --http --workers 2` and its processes."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, temporary: Path) -> None:
        self.process, self.log, self.temporary = process, log, temporary
        corpus.wait_until(lambda: "Listening on" in self.output(), "it listens")
        self.port = int(self.output().partition("http://127.0.0.1:")[2].partition("/")[0])
        corpus.wait_until(lambda: self.count_starts() == 2, "both workers have started")

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def is_ready(self) -> bool:
        return ask(self.port, "/readyz").status == 200

    def count_starts(self) -> float:
        """Return how many workers have started, those that were killed since included."""
        text = ask(self.port, "/metrics", **BEARER).text
        return float(text.partition("\nbunko_worker_starts_total ")[2].partition("\n")[0] or 0)

    def pids(self) -> list[int]:
        """Return the worker processes that live now."""
        return [pid for pid in descendants(self.process.pid) if "spawn_main" in command_line(pid)]

    def has_replaced(self, pid: int) -> bool:
        """Return whether another process has taken the place of a worker."""
        pids = self.pids()
        return len(pids) == 2 and pid not in pids


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    pids = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [*pids, *(grandchild for child in pids for grandchild in descendants(child))]


def command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def has_opened_its_library(pid: int) -> bool:
    with suppress(OSError):  # a file of the list is closed before it is read
        return any("library.db" in str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir())
    return False


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def serving(docs: Path, folder: Path) -> Iterator[Workers]:
    docs.mkdir(exist_ok=True)
    corpus.write(docs, {"a.md": corpus.document("京都の寺")})
    temporary = folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "bunko", "serve", "--http", "--port", "0", "--workers", "2"]
    log = folder / "log"
    with open(log, "wb") as file:
        environ = corpus.environment(BUNKO_TOKEN=TOKEN, TMPDIR=str(temporary), XDG_CONFIG_HOME=str(folder / "config"))
        command += ["--docs-dir", str(docs)]
        # Not a terminal, where SIGHUP ends a server.
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield Workers(process, log, temporary)
    finally:
        for pid in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    with serving(tmp_path / "docs", tmp_path) as running:
        yield running


def test_a_killed_worker_is_replaced_and_the_other_answers_meanwhile(workers: Workers) -> None:
    first, second = workers.pids()
    for pid in (first, second):
        os.kill(pid, signal.SIGKILL)
        assert workers.is_ready()
        corpus.wait_until(partial(workers.has_replaced, pid), "the worker is replaced")
        assert f"(process {pid}) ended with signal 9" in workers.output()
    assert not {first, second} & set(workers.pids())
    corpus.wait_until(lambda: workers.count_starts() == 4, "two more have started")


def test_no_process_is_left_when_the_supervisor_is_killed(workers: Workers) -> None:
    pids = descendants(workers.process.pid)
    assert len(pids) >= 2
    workers.process.kill()
    workers.process.wait()
    corpus.wait_until(lambda: not any(map(is_alive, pids)), "all processes have ended")


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_all_processes_and_leaves_nothing_behind(
    workers: Workers, number: signal.Signals, exit_code: int
) -> None:
    pids = descendants(workers.process.pid)
    workers.process.send_signal(number)
    assert workers.process.wait(timeout=corpus.PATIENCE) == exit_code
    corpus.wait_until(lambda: not any(map(is_alive, pids)), "all processes have ended")
    assert "Traceback" not in workers.output()
    assert "started again" not in workers.output()
    assert not list(workers.temporary.glob("bunko-serve-*"))


def test_ctrl_c_at_a_terminal_reaches_all_processes_and_ends_them_once(workers: Workers) -> None:
    pids = descendants(workers.process.pid)
    for pid in (*workers.pids(), workers.process.pid):
        os.kill(pid, signal.SIGINT)
    assert workers.process.wait(timeout=corpus.PATIENCE) == 130
    corpus.wait_until(lambda: not any(map(is_alive, pids)), "all processes have ended")
    assert "Traceback" not in workers.output()


def test_a_worker_that_is_just_starting_ends_at_once_too(workers: Workers) -> None:
    for pid in workers.pids():
        os.kill(pid, signal.SIGKILL)
        corpus.wait_until(partial(workers.has_replaced, pid), "a new worker is starting")
    workers.process.send_signal(signal.SIGTERM)
    assert workers.process.wait(timeout=corpus.PATIENCE) == 0
    assert "Traceback" not in workers.output()


def test_hangup_replaces_the_workers_one_by_one_while_every_client_is_answered(workers: Workers) -> None:
    first = set(workers.pids())
    statuses: list[int] = []

    def is_replaced() -> bool:
        statuses.append(ask(workers.port, "/api/v1/search?q=kyoto", **BEARER).status)
        return "All workers are replaced" in workers.output()

    workers.process.send_signal(signal.SIGHUP)
    corpus.wait_until(is_replaced, "all workers are replaced")
    assert set(statuses) == {200}
    assert len(workers.pids()) == 2
    assert not first & set(workers.pids())
    assert workers.is_ready()
    assert "ended with" not in workers.output()


def test_a_worker_finishes_its_request_before_it_ends(workers: Workers) -> None:
    connections = []
    for _ in range(20):  # so that each worker has some
        connection = http.client.HTTPConnection("127.0.0.1", workers.port, timeout=corpus.PATIENCE)
        connection.putrequest("POST", "/api/v1/selections")
        for name, value in {**BEARER, "Content-Type": "application/json", "Content-Length": "38"}.items():
            connection.putheader(name, value)
        connection.endheaders(b'{"documents": ')  # the rest follows when all workers are ending
        connections.append(connection)
    assert workers.is_ready()
    for pid in workers.pids():
        os.kill(pid, signal.SIGTERM)
    corpus.wait_until(lambda: len(workers.pids()) == 2, "they have not ended")
    replies = []
    for connection in connections:
        connection.send(b'{"documents": ["a.md"]}}')
        replies.append(connection.getresponse().status)
        connection.close()
    assert replies == [201] * 20


def test_workers_stay_if_new_ones_do_not_answer(workers: Workers, tmp_path: Path) -> None:
    pids = set(workers.pids())
    corpus.wait_until(lambda: all(map(has_opened_its_library, pids)), "they do not read the settings any more")
    settings = tmp_path / "config" / "bunko" / "bunko.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[search\n", encoding="utf-8")
    workers.process.send_signal(signal.SIGHUP)
    corpus.wait_until(lambda: "Worker 1 is not replaced" in workers.output(), "the new one is given up")
    assert set(workers.pids()) == pids
    assert workers.is_ready(), workers.output()


def expect_refusals_until_replaced(
    workers: Workers, word: str, change_version: Callable[[int], object], version: int
) -> None:
    """Change the version of the tables under workers that know another one, and replace them."""

    def search() -> int:
        return ask(workers.port, f"/api/v1/search?q={word}", **BEARER).status

    assert search() == 200
    old = set(workers.pids())
    change_version(version + 1)  # as the first process of a newer bunko does
    assert [search() for _ in range(10)] == [503] * 10
    corpus.wait_until(lambda: not workers.is_ready(), "what was checked before is forgotten")
    assert set(workers.pids()) == old
    change_version(version)  # what the new workers know
    workers.process.send_signal(signal.SIGHUP)
    corpus.wait_until(lambda: "All workers are replaced" in workers.output(), "all workers are replaced")
    assert not old & set(workers.pids())
    assert [search() for _ in range(10)] == [200] * 10


def test_workers_refuse_tables_that_a_newer_bunko_changed_until_they_are_replaced(
    workers: Workers, tmp_path: Path
) -> None:
    def change_version(version: int) -> None:
        with closing(sqlite3.connect(tmp_path / "docs" / ".rag-index" / "library.db")) as connection:
            connection.execute(f"PRAGMA user_version = {version}")

    expect_refusals_until_replaced(workers, "K0007", change_version, schema.VERSION)
