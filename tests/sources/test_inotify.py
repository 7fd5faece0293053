"""Asking Linux what has happened in folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko.sources.events import FolderEvents

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def events() -> Iterator[FolderEvents]:
    opened = FolderEvents()
    yield opened
    opened.close()


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file is written": lambda folder: (folder / "a.md").write_text("new"),
    "a file is created": lambda folder: (folder / "b.md").touch(),
    "a folder is created": lambda folder: (folder / "sub").mkdir(),
    "a file is removed": lambda folder: (folder / "a.md").unlink(),
    "a file is renamed": lambda folder: (folder / "a.md").rename(folder / "b.md"),
    "a file is moved away": lambda folder: (folder / "a.md").rename(folder.parent / "b.md"),
    "a file gets another time": lambda folder: os.utime(folder / "a.md", (1, 1)),
    "a file gets another mode": lambda folder: (folder / "a.md").chmod(0o600),
    "the folder is renamed": lambda folder: folder.rename(folder.parent / "elsewhere"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_happened_is_known_as_soon_as_it_is_done(tmp_path: Path, events: FolderEvents, change: str) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("old")
    events.watch(str(folder), 7)
    (folder / "a.md").read_text()
    assert events.take() == set()
    CHANGES[change](folder)
    assert events.take() == {7}
    assert events.take() == set()


def test_a_folder_belongs_to_all_who_watch_it(tmp_path: Path, events: FolderEvents) -> None:
    (tmp_path / "sub").mkdir()
    events.watch(str(tmp_path), 1)
    events.watch(str(tmp_path), 2)
    events.watch(str(tmp_path / "sub"), 2)
    (tmp_path / "a.md").touch()
    assert events.take() == {1, 2}
    (tmp_path / "sub" / "b.md").touch()
    assert events.take() == {2}
    events.release(2)
    (tmp_path / "sub" / "c.md").touch()
    (tmp_path / "d.md").touch()
    assert events.take() == {1}


def test_a_folder_that_is_gone_is_not_watched(tmp_path: Path, events: FolderEvents) -> None:
    events.watch(str(tmp_path / "missing"), 1)
    (tmp_path / "sub").mkdir()
    events.watch(str(tmp_path / "sub"), 1)
    (tmp_path / "sub").rmdir()
    assert events.take() == {1}
    assert events.take() == set()


def test_lost_events_are_an_event_for_everybody(tmp_path: Path, events: FolderEvents) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("filling the queue would take too long")
    (tmp_path / "busy").mkdir()
    (tmp_path / "calm").mkdir()
    events.watch(str(tmp_path / "busy"), 1)
    events.watch(str(tmp_path / "calm"), 2)
    for index in range(limit // 2 + 100):  # two events each; equal ones in a row are counted once
        os.utime(tmp_path / "busy", (index, index))
        (tmp_path / "busy" / f"{index % 2}").touch()
    assert events.take() == {1, 2}
