"""Files appear when they are complete, and what killed processes left is removed: nothing else ever is."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bunko.runtime.temporary_files import TemporaryFolder, replace_file, write_text_file

WRITE_AND_WAIT = """
import sys
from pathlib import Path
from bunko.runtime.temporary_files import TemporaryFolder, replace_file
folder = TemporaryFolder("bunko-test-")
with replace_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print(folder.path, flush=True)
    sys.stdin.read()
"""


class Writer:
    """A process in the middle of writing a file and with a temporary folder of its own."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITE_AND_WAIT, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())

    def end(self, *, kill: bool) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()


@pytest.fixture(autouse=True)
def temporary_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "system"
    root.mkdir()
    monkeypatch.setenv("TMPDIR", str(root))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return root


def temporaries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.slow
def test_the_next_writer_removes_what_a_killed_one_left_but_nothing_of_a_live_one(
    tmp_path: Path, temporary_root: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    killed, live = Writer(place / "a.json"), Writer(place / "b.json")
    left = temporaries(place)
    assert len(left) == 2
    killed.end(kill=True)
    write_text_file(place / "c.json", "{}")
    TemporaryFolder("bunko-test-").cleanup()
    assert [name for name in temporaries(place) if name.startswith(".a.json")] == []
    assert len(temporaries(place)) == 1
    assert list(temporary_root.iterdir()) == [live.folder]
    live.end(kill=False)
    assert sorted(path.name for path in place.iterdir()) == ["b.json", "c.json"]
    assert (place / "b.json").read_bytes() == b"half"
    assert list(temporary_root.iterdir()) == []


def test_files_and_folders_of_other_programs_are_never_touched(tmp_path: Path, temporary_root: Path) -> None:
    (tmp_path / "target").write_text("kept")
    strangers = [
        ".a.json.bunko-0123456789abcdef.tmp.txt",
        ".a.json.0123456789abcdef.tmp",
        "a.json.bunko-0123456789abcdef.tmp",
        ".a.json.bunko-0123456789abcdeg.tmp",
        ".a.json.tmp",
    ]
    for name in strangers:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".a.json.bunko-aaaaaaaaaaaaaaaa.tmp").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / ".a.json.bunko-bbbbbbbbbbbbbbbb.tmp")
    (tmp_path / ".a.json.bunko-cccccccccccccccc.tmp").mkdir()
    (temporary_root / "bunko-test-new").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "in-use.lock").write_text("")
    (temporary_root / "bunko-test-link").symlink_to(tmp_path / "elsewhere")
    before = sorted(path.name for path in (*tmp_path.iterdir(), *temporary_root.iterdir()))
    write_text_file(tmp_path / "a.json", "{}")
    TemporaryFolder("bunko-test-").cleanup()
    (tmp_path / "a.json").unlink()
    assert sorted(path.name for path in (*tmp_path.iterdir(), *temporary_root.iterdir())) == before
    assert (tmp_path / "target").read_text() == "kept"
    assert (tmp_path / "elsewhere" / "in-use.lock").exists()


def test_an_error_while_writing_keeps_the_old_file_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text_file(path, "old")

    def fail() -> None:
        with replace_file(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (path.read_text(), temporaries(tmp_path)) == ("old", [])


@pytest.mark.parametrize("has_links", [True, False])
def test_a_new_file_takes_only_a_name_that_is_free(
    has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    folder = tmp_path / "folder"
    folder.mkdir()
    write_text_file(folder / "new", "first", mode=0o600, is_new=True)
    (folder / "link").symlink_to(folder / "nothing")
    for name in ("new", "link"):
        with pytest.raises(FileExistsError):
            write_text_file(folder / name, "second", is_new=True)
    assert sorted(path.name for path in folder.iterdir()) == ["link", "new"]
    assert (folder / "new").read_text() == "first"
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o600
    assert (folder / "new").stat().st_nlink == 1


def test_a_file_has_its_permissions_from_the_start(tmp_path: Path) -> None:
    write_text_file(tmp_path / "key", "secret", mode=0o600)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("文" * 83 + ".json")
    write_text_file(path, "{}")
    assert path.read_text() == "{}"


def test_a_temporary_folder_is_gone_after_use() -> None:
    folder = TemporaryFolder("bunko-test-")
    (folder.path / "file").write_text("x")
    path = folder.path
    folder.cleanup()
    folder.cleanup()
    assert not path.exists()
