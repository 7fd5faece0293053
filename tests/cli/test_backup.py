"""`bunko backup` and `bunko restore` at the command line: what they print, and what they say about mistakes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import EXIT_CODES
from tests.conftest import Run


@pytest.fixture
def library(run: Run, notes: Path, tmp_path: Path) -> Path:
    """A library with three documents."""
    folder = tmp_path / "library"
    assert run("add", notes, "-n", "notes", "--library", folder).code == 0
    return folder


def test_what_a_backup_and_a_restore_say_is_plain_in_a_pipe(run: Run, library: Path, tmp_path: Path) -> None:
    (library / "bunko.toml").write_text("[search]\ntop_k = 3\n")
    file, new = tmp_path / "a backup.zip", tmp_path / "new"
    written = run("backup", file, "--library", library)
    assert written.code == 0, written.err
    assert f" rows to {file} (" in written.out
    assert f"Restore it with: bunko restore '{file}' --library DIR" in written.out
    checked = run("backup", "--check", file)
    assert checked.code == 0, checked.err
    assert checked.out.startswith(f"{file} is complete. It was made on ")
    restored = run("restore", file, "--library", new)
    assert restored.code == 0, restored.err
    assert f"Restored 1 tool to {new / 'library.db'}; all " in restored.out
    assert f"Wrote {new / 'bunko.toml'}; it names neither a server nor an index engine." in restored.out
    assert f"bunko status --library {new}" in restored.out
    assert written.err == checked.err == restored.err == ""
    before, after = (run("search", "環境構築", "--json", "--library", place).json() for place in (library, new))
    assert before["results"]
    assert before["results"] == after["results"]


def test_json_says_what_was_written_checked_and_restored(run: Run, library: Path, tmp_path: Path) -> None:
    file, new = tmp_path / "backup.zip", tmp_path / "new"
    written = run("backup", file, "--library", library, "--json").json()
    assert (written["file"], written["bytes"], written["files"]) == (str(file), file.stat().st_size, ["library.db"])
    checked = run("backup", "--check", file, "--json").json()
    assert checked == {key: value for key, value in written.items() if key != "rows"} | {"complete": True}
    restored = run("restore", file, "--library", new, "--json").json()
    assert (restored["library"], restored["rows"]) == (str(new / "library.db"), written["rows"])
    assert (restored["tools"], restored["settings"], restored["settings_left_out"]) == (["notes"], None, [])
    assert restored["tokens"] == []


def test_in_a_folder_a_backup_is_named_by_date_and_time(run: Run, library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    written = run("backup", folder, "--library", library, "--json").json()
    assert [str(path) for path in folder.iterdir()] == [written["file"]]
    assert re.fullmatch(r"bunko-\d{8}T\d{6}Z\.zip", Path(str(written["file"])).name)


def test_settings_that_a_backup_may_not_set_are_named_with_the_flag_for_them(
    run: Run, library: Path, tmp_path: Path
) -> None:
    (library / "bunko.toml").write_text("[search]\ntop_k = 3\n[serve]\nport = 9000\n")
    file = tmp_path / "backup.zip"
    assert run("backup", file, "--library", library).code == 0
    restored = run("restore", file, "--library", tmp_path / "new")
    assert "Not restored, because a backup may come from somebody else: serve.port." in restored.out
    assert "--settings restores them too" in restored.out
    assert "port" not in (tmp_path / "new" / "bunko.toml").read_text()
    told = run("restore", file, "--library", tmp_path / "json", "--json").json()
    assert told["settings_left_out"] == ["serve.port"]
    whole = run("restore", file, "--library", tmp_path / "own", "--settings")
    assert "Not restored" not in whole.out
    assert (tmp_path / "own" / "bunko.toml").read_text() == (library / "bunko.toml").read_text()


def test_tokens_that_a_restore_makes_valid_again_are_named(run: Run, library: Path, tmp_path: Path) -> None:
    assert run("token", "add", "alice", "--library", library).code == 0
    assert run("token", "add", "bob", "--library", library).code == 0
    assert run("backup", tmp_path / "backup.zip", "--library", library).code == 0
    assert run("token", "revoke", "alice", "--library", library).code == 0
    new = tmp_path / "new"
    restored = run("restore", tmp_path / "backup.zip", "--library", new)
    assert "Tokens that are valid again: alice, bob." in restored.out
    assert f"Revoke again what was revoked since: bunko token revoke NAME --library {new}" in restored.out
    told = run("restore", tmp_path / "backup.zip", "--library", tmp_path / "json", "--json").json()
    assert told["tokens"] == ["alice", "bob"]


def test_a_restore_to_a_file_leaves_the_settings_of_its_folder_alone(run: Run, library: Path, tmp_path: Path) -> None:
    (library / "bunko.toml").write_text("[search]\ntop_k = 3\n")
    assert run("backup", tmp_path / "backup.zip", "--library", library).code == 0
    restored = run("restore", tmp_path / "backup.zip", "--database", tmp_path / "new.db")
    assert restored.code == 0, restored.err
    assert "The settings in the backup were not written." in restored.out
    assert not (tmp_path / "bunko.toml").exists()
    assert run("search", "環境構築", "--database", tmp_path / "new.db").code == 0


def test_mistakes_are_told_in_a_sentence_and_change_nothing(run: Run, library: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    assert run("backup", file, "--library", library).code == 0
    (tmp_path / "text.zip").write_text("text")
    (tmp_path / "half.zip").write_bytes(file.read_bytes()[:-20_000])
    for arguments, code, words in (
        (("backup", file, "--library", library), "source", "exists already"),
        (("backup", tmp_path / "no" / "b.zip", "--library", library), "source", "cannot be written: No such file"),
        (("backup", tmp_path / "b.zip", "--library", tmp_path / "none"), "library", "There is no library at"),
        (("backup", "--check", tmp_path / "none.zip"), "source", "cannot be read: No such file"),
        (("backup", "--check", tmp_path), "source", "cannot be read: Is a directory"),
        (("backup", "--check", tmp_path / "text.zip"), "damaged", "is damaged, or no backup"),
        (("restore", tmp_path / "half.zip", "--library", tmp_path / "new"), "damaged", "is damaged, or no backup"),
        (("restore", file, "--library", library), "library", "holds a library, which was not changed"),
        (("restore", file, "--library", tmp_path / "text.zip"), "read-only", "cannot be written"),
    ):
        refused = run(*arguments)
        assert refused.code == EXIT_CODES[code], refused.err
        assert words in refused.err
        assert len(refused.err.splitlines()) >= 2, "what to do is said, too"
        assert refused.out == ""
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "b.zip").exists()


def test_a_lost_library_is_restored_to_its_own_place(run: Run, library: Path, tmp_path: Path) -> None:
    assert run("backup", tmp_path / "backup.zip", "--library", library).code == 0
    (library / "library.db").write_bytes(b"damaged" * 1000)
    refused = run("restore", tmp_path / "backup.zip", "--library", library)
    assert refused.code == EXIT_CODES["damaged"]
    shutil.move(library / "library.db", tmp_path / "damaged.db")
    assert run("restore", tmp_path / "backup.zip", "--library", library).code == 0
    assert run("search", "環境構築", "--library", library).code == 0
    assert run("doctor", "--library", library).code == 0
