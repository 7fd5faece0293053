"""Links, special files, permissions and files that change: what a folder reports and never reads."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bunko.errors import SourceError
from bunko.types import Fingerprint, SourceEntry
from tests.sources.folders import LONG_AGO, SECOND, folder, ordinary_user, reasons, remember, uris, write


def test_links_that_leave_loop_or_dangle_are_reported(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/secret.md").parent
    root = tmp_path / "root"
    write(root / "a.md")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    (root / "everything").symlink_to("/")
    (root / "loop.md").symlink_to("loop.md")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    (root / "dangling.md").symlink_to("nothing.md")
    (root / "through-a-file.md").symlink_to("a.md/b.md")
    (root / "program.so").symlink_to("nothing.so")
    scan = folder(root).scan({})
    assert uris(scan.added) == ["a.md"]
    told = reasons(scan)
    assert all("outside the folder" in told.pop(uri) for uri in ["file.md", "folder", "everything"])
    assert all("points to itself" in told.pop(uri) for uri in ["loop.md", "ping", "pong"])
    assert all("broken link" in told.pop(uri) for uri in ["dangling.md", "through-a-file.md"])
    assert told == {}


def test_a_link_to_something_inside_is_skipped_in_silence(tmp_path: Path) -> None:
    write(tmp_path / "docs/a.md")
    (tmp_path / "b.md").symlink_to("docs/a.md")
    (tmp_path / "shortcut").symlink_to("docs")
    (tmp_path / "docs/up").symlink_to("..")
    scan = folder(tmp_path).scan({})
    assert (uris(scan.added), scan.problems) == (["docs/a.md"], [])


def test_a_folder_beside_the_root_with_a_longer_name_is_outside(tmp_path: Path) -> None:
    write(tmp_path / "root-of-evil/a.md")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link.md").symlink_to(tmp_path / "root-of-evil/a.md")
    assert "outside the folder" in reasons(folder(tmp_path / "root").scan({}))["link.md"]


def test_ignored_and_excluded_links_are_not_reported(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to("/")
    (tmp_path / "ignored.md").symlink_to("/etc/hostname")
    write(tmp_path / ".gitignore", "ignored.md\n")
    assert folder(tmp_path).scan({}).problems == []


def test_pipes_and_sockets_are_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    os.mkfifo(tmp_path / "pipe.so")
    with socket.socket(socket.AF_UNIX) as server:
        with_short_path = os.open(tmp_path, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{with_short_path}/socket.md")
        os.close(with_short_path)
    source = folder(tmp_path)
    scan = source.scan({})
    assert scan.added == []
    assert set(reasons(scan)) == {"pipe.md", "socket.md"}
    assert all("not a regular file" in reason for reason in reasons(scan).values())
    for uri in ["pipe.md", "socket.md"]:
        with pytest.raises(SourceError, match="not a regular file"):
            source.read(SourceEntry(uri, 1, LONG_AGO))


def test_a_file_that_became_a_pipe_empty_too_large_or_a_link_is_deleted(tmp_path: Path) -> None:
    for name in ["pipe.md", "empty.md", "large.md", "link.md", "folder.md", "fine.md"]:
        write(tmp_path / name)
    source = folder(tmp_path, max_file_bytes=10)
    known = remember(source)
    for name in ["pipe.md", "link.md", "folder.md"]:
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "link.md").symlink_to("/etc/hostname")
    (tmp_path / "folder.md").mkdir()
    write(tmp_path / "empty.md", "")
    write(tmp_path / "large.md", "x" * 11)
    scan = source.scan(known)
    assert scan.deleted == ["empty.md", "folder.md", "large.md", "link.md", "pipe.md"]
    assert list(reasons(scan)) == ["empty.md", "large.md", "link.md", "pipe.md"]
    assert scan.unchanged == 1


def test_the_size_limit_is_named_with_its_setting(tmp_path: Path) -> None:
    write(tmp_path / "exact.md", "x" * 1000)
    write(tmp_path / "large.md", "x" * 1001)
    scan = folder(tmp_path, max_file_bytes=1000).scan({})
    assert uris(scan.added) == ["exact.md"]
    assert reasons(scan) == {
        "large.md": "has 1,001 bytes, more than the limit of 1,000; raise scanner.max_file_bytes to index it"
    }


def test_names_that_are_not_unicode_are_reported_in_printable_form(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md")).write_text("words")
    write(Path(os.fsdecode(bytes(tmp_path) + b"/\xff")) / "a.md")
    write(tmp_path / "fine.md")
    scan = folder(tmp_path).scan({})
    assert uris(scan.added) == ["fine.md"]
    assert list(reasons(scan)) == ["\\udcff", "caf\\udce9.md"]
    assert all("not valid Unicode" in reason for reason in reasons(scan).values())


def test_a_folder_that_cannot_be_listed_keeps_what_is_known_of_it(tmp_path: Path) -> None:
    # A path longer than the system takes: that stops even root.
    write(tmp_path / "a.md")
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=at)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    source = folder(tmp_path)
    (problem,) = source.scan({}).problems
    assert "cannot be listed" in problem.reason
    known = {uri: Fingerprint("hash", 5, LONG_AGO) for uri in ["a.md", f"{problem.uri}/deep.md", "gone.md"]}
    assert source.scan(known).deleted == ["gone.md"]


def test_files_and_folders_without_permission_are_reported_and_stay_known(open_folder: Path) -> None:
    for uri in ["fine.md", "known.md", "new.md", "closed/a.md"]:
        write(open_folder / uri)
    source = folder(open_folder)
    known = remember(source)
    del known["new.md"]
    for uri in ["known.md", "new.md", "closed"]:
        os.utime(open_folder / uri, ns=(LONG_AGO + SECOND, LONG_AGO + SECOND))
        (open_folder / uri).chmod(0)
    with ordinary_user():
        scan = source.scan(known)
        with pytest.raises(SourceError, match=r"new\.md cannot be read \(Permission denied\)"):
            source.read(SourceEntry("new.md", 5, LONG_AGO))
    (open_folder / "closed").chmod(0o700)
    assert list(reasons(scan)) == ["closed", "known.md", "new.md"]
    assert all("Permission denied" in reason for reason in reasons(scan).values())
    assert (scan.added, scan.updated, scan.deleted, scan.unchanged) == ([], [], [], 1)


def test_reading_returns_the_entry_as_it_is_now(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "old")
    source = folder(tmp_path)
    (entry,) = source.scan({}).added
    write(tmp_path / "a.md", "newer", modified_ns=LONG_AGO + SECOND)
    assert source.read(entry) == (b"newer", SourceEntry("a.md", 5, LONG_AGO + SECOND))


def test_a_file_that_is_gone_grown_or_no_file_is_refused_with_advice(tmp_path: Path) -> None:
    write(tmp_path / "large.md", "x" * 11)
    (tmp_path / "folder.md").mkdir()
    source = folder(tmp_path, max_file_bytes=10)
    for uri, reason in [
        ("gone.md", "no longer exists"),
        ("large.md", "limit of 10"),
        ("folder.md", "not a regular file"),
    ]:
        with pytest.raises(SourceError, match=reason) as caught:
            source.read(SourceEntry(uri, 5, LONG_AGO))
        assert caught.value.message.startswith(uri)
        assert caught.value.hint.endswith(".")


def test_nothing_outside_the_root_is_ever_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/secret.md").parent
    root = tmp_path / "root"
    write(root / "docs/secret.md")
    source = folder(root)
    (entry,) = source.scan({}).added
    shutil.rmtree(root / "docs")
    (root / "docs").symlink_to(outside)
    (root / "link.md").symlink_to(outside / "secret.md")
    for uri in [entry.uri, "link.md", "../outside/secret.md"]:
        with pytest.raises(SourceError, match="link"):
            source.read(SourceEntry(uri, 5, LONG_AGO))


@pytest.mark.slow
def test_a_file_that_is_being_written_is_refused_and_never_half_read(tmp_path: Path) -> None:
    path = write(tmp_path / "log.md", b"x" * 4_000_000)
    source = folder(tmp_path, max_file_bytes=1_000_000_000)
    forever = "import sys; f = open(sys.argv[1], 'ab', 0); print(flush=True)\nwhile True: f.write(b'more')"

    def read_often() -> None:
        # The scheduler may let reads slip through between two writes, many on a busy machine; they must then be whole.
        while True:
            content, entry = source.read(SourceEntry("log.md", 0, 0))
            assert len(content) == entry.size

    with subprocess.Popen([sys.executable, "-c", forever, path], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(SourceError, match="is being written"):
                read_often()
        finally:
            writer.kill()


def test_a_root_that_is_missing_or_no_folder_cannot_be_scanned(tmp_path: Path) -> None:
    for root in [tmp_path / "missing", write(tmp_path / "file.md")]:
        with pytest.raises(SourceError, match="cannot be read") as caught:
            folder(root).scan({})
        assert "Check the path" in caught.value.hint


def test_a_root_that_vanished_or_was_emptied_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    write(root / "a.md")
    source = folder(root)
    assert not source.has_vanished(["a.md"])
    (root / "a.md").unlink()
    assert source.has_vanished(["a.md"])
    assert not source.has_vanished([])
    root.rmdir()
    assert source.has_vanished([])
    with pytest.raises(SourceError, match="cannot be read"):
        source.scan({"a.md": Fingerprint("hash", 5, LONG_AGO)})
    root.write_text("a file in its place")
    assert source.has_vanished(["a.md"])


def test_a_root_that_may_not_be_listed_is_lost(open_folder: Path) -> None:
    write(open_folder / "disk/a.md")
    source = folder(open_folder / "disk")
    (open_folder / "disk").chmod(0)
    with ordinary_user():
        assert source.has_vanished(["a.md"])
    (open_folder / "disk").chmod(0o700)
