"""An import killed at any moment leaves each document whole, and the next one completes it."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import bunko
from bunko.interfaces.cli.main import INTERRUPTED_EXIT_CODE
from tests.slow import corpus
from tests.slow.corpus import Change, Contents

pytestmark = pytest.mark.slow

NAMES = sorted(
    {
        name
        for path in Path(bunko.__file__).parent.rglob("*.py")
        for name in re.findall(r'\breach_failpoint\("([^"]+)"\)', path.read_text(encoding="utf-8"))
        # Those of other commands and of other indexes have tests of their own.
        if not name.startswith(("backup.", "migrate.", "missing.", "index.", "pack.", "reembed."))
    }
)
# More than two transactions of documents, and enough new chunks that the derived file is written again.
SMALL = corpus.change(files=150, added=160, updated=30, removed=15, moved=15)
# Enough text that the import starts workers.
LARGE = corpus.change(files=60, added=50, updated=20, removed=5, moved=5, sections=4, sentences=120)
# What is passed once for each document, transaction or batch is tried at several of them; anything else at its first.
VISITS = {
    "store.commit": range(1, 8),
    "store.committed": range(1, 8),
    "store.removed": range(1, 5),
    "store.vectors": range(1, 5),
    "store.document": (1, 2, 30, 101, 200),
    "ingest.batch": range(1, 4),
}
# Passed only by `reindex --force`.
IN_A_REBUILD = {"store.swapped"}


@dataclass(frozen=True)
class Case:
    """A change of a folder, the folder's library before it, and what the library must come to."""

    change: Change
    library: Path  # the folder with its library, in the state before
    wanted: Contents

    def begun(self, docs: Path) -> None:
        """Make a copy of the folder with its library, and change the files."""
        shutil.copytree(self.library, docs)
        corpus.write(docs, self.change.after)


