"""A watch under load, killed, and robbed of its folder: it takes everything in, in few imports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.library.watching import WatchProcess
from tests.slow import corpus

pytestmark = pytest.mark.slow

FILES = 3_000


def watching(docs: Path, tmp_path: Path) -> WatchProcess:
    return WatchProcess([sys.executable, "-m", "bunko", "watch", "--json", "--docs-dir", str(docs)], tmp_path)


def holds(docs: Path, files: corpus.Files) -> Callable[[], bool]:
    def is_so() -> bool:
        with corpus.opened(docs, read_only=True) as library:
            return corpus.stored(library) == files

    return is_so


def number_of(printed: WatchProcess, event: str) -> int:
    return sum(line["event"] == event for line in printed.lines)


def has_number(printed: WatchProcess, event: str, number: int) -> bool:
    return number_of(printed, event) == number


def test_thousands_of_files_written_at_once_are_taken_in_by_few_imports(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    files = {f"{n % 50}/{n % 7}/{n}.md": corpus.document(f"{n}", sections=1, sentences=1) for n in range(FILES)}
    with watching(docs, tmp_path) as printed:
        printed.wait_for("watching")
        corpus.write(docs, files)
        corpus.wait_until(holds(docs, files), "all files are in the library")
        assert number_of(printed, "imported") <= 20
        before = number_of(printed, "imported")
        # As a checkout does: most files are rewritten, some go, some come.
        after = {name: corpus.document(f"{name} anew", sections=1, sentences=1) for name in sorted(files)[200:]}
        after |= {f"new/{n}.md": corpus.document(f"new {n}", sections=1, sentences=1) for n in range(200)}
        corpus.write(docs, after)
        corpus.wait_until(holds(docs, after), "the second state is in the library")
        assert number_of(printed, "imported") - before <= 20
        code, err = printed.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert corpus.run("doctor", "--docs-dir", docs).returncode == 0


def test_a_stream_of_changes_without_a_pause_does_not_hold_imports_back(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    with watching(docs, tmp_path) as printed:
        printed.wait_for("watching")
        number = 0

        def is_imported_meanwhile() -> bool:
            nonlocal number
            number += 1
            (docs / f"{number % 10}.md").write_text(f"# {number}\n", encoding="utf-8")
            return number_of(printed, "imported") >= 3

        corpus.wait_until(is_imported_meanwhile, "imports while files change all the time")
        code, _ = printed.end()
    assert code == 0


def test_a_folder_that_vanishes_and_returns_again_and_again_is_followed(tmp_path: Path) -> None:
    docs, away = tmp_path / "docs", tmp_path / "away"
    files = {f"{n}.md": corpus.document(f"{n}") for n in range(20)}
    docs.mkdir()
    corpus.write(docs, files)
    with watching(docs, tmp_path) as printed:
        corpus.wait_until(lambda: number_of(printed, "imported") == 1, "the first import")
        for number in range(3):
            docs.rename(away)
            corpus.wait_until(partial(has_number, printed, "problem", number + 1), "it says that the folder is gone")
            files[f"away {number}.md"] = f"# Written while away {number}\n"
            corpus.write(away, files)
            away.rename(docs)
            corpus.wait_until(holds(docs, files), "what was written while it was away")
            files[f"back {number}.md"] = f"# 戻ってから {number}\n"
            corpus.write(docs, files)
            corpus.wait_until(holds(docs, files), "what was written after its return")
        code, err = printed.end()
    assert (code, err) == (0, "")
    assert number_of(printed, "recovered") == 3
    assert sum(int(line["deleted"]) for line in printed.lines if line["event"] == "imported") == 0


@pytest.mark.parametrize("failpoint", ["ingest.batch:2", "store.commit:3", "derived.arrays", ""])
def test_a_watch_that_was_killed_is_completed_by_the_next(failpoint: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    change = corpus.change(files=150, added=160, updated=30, removed=15, moved=15)
    docs.mkdir()
    corpus.write(docs, change.before)
    with corpus.opened(docs) as library:
        library.reindex()
    # `subprocess_environment` leaves our own variables out, so the one that kills is given by `env`.
    command = [sys.executable, "-m", "bunko", "watch", "--json", "--docs-dir", str(docs)]
    prefix = ["env", f"BUNKO_FAILPOINT={failpoint}"] if failpoint else []
    if failpoint:
        corpus.write(docs, change.after)
    with WatchProcess([*prefix, *command], tmp_path) as printed:
        if failpoint:
            assert printed.process.wait(corpus.PATIENCE) == -signal.SIGKILL
        else:
            printed.wait_for("watching")
            # No file is read while it is written.
            printed.process.send_signal(signal.SIGSTOP)
            corpus.write(docs, change.after)
            printed.process.send_signal(signal.SIGCONT)
            corpus.wait_until(lambda: not holds(docs, change.before)(), "it has begun to write")
            printed.process.kill()
    with corpus.opened(docs) as library:
        # It takes changes as the system reports them: a moved file may be gone before it is in its new place.
        corpus.check_between(library, change, moves_at_once=bool(failpoint))
    with watching(docs, tmp_path) as printed:
        printed.wait_for("watching")
        corpus.wait_until(holds(docs, change.after), "the next watch completes it")
        code, _ = printed.end()
    assert code == 0
    with corpus.opened(docs) as library:
        assert corpus.contents(library) == corpus.built_from_scratch(change.after, tmp_path / "scratch")
