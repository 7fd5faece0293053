"""No room, no permission, a limit: an error that says what to do, and the old state still there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import EXIT_CODES
from tests.slow import corpus

pytestmark = pytest.mark.slow

OLD = {f"{n}.md": corpus.document(f"old {n}") for n in range(10)}
# Makes more than ten megabytes of library and index.
MUCH = {f"much/{n}.md": corpus.document(f"much {n}", sections=10, sentences=10) for n in range(150)}
# There is room for these, and for what is written before them.
FEW = {f"few/{n}.md": corpus.document(f"few {n}") for n in range(40)}
ENOUGH = "60m"


def mounted(*arguments: str | Path) -> None:
    """Mount something, or skip the test where that is not permitted."""
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("a small disk is needed, and there is no mount command")
    done = subprocess.run([mount, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk is needed, and mounting one is not permitted: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk in memory that holds three megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted("-t", "tmpfs", "-o", "size=3m", "tmpfs", place)
    yield place
    # Lazily: whatever a failed test left open must not keep it.
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a few old documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    corpus.write(folder, OLD)
    return folder


def fill(disk: Path) -> Path:
    """Leave no room on a disk, and return the file that takes it."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    assert shutil.disk_usage(disk).free == 0
    return filler


def found(result: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the documents of an answer."""
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return {hit["file_path"] for hit in json.loads(result.stdout)["results"]}


def search(docs: Path, data: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Search, waiting for changes to be absorbed however slow the machine is."""
    place = ("--docs-dir", docs, "--data-dir", data)
    return corpus.run(
        "search", "京都の寺", *place, "--top-k", "1000", "--json", *more, BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="50"
    )


def reindex(docs: Path, data: Path) -> subprocess.CompletedProcess[str]:
    return corpus.run("reindex", "--docs-dir", docs, "--data-dir", data)


def check_failed(failed: subprocess.CompletedProcess[str], code: str, *words: str) -> None:
    assert failed.returncode == EXIT_CODES[code], failed.stderr
    assert "\nError: " in f"\n{failed.stderr}"  # after the progress of a slow import
    assert "Traceback" not in failed.stderr
    for word in words:
        assert word in failed.stderr


def check_complete(docs: Path, data: Path, files: corpus.Files) -> None:
    done = reindex(docs, data)
    assert done.returncode == 0, done.stderr
    with corpus.opened(docs, data=data) as library:
        assert library.store.check() == ""
        assert corpus.stored(library) == files


def test_an_import_onto_a_full_disk_says_so_keeps_the_old_state_and_is_completed_later(docs: Path, disk: Path) -> None:
    data = disk / "data"
    assert reindex(docs, data).returncode == 0
    before = found(search(docs, data))
    assert before
    corpus.write(docs, OLD | MUCH)
    check_failed(reindex(docs, data), "disk-full", "The disk is full", "Free some space", "same command again")
    assert before <= found(search(docs, data, "--no-refresh"))
    told = search(docs, data)
    assert before <= found(told)
    assert "could not be indexed: The disk is full" in told.stderr
    mounted("-o", f"remount,size={ENOUGH}", disk)
    check_complete(docs, data, OLD | MUCH)


@pytest.mark.parametrize("size", ["100k", "200k", "400k", "800k", "1600k", "2400k", "3200k", "4m", "5m", "6m", "8m"])
def test_wherever_the_room_ends_an_import_fails_clearly_or_succeeds_and_is_completed_later(
    size: str, docs: Path, disk: Path
) -> None:
    mounted("-o", f"remount,size={size}", disk)
    corpus.write(docs, OLD | MUCH)
    tried = reindex(docs, disk / "data")
    if tried.returncode:
        check_failed(tried, "disk-full")
    mounted("-o", f"remount,size={ENOUGH}", disk)
    with corpus.opened(docs, data=disk / "data") as library:
        assert library.store.check() == ""
    check_complete(docs, disk / "data", OLD | MUCH)


def test_a_disk_filled_by_others_gives_a_clear_error_and_harms_nothing(docs: Path, disk: Path) -> None:
    data = disk / "data"
    assert reindex(docs, data).returncode == 0
    before = found(search(docs, data))
    filler = fill(disk)
    corpus.write(docs, OLD | MUCH)
    check_failed(reindex(docs, data), "disk-full", "The disk is full")
    asked = search(docs, data)
    if asked.returncode:  # SQLite needs 32 kB beside the library to let many processes read it
        check_failed(asked, "disk-full", "The disk is full")
    filler.unlink()
    assert before <= found(search(docs, data, "--no-refresh"))


def test_a_disk_without_room_for_another_folder_is_full(docs: Path, disk: Path) -> None:
    mounted("-o", "remount,nr_inodes=1", disk)
    check_failed(reindex(docs, disk / "data"), "disk-full", "The disk is full")


def test_a_read_only_disk_still_answers_and_says_why_it_cannot_refresh(docs: Path, disk: Path) -> None:
    data = disk / "data"
    assert reindex(docs, data).returncode == 0
    before = found(search(docs, data))
    mounted("-o", "remount,ro", disk)
    corpus.write(docs, OLD | MUCH)
    check_read_only(docs, data, before)
    assert corpus.run("status", "--docs-dir", docs, "--data-dir", data).returncode == 0
    assert corpus.run("doctor", "--docs-dir", docs, "--data-dir", data).returncode == 0


def test_what_a_killed_import_left_on_a_disk_that_became_read_only_still_answers(docs: Path, disk: Path) -> None:
    data = disk / "data"
    assert reindex(docs, data).returncode == 0
    before = found(search(docs, data))
    corpus.write(docs, OLD | FEW)
    corpus.run("reindex", "--docs-dir", docs, "--data-dir", data, BUNKO_FAILPOINT="ingest.batch")
    corpus.write(docs, MUCH)
    mounted("-o", "remount,ro", disk)
    answer = search(docs, data)
    assert before < found(answer)
    assert "cannot be written" in answer.stderr


def check_read_only(docs: Path, data: Path, before: set[str]) -> None:
    answer = search(docs, data)
    assert found(answer) == before
    assert f"{len(MUCH)} changed files could not be indexed" in answer.stderr
    assert "cannot be written" in answer.stderr
    assert found(search(docs, data, "--no-refresh")) == before
    check_failed(reindex(docs, data), "read-only", "cannot be written", "--data-dir")


def test_a_library_in_somebody_elses_folder_still_answers_and_says_why_it_cannot_refresh(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    assert reindex(docs, data).returncode == 0
    before = found(search(docs, data))
    corpus.write(docs, OLD | MUCH)
    if os.geteuid() == 0:
        # Permissions do not bind root, unless that privilege is given away.
        if shutil.which("setpriv") is None:
            pytest.skip("permissions do not bind this user, and there is no setpriv command")
        monkeypatch.setattr(corpus, "PREFIX", ("setpriv", "--bounding-set", "-dac_override,-dac_read_search"))
    paths = [data, *data.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        check_read_only(docs, data, before)
    finally:
        for path in paths:
            path.chmod(path.stat().st_mode | 0o200)


def test_a_place_that_cannot_hold_a_library_is_named(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    for command in (("reindex",), ("search", "京都")):
        failed = corpus.run(*command, "--docs-dir", docs, "--data-dir", tmp_path / "file")
        check_failed(failed, "library", str(tmp_path / "file"))


@pytest.mark.parametrize("limit", [10_000, 100_000, 1_000_000, 2_000_000])
def test_a_limit_on_the_size_of_files_is_a_full_disk_and_needs_no_privileges(
    limit: int, docs: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    assert reindex(docs, data).returncode == 0
    before = found(search(docs, data))
    corpus.write(docs, OLD | MUCH)
    limited = (
        "import resource, runpy, sys;"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        f"sys.argv = ['bunko', 'reindex', '--docs-dir', {str(docs)!r}, '--data-dir', {str(data)!r}];"
        "runpy.run_module('bunko', run_name='__main__')"
    )
    failed = subprocess.run(
        [sys.executable, "-c", limited],
        env=corpus.environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=corpus.PATIENCE,
    )
    check_failed(failed, "disk-full", "ulimit -f", "same command again")
    assert before <= found(search(docs, data, "--no-refresh"))
    check_complete(docs, data, OLD | MUCH)


@pytest.mark.parametrize("size", ["40k", "80k", "160k", "400k", "600k", "800k", "1000k", "1200k", "1600k"])
def test_wherever_the_room_ends_a_backup_and_a_restore_leave_nothing_half(
    size: str, docs: Path, disk: Path, tmp_path: Path
) -> None:
    corpus.write(docs, OLD | FEW)
    assert reindex(docs, tmp_path / "data").returncode == 0
    mounted("-o", f"remount,size={size}", disk)
    file, whole = disk / "backup.zip", tmp_path / "whole.zip"
    tried = corpus.run("backup", file, "--library", tmp_path / "data")
    if tried.returncode:
        check_failed(tried, "disk-full")
        assert not list(disk.iterdir())
    else:
        assert corpus.run("backup", "--check", file).returncode == 0
        file.unlink()
    assert corpus.run("backup", whole, "--library", tmp_path / "data").returncode == 0
    new = disk / "new"
    tried = corpus.run("restore", whole, "--library", new)
    if tried.returncode:
        check_failed(tried, "disk-full")
        used = corpus.run("search", "京都の寺", "--library", new)
        check_failed(used, "library", "There is no library" if not new.exists() else str(new / "library.db"))
        mounted("-o", f"remount,size={ENOUGH}", disk)
        assert corpus.run("restore", whole, "--library", new).returncode == 0
    with corpus.opened(docs, data=new) as library:
        assert library.store.check() == ""
        assert corpus.stored(library) == OLD | FEW
        assert not list(new.glob(".bunko-*"))