def _case(change: Change, folder: Path) -> Case:
    corpus.built_from_scratch(change.before, folder / "before")
    return Case(change, folder / "before" / "docs", corpus.built_from_scratch(change.after, folder / "after"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return _case(SMALL, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return _case(LARGE, tmp_path_factory.mktemp("large"))


@pytest.fixture
def killable() -> Iterator[list[subprocess.Popen[str]]]:
    """A list of processes that are ended with the test, whatever happens in it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate(timeout=corpus.PATIENCE)


def check_completed(docs: Path, case: Case, *flags: str) -> None:
    with corpus.opened(docs) as library:
        corpus.check_between(library, case.change)
    done = corpus.run("reindex", "--docs-dir", docs, *flags)
    assert done.returncode == 0, done.stderr
    with corpus.opened(docs) as library:
        assert corpus.contents(library) == case.wanted
        assert library.store.check() == ""
        report = library.reindex()
    assert (report.added, report.updated, report.deleted, report.moved) == (0, 0, 0, 0)


def test_there_are_places_to_die_at_every_step_of_writing() -> None:
    assert {name.partition(".")[0] for name in NAMES} >= {"store", "ingest", "derived"}
    assert VISITS.keys() <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "visit"), [(name, visit) for name in NAMES if name not in IN_A_REBUILD for visit in VISITS.get(name, (1,))]
)
def test_an_import_killed_at_a_named_place_is_whole_and_is_completed_by_the_next(
    name: str, visit: int, small: Case, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    small.begun(docs)
    died = corpus.run("reindex", "--docs-dir", docs, BUNKO_FAILPOINT=f"{name}:{visit}")
    assert died.returncode == -signal.SIGKILL, died.stderr
    check_completed(docs, small)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"ingest.removed", *IN_A_REBUILD}])
def test_a_first_import_killed_at_a_named_place_is_completed_by_the_next(
    name: str, small: Case, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    corpus.write(docs, SMALL.after)
    died = corpus.run("reindex", "--docs-dir", docs, BUNKO_FAILPOINT=name)
    assert died.returncode == -signal.SIGKILL, died.stderr
    check_completed(docs, Case(Change({}, SMALL.after, {}), docs, small.wanted))


@pytest.mark.parametrize("again", [(), ("--force",)], ids=["update", "rebuild"])
@pytest.mark.parametrize(
    "name", [*sorted(IN_A_REBUILD), "ingest.batch:2", "store.commit:3", "store.document:150", "derived.arrays"]
)
def test_a_rebuild_that_was_killed_changes_all_or_nothing_and_the_next_import_completes_it(
    name: str, again: tuple[str, ...], small: Case, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    small.begun(docs)
    died = corpus.run("reindex", "--force", "--docs-dir", docs, BUNKO_FAILPOINT=name)
    assert died.returncode == -signal.SIGKILL, died.stderr
    with corpus.opened(docs) as library:
        assert corpus.stored(library) in (small.change.before, small.change.after)
    check_completed(docs, small, *again)


def test_a_search_killed_while_it_absorbs_changes_loses_nothing(small: Case, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    small.begun(docs)
    died = corpus.run("search", "京都", "--docs-dir", docs, BUNKO_FAILPOINT="ingest.batch")
    assert died.returncode == -signal.SIGKILL, died.stderr
    check_completed(docs, small)


def wait_for_a_moment(chance: random.Random, process: subprocess.Popen[str], log: Path, seconds: float) -> None:
    """Wait for a random time of an import's length, or until the log of changes has grown to a random size."""
    size = chance.randrange(1, 1_000_000) if chance.random() < 0.5 else 0
    end = time.monotonic() + (chance.random() * seconds if not size else seconds)
    while time.monotonic() < end and process.poll() is None:
        if size and log.exists() and log.stat().st_size >= size:
            return
        time.sleep(0.001)


def imported(case: Case, docs: Path) -> float:
    """Import a change to its end and return how long that took: the span in which a kill can hit something."""
    case.begun(docs)
    begin = time.monotonic()
    assert corpus.run("reindex", "--docs-dir", docs).returncode == 0
    return time.monotonic() - begin


def none_running(pids: list[int]) -> bool:
    return not any(map(corpus.is_running, pids))


def kill(process: subprocess.Popen[str]) -> list[int]:
    """Kill a process as it stands, and return the processes it had started."""
    below = []
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)  # or it could start another one while we look
        below = corpus.processes_below(process.pid)
        process.kill()
    process.wait()
    return below


def test_an_import_killed_at_a_random_moment_is_whole_and_is_completed_by_the_next(
    small: Case, tmp_path: Path, killable: list[subprocess.Popen[str]]
) -> None:
    seconds = imported(small, tmp_path / "measured")
    chance = random.Random(22)
    killed = 0
    for number in range(22):
        docs = tmp_path / str(number)
        small.begun(docs)
        process = corpus.start("reindex", "--docs-dir", docs)
        killable.append(process)
        wait_for_a_moment(chance, process, docs / ".rag-index" / "library.db-wal", seconds)
        kill(process)
        killed += process.returncode == -signal.SIGKILL
        check_completed(docs, small)
        shutil.rmtree(docs)
    assert killed >= 11, "most imports ended before they were killed, so this proves little"


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the processes of an import are found in /proc, which is not there"
)


@needs_proc
def test_an_import_whose_worker_is_killed_goes_on_without(
    large: Case, tmp_path: Path, killable: list[subprocess.Popen[str]]
) -> None:
    docs = tmp_path / "docs"
    large.begun(docs)
    process = corpus.start("reindex", "--docs-dir", docs, "--workers", "2")
    killable.append(process)
    corpus.wait_until(lambda: len(corpus.workers_of(process.pid)) >= 2, "no worker was started")
    os.kill(corpus.workers_of(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=corpus.PATIENCE)
    assert process.returncode == 0, err
    assert "A worker process was killed" in err
    assert "Traceback" not in err
    check_completed(docs, large)


# Alone, an import forks its workers; in the background of a search, where there are threads, it spawns them.
@needs_proc
@pytest.mark.parametrize("command", [("reindex", "--workers", "2"), ("search", "京都")], ids=["reindex", "search"])
def test_an_import_with_workers_killed_at_a_random_moment_leaves_no_process_behind(
    command: tuple[str, ...], large: Case, tmp_path: Path, killable: list[subprocess.Popen[str]]
) -> None:
    if command[0] == "search" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a search starts workers only where there is a second core")
    seconds = imported(large, tmp_path / "measured")
    chance = random.Random(8)
    with_workers = 0
    for number in range(5):
        docs = tmp_path / str(number)
        large.begun(docs)
        process = corpus.start(*command, "--docs-dir", docs)
        killable.append(process)
        wait_for_a_moment(chance, process, docs / ".rag-index" / "library.db-wal", seconds)
        with_workers += len(corpus.workers_of(process.pid)) >= 1
        below = kill(process)
        try:
            corpus.wait_until(partial(none_running, below), "workers outlive their import", seconds=10)
        finally:
            for pid in filter(corpus.is_running, below):
                os.kill(pid, signal.SIGKILL)
        check_completed(docs, large)
        shutil.rmtree(docs)
    assert with_workers >= 1, "no import had started its workers when it was killed, so this proves little"


@needs_proc
def test_ctrl_c_ends_an_import_with_workers_in_a_sentence(large: Case, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    large.begun(docs)
    process = corpus.start("reindex", "--docs-dir", docs, "--workers", "2")
    corpus.wait_until(lambda: len(corpus.workers_of(process.pid)) >= 2, "no worker was started")
    for pid in (process.pid, *corpus.processes_below(process.pid)):  # as a terminal does
        os.kill(pid, signal.SIGINT)
    _, err = process.communicate(timeout=corpus.PATIENCE)
    assert process.returncode == INTERRUPTED_EXIT_CODE
    assert "Finished work is saved" in err
    assert "Traceback" not in err
    check_completed(docs, large)
