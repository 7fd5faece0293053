"""A watched library follows its folders: real files, the real events of the system, the real library."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko.errors import SourceError, UnknownName
from bunko.library.library import Library
from bunko.library.watch import WatchEvent, watch_library
from bunko.sources.events import FolderWatcher, remote_file_system
from tests.library.watching import PATIENCE, add_tool, linux, open_at, save_by_rename, uris, wait_until

# They wait for the events of the system: seconds each.
pytestmark = pytest.mark.slow


class Watcher(threading.Thread):
    """A watch in a thread of this process, and all it told."""

    def __init__(self, opener: Callable[[], Library], **options: object) -> None:
        super().__init__(daemon=True)
        self.news: list[WatchEvent] = []
        self.stop = threading.Event()
        self.error: Exception | None = None
        self._opener, self._how = opener, options

    def run(self) -> None:
        try:
            watch_library(self._opener, self.news.append, self.stop, **self._how)  # type: ignore[arg-type]
        except Exception as error:
            self.error = error

    def end(self) -> None:
        self.stop.set()
        self.join(PATIENCE)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error

    def events(self, kind: str, tool: str = "", message: str = "") -> list[WatchEvent]:
        return [
            event for event in self.news if event.kind == kind and tool in ("", event.tool) and message in event.message
        ]

    def wait_for(self, kind: str, tool: str = "", message: str = "", *, times: int = 1) -> WatchEvent:
        def has_events() -> bool:
            assert self.error is None, self.error
            return len(self.events(kind, tool, message)) >= times

        wait_until(has_events, f"{kind} {tool} {message!r} in {self.news}")
        return self.events(kind, tool, message)[-1]


Start = Callable[..., Watcher]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a library of several tools lies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "library"


@pytest.fixture
def start(place: Path) -> Iterator[Start]:
    """Watch the library, or that of a folder, in the background."""
    watchers: list[Watcher] = []

    def starter(docs: Path | None = None, **options: object) -> Watcher:
        watcher = Watcher(lambda: open_at(place, docs, create=docs is not None), **options)
        watchers.append(watcher)
        watcher.start()
        return watcher

    yield starter
    for watcher in watchers:
        watcher.end()


def test_it_first_brings_everything_up_to_date_and_then_follows(place: Path, tmp_path: Path, start: Start) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    (notes / "old.md").write_text("# 以前からの文書\n", encoding="utf-8")
    watcher = start()
    begun = watcher.wait_for("watching")
    assert [(one.tool, one.path, one.poll_reason) for one in begun.watched_tools] == [("notes", str(notes), "")]
    first = watcher.wait_for("imported", "notes").report
    assert first is not None
    assert first.added == 1

    save_by_rename(notes / "old.md", "# 保存し直した文書\n")
    second = watcher.wait_for("imported", "notes", times=2).report
    assert second is not None
    assert (second.added, second.updated) == (0, 1)

    (notes / "deep" / "er").mkdir(parents=True)
    (notes / "deep" / "er" / "new.md").write_text("# New below new folders\n", encoding="utf-8")
    wait_until(lambda: uris(place, "notes") == {"old.md", "deep/er/new.md"}, "a file in new folders")
    imports = len(watcher.events("imported"))
    (notes / "deep" / "er" / "new.md").write_text("# Changed where the folder was new\n", encoding="utf-8")
    watcher.wait_for("imported", "notes", times=imports + 1)
    shutil.rmtree(notes / "deep")
    wait_until(lambda: uris(place, "notes") == {"old.md"}, "a deleted folder")


@linux
def test_a_folder_that_is_deleted_and_made_again_at_once_is_still_heard(
    place: Path, tmp_path: Path, start: Start
) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    (notes / "sub").mkdir()
    (notes / "keep.md").write_text("# stays\n", encoding="utf-8")
    (notes / "sub" / "a.md").write_text("# first\n", encoding="utf-8")
    watcher = start()
    watcher.wait_for("imported", "notes")
    shutil.rmtree(notes / "sub")
    (notes / "sub").mkdir()
    (notes / "sub" / "b.md").write_text("# second\n", encoding="utf-8")
    wait_until(lambda: uris(place, "notes") == {"keep.md", "sub/b.md"}, "the folder made again")
    (notes / "sub" / "c.md").write_text("# third\n", encoding="utf-8")
    wait_until(lambda: uris(place, "notes") == {"keep.md", "sub/b.md", "sub/c.md"}, "a later file in it")


def test_a_vanished_folder_keeps_its_index_and_is_watched_again_when_it_is_back(
    place: Path, tmp_path: Path, start: Start
) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    (notes / "a.md").write_text("# 残るもの\n", encoding="utf-8")
    watcher = start()
    watcher.wait_for("imported", "notes")
    notes.rename(tmp_path / "away")
    watcher.wait_for("problem", "notes", "does not exist")
    assert uris(place, "notes") == {"a.md"}
    (tmp_path / "away").rename(notes)
    watcher.wait_for("recovered", "notes")
    (notes / "b.md").write_text("# after the return\n", encoding="utf-8")
    wait_until(lambda: uris(place, "notes") == {"a.md", "b.md"}, "a file written after the return")
    assert len(watcher.events("problem")) == 1


def test_a_library_that_vanishes_with_its_folder_is_opened_again_with_it(
    docs: Path, tmp_path: Path, start: Start
) -> None:
    (docs / "a.md").write_text("# 一緒に消える\n", encoding="utf-8")
    watcher = start(docs)
    watcher.wait_for("imported", "documents")
    docs.rename(tmp_path / "away")
    watcher.wait_for("problem", message="has disappeared")
    shutil.rmtree(tmp_path / "away")
    docs.mkdir()
    (docs / "b.md").write_text("# 新しい始まり\n", encoding="utf-8")
    watcher.wait_for("recovered", message="The library is back")
    wait_until(lambda: (docs / ".rag-index").exists() and _documents(docs) == {"b.md"}, "the new folder's files")


def test_a_library_that_is_gone_for_a_while_is_waited_for(place: Path, tmp_path: Path, start: Start) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    watcher = start()
    watcher.wait_for("watching")
    place.rename(tmp_path / "away")
    watcher.wait_for("problem", message="has disappeared")
    (notes / "a.md").write_text("# その間に書いた\n", encoding="utf-8")
    (tmp_path / "away").rename(place)
    watcher.wait_for("recovered", message="The library is back")
    watcher.wait_for("imported", "notes")


def _documents(docs: Path) -> set[str]:
    with open_at(docs, docs) as library:
        return set(library.store.documents.fingerprints(library.tools()[0].id)) if library.tools() else set()


def test_a_folder_that_is_not_there_at_the_start_is_waited_for(place: Path, tmp_path: Path, start: Start) -> None:
    notes = tmp_path / "late"
    add_tool(place, "late", notes)
    notes.rmdir()
    watcher = start()
    watcher.wait_for("problem", "late", "does not exist")
    notes.mkdir()
    (notes / "a.md").write_text("# 遅れて来た\n", encoding="utf-8")
    watcher.wait_for("imported", "late")


def test_tools_may_come_go_sleep_and_move_while_they_are_watched(place: Path, tmp_path: Path, start: Start) -> None:
    one, two, other = tmp_path / "one", tmp_path / "two", tmp_path / "other"
    add_tool(place, "one", one)
    watcher = start()
    watcher.wait_for("watching")
    two.mkdir()
    (two / "a.md").write_text("# added later\n", encoding="utf-8")
    add_tool(place, "two", two)
    watcher.wait_for("imported", "two")

    other.mkdir()
    (other / "b.md").write_text("# elsewhere\n", encoding="utf-8")
    with open_at(place) as library:
        library.tools.update("two", source=other)
    wait_until(lambda: uris(place, "two") == {"b.md"}, "the tool's new folder")
    (other / "c.md").write_text("# 移動先\n", encoding="utf-8")
    wait_until(lambda: uris(place, "two") == {"b.md", "c.md"}, "a change in the new folder")

    with open_at(place) as library:
        library.tools.set_active("two", active=False)
    wait_until(
        lambda: [p.tool for p in watcher.events("watching")[-1].watched_tools] == ["one"], "the disabled tool is let go"
    )
    (other / "d.md").write_text("# nobody watches\n", encoding="utf-8")
    (one / "e.md").write_text("# somebody watches\n", encoding="utf-8")
    wait_until(lambda: uris(place, "one") == {"e.md"}, "the other tool")
    assert uris(place, "two") == {"b.md", "c.md"}

    with open_at(place) as library:
        library.tools.set_active("two", active=True)
    wait_until(lambda: uris(place, "two") == {"b.md", "c.md", "d.md"}, "the enabled tool")
    with open_at(place) as library:
        library.delete_tool("two")
    wait_until(
        lambda: [p.tool for p in watcher.events("watching")[-1].watched_tools] == ["one"], "the deleted tool is let go"
    )
    assert watcher.events("problem") == []


def test_one_tool_can_be_watched_alone_even_if_it_is_hidden(place: Path, tmp_path: Path, start: Start) -> None:
    add_tool(place, "one", tmp_path / "one")
    add_tool(place, "two", tmp_path / "two")
    with open_at(place) as library:
        library.tools.set_active("two", active=False)
    (tmp_path / "one" / "a.md").write_text("# not asked for\n", encoding="utf-8")
    (tmp_path / "two" / "a.md").write_text("# asked for\n", encoding="utf-8")
    watcher = start(name="two")
    watcher.wait_for("imported", "two")
    assert uris(place, "one") == set()


def test_an_unknown_tool_is_an_error_at_the_start(place: Path) -> None:
    with pytest.raises(UnknownName):
        watch_library(lambda: open_at(place), print, threading.Event(), name="nobody")


def test_it_waits_for_another_import_and_goes_on(place: Path, tmp_path: Path, start: Start) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    watcher = start()
    watcher.wait_for("watching")
    with open_at(place) as library, library.write_lock():
        (notes / "a.md").write_text("# 待たされた文書\n", encoding="utf-8")
        watcher.wait_for("waiting", message="Another process is importing")
        assert uris(place, "notes") == set()
    watcher.wait_for("imported", "notes")


def test_it_ends_while_it_waits_for_another_import(place: Path, tmp_path: Path, start: Start) -> None:
    add_tool(place, "notes", tmp_path / "notes")
    (tmp_path / "notes" / "a.md").write_text("# never taken\n", encoding="utf-8")
    with open_at(place) as library, library.write_lock():
        watcher = start()
        watcher.wait_for("waiting")
        watcher.end()
    assert watcher.news[-1].kind == "stopped"
    assert watcher.events("problem") == []


def test_changes_in_excluded_folders_and_through_links_are_not_heard(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub", root / "node_modules" / "x", outside):
        folder.mkdir(parents=True)
    (root / "sub" / "loop").symlink_to(root)
    (root / "out").symlink_to(outside)
    (root / "self").symlink_to("self")
    events = FolderWatcher([str(root)], lambda path: "node_modules" in path)
    (root / "node_modules" / "x" / "a.md").write_text("no", encoding="utf-8")
    (outside / "b.md").write_text("no", encoding="utf-8")
    (root / "sub" / "c.md").write_text("yes", encoding="utf-8")
    heard = events.wait(threading.Event())
    events.close()
    assert heard == {str(root / "sub" / "c.md")}
    if sys.platform == "linux":
        assert events.folders == {str(root), str(root / "sub")}


def test_a_file_that_cannot_be_indexed_is_told_once_and_forgotten_when_it_is_well(
    place: Path, tmp_path: Path, start: Start
) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    (notes / "empty.md").write_bytes(b"")
    (notes / "a.md").write_text("# fine\n", encoding="utf-8")
    watcher = start()
    watcher.wait_for("problem", "notes", "empty.md")
    (notes / "b.md").write_text("# also fine\n", encoding="utf-8")
    watcher.wait_for("imported", "notes", times=2)
    assert len(watcher.events("problem", "notes")) == 1
    (notes / "empty.md").write_text("# not empty any more\n", encoding="utf-8")
    wait_until(lambda: uris(place, "notes") == {"a.md", "b.md", "empty.md"}, "the file with something in it")


def test_without_events_it_looks_every_few_seconds(place: Path, tmp_path: Path, start: Start) -> None:
    notes = tmp_path / "notes"
    add_tool(place, "notes", notes)
    watcher = start(poll=0.1)
    assert watcher.wait_for("watching").watched_tools[0].poll_reason
    (notes / "a.md").write_text("# 巡回で見つかる\n", encoding="utf-8")
    watcher.wait_for("imported", "notes")


@pytest.mark.parametrize(
    ("kind", "told"),
    [("ext4", ""), ("nfs4", "nfs4"), ("cifs", "cifs"), ("fuse.sshfs", "fuse.sshfs"), ("fuseblk", ""), ("9p", "9p")],
)
def test_a_file_system_that_others_change_is_known_by_its_kind(tmp_path: Path, kind: str, told: str) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:0 / /proc rw shared:1 - proc proc rw\n"
        f"36 22 {os.major(device)}:{os.minor(device)} / /x rw,noatime shared:2 master:1 - {kind} /dev/x rw\n",
        encoding="utf-8",
    )
    assert remote_file_system(tmp_path, mounts) == told
    assert remote_file_system(tmp_path / "missing", mounts) == remote_file_system(tmp_path, tmp_path / "missing") == ""


def test_memos_and_json_lines_are_watched_in_a_file_and_in_a_folder(place: Path, tmp_path: Path, start: Start) -> None:
    diary, log = tmp_path / "ChangeLog", tmp_path / "log"
    diary.write_text("* First 2024-01-15\n\nThe first entry of the diary.\n", encoding="utf-8")
    log.mkdir()
    (log / "a.jsonl").write_text('{"title": "One", "text": "The first line of the log."}\n', encoding="utf-8")
    with open_at(place) as library:
        library.tools.add("diary", "About days", diary, kind="memos")
        library.tools.add("log", "About events", log, kind="jsonl")
    watcher = start()
    watcher.wait_for("imported", "diary")
    watcher.wait_for("imported", "log")
    places = {one.tool: one.poll_reason for one in watcher.events("watching")[-1].watched_tools}
    assert places == {"diary": "it is one file", "log": ""}
    with diary.open("a", encoding="utf-8") as file:
        file.write("\n* Second 2024-01-16\n\nThe second entry of the diary.\n")
    with (log / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"title": "Two", "text": "The second line of the log."}\n')
    for name in ("diary", "log"):
        report = watcher.wait_for("imported", name, times=2).report
        assert report is not None
        assert report.added == 1
        assert len(uris(place, name)) == 2


def test_what_has_no_folder_and_no_file_is_not_watched(place: Path) -> None:
    from bunko.types import Tool

    with open_at(place) as library:
        library.store.tools.put(Tool("pages", "web", "Pages", "https://example.com"))
    with pytest.raises(SourceError, match="no folder or file to watch"):
        watch_library(lambda: open_at(place), print, threading.Event(), name="pages")
