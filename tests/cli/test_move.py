"""`bunko move` and `bunko index use` at the command line: what they print, and which settings file they change."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.cli.terminal.progress import step_line_writer
from bunko.library.opening.paths import user_config_folder, user_data_folder
from tests.conftest import Run


@pytest.fixture
def library(run: Run, notes: Path, tmp_path: Path) -> Path:
    """A library with three documents."""
    folder = tmp_path / "library"
    assert run("add", notes, "-n", "notes", "--library", folder).code == 0
    return folder


def test_a_move_says_what_it_did_and_how_to_go_back(run: Run, library: Path, tmp_path: Path) -> None:
    moved = run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--library", library)
    assert moved.code == 0, moved.err
    for text in (
        f"Moved 1 tool to {tmp_path / 'new.db'}.",
        "rows are equal, and all 3 sample searches rank the same.",
        f"Wrote {library / 'bunko.toml'}.",
        f"The old library is still in {library / 'library.db'}. When you no longer need it: rm {library}",
        f"The way back: bunko move --to sqlite:{library / 'library.db'} --library {library}",
    ):
        assert text in moved.out
    assert run("search", "環境構築", "--library", library).code == 0
    assert str(tmp_path / "new.db") in run("status", "--library", library).out
    back = run("move", "--to", f"sqlite:{library / 'library.db'}", "--library", library, "--json").json()
    assert back["way_back"] == f"sqlite:{tmp_path / 'new.db'}"
    assert (back["destination"], back["searches_compared"], back["dry_run"]) == ("former", 3, False)
    assert back["tools"] == [{"name": "notes", "documents": 3, "chunks": 3, "vectors": 3}]


def test_a_move_that_was_killed_while_it_created_the_file_goes_on(run: Run, library: Path, tmp_path: Path) -> None:
    place = tmp_path / "new.db"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # the first thing that is written
    assert place.stat().st_size
    missing = run("search", "環境", "--database", place)
    assert f"{place} is an empty file" in missing.err
    moved = run("move", "--to", f"sqlite:{place}", "--library", library)
    assert moved.code == 0, moved.err
    assert run("search", "環境構築", "--library", library).code == 0


def test_a_dry_run_changes_nothing(run: Run, library: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(library.rglob("*")) if path.is_file()}
    planned = run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--dry-run", "--library", library)
    assert "notes: 3 documents, 3 chunks, 3 vectors" in planned.out
    assert f"would be copied from {library / 'library.db'} to {tmp_path / 'new.db'}." in planned.out
    assert f"Then {library / 'bunko.toml'} would name the new place." in planned.out
    assert run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--dry-run", "--library", library, "--json").json()[
        "rows"
    ]
    assert {path: path.read_bytes() for path in sorted(library.rglob("*")) if path.is_file()} == before
    assert not (tmp_path / "new.db").exists()


def test_a_place_that_is_none_is_refused_without_showing_it(run: Run, library: Path) -> None:
    for place in ("mysql://root:geheim@db/x", "geheim", "sqlite:", "postgresql:geheim"):
        refused = run("move", "--to", place, "--library", library)
        assert refused.code == EXIT_CODES["settings"]
        assert "Write --to postgresql://USER@HOST/DATABASE or --to sqlite:FILE." in refused.err
        assert "geheim" not in refused.err + refused.out
    assert run("move", "--library", library).code == 2
    assert run("move", "--undo", "--to", "sqlite:x", "--library", library).code == 2


def test_a_library_that_has_moved_says_so_until_the_move_is_undone(run: Run, library: Path, tmp_path: Path) -> None:
    run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--library", library)
    (library / "bunko.toml").unlink()
    refused = run("search", "環境", "--library", library)
    assert refused.code == EXIT_CODES["moved"]
    assert f"{library / 'library.db'} has moved to {tmp_path / 'new.db'}" in refused.err
    assert "bunko move --undo" in refused.err
    assert run("move", "--undo", "--library", library).code == 0
    assert run("search", "環境", "--library", library).code == 0
    assert run("move", "--undo", "--library", library).code == EXIT_CODES["settings"]


def test_a_library_named_by_its_file_is_named_by_the_new_one_afterwards(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run("add", notes, "-n", "notes", "--database", tmp_path / "a.db").code == 0
    moved = run("move", "--to", f"sqlite:{tmp_path / 'b.db'}", "--database", tmp_path / "a.db")
    assert f"Name it with --database {tmp_path / 'b.db'} from now on." in moved.out
    assert not (tmp_path / "bunko.toml").exists()
    assert run("search", "環境", "--database", tmp_path / "b.db").code == 0
    assert run("search", "環境", "--database", tmp_path / "a.db").code == EXIT_CODES["moved"]


def test_settings_for_all_libraries_stay_as_they_are_and_their_copy_says_where_this_one_is(
    run: Run, library: Path, tmp_path: Path
) -> None:
    shared = user_config_folder() / "bunko.toml"
    shared.parent.mkdir(parents=True)
    shared.write_text("# for all\n[search]\ntop_k = 2\n")
    moved = run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--library", library)
    assert f"Wrote {library / 'bunko.toml'} with the other settings of {shared}" in moved.out
    assert shared.read_text() == "# for all\n[search]\ntop_k = 2\n"
    assert (library / "bunko.toml").read_text().startswith("# for all\n[search]\ntop_k = 2\n")


@pytest.mark.parametrize("content", ["[storage]\npassword_file = 'key'\n", "dotenv"])
def test_settings_that_would_not_be_the_same_in_another_folder_are_not_copied(
    run: Run, library: Path, tmp_path: Path, content: str
) -> None:
    shared = user_config_folder() / "bunko.toml"
    shared.parent.mkdir(parents=True)
    shared.write_text(content if content != "dotenv" else "[search]\ntop_k = 2\n")
    if content == "dotenv":
        (shared.parent / ".env").write_text("OPENAI_API_KEY=x\n")
    else:
        (shared.parent / "key").write_text("secret")
        (shared.parent / "key").chmod(0o600)
    refused = run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--library", library)
    assert refused.code == EXIT_CODES["settings"]
    assert "applies to all your libraries" in refused.err
    assert not (tmp_path / "new.db").exists()


def test_the_default_library_moves_too(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run("add", notes, "-n", "notes").code == 0
    moved = run("move", "--to", f"sqlite:{tmp_path / 'new.db'}")
    assert f"Wrote {user_data_folder() / 'bunko.toml'}." in moved.out
    assert str(tmp_path / "new.db") in run("status").out
    assert run("move", "--to", f"sqlite:{user_data_folder() / 'library.db'}").code == 0
    assert str(user_data_folder() / "library.db") in run("status").out


def test_the_settings_file_that_a_flag_names_is_the_one_that_is_changed(
    run: Run, library: Path, tmp_path: Path
) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("# mine\nindex:\n  kind: embedded\n")
    refused = run("index", "use", "chroma:http://127.0.0.1:1", "--library", library, "--config", config)
    assert refused.code == EXIT_CODES["index"]
    moved = run("move", "--to", f"sqlite:{library / 'b.db'}", "--library", library, "--config", config)
    assert moved.code == 0, moved.err
    assert config.read_text().startswith("# mine\nindex:\n  kind: embedded\n\nstorage:\n")


def test_what_the_environment_sets_cannot_be_switched(
    run: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_STORAGE_KIND", "sqlite")
    refused = run("move", "--to", f"sqlite:{tmp_path / 'new.db'}", "--library", library)
    assert (
        "storage.kind is set by environment BUNKO_STORAGE_KIND, which a settings file does not override" in refused.err
    )
    monkeypatch.setenv("BUNKO_INDEX_KIND", "chroma")
    assert "index.kind is set by environment" in run("index", "use", "embedded", "--library", library).err
    assert not (tmp_path / "new.db").exists()


def test_a_documents_folder_chooses_no_other_place(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run("reindex", "--docs-dir", notes).code == 0
    assert "belongs in one folder" in run("move", "--to", f"sqlite:{tmp_path / 'x.db'}", "--docs-dir", notes).err
    refused = run("index", "use", "chroma:http://127.0.0.1:1", "--docs-dir", notes)
    assert "may not choose an engine or a server" in refused.err


def test_an_engine_that_is_away_in_use_or_none_changes_nothing(run: Run, library: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    away = run("index", "use", f"chroma:http://127.0.0.1:{port}", "--library", library)
    assert (away.code, away.err.count("is away")) == (EXIT_CODES["index"], 1)
    assert "embedded is the index of this library already" in run("index", "use", "embedded", "--library", library).err
    for engine in ("geheim", "embedded:geheim", "chroma:http://me:geheim@127.0.0.1:1"):
        refused = run("index", "use", engine, "--library", library)
        assert refused.code == EXIT_CODES["settings"]
        assert "geheim" not in refused.err + refused.out
    assert not (library / "bunko.toml").exists()
    assert run("index", "drop", "--engine", "chroma", "--library", library).code == 2
    assert run("index", "drop", "--all", "--engine", "embedded", "--library", library).code == EXIT_CODES["settings"]


def test_whoever_leaves_an_engine_that_is_gone_does_not_need_it(run: Run, library: Path) -> None:
    (library / "bunko.toml").write_text('[index]\nkind = "chroma"\n\n[chromadb]\nurl = "http://127.0.0.1:1"\n')
    left = run("index", "use", "embedded", "--library", library)
    assert left.code == 0, left.err
    assert "The old index did not answer, so nothing was compared: Chroma at http://127.0.0.1:1 is away" in left.err
    address = "chroma:http://127.0.0.1:1"
    assert f"The way back: bunko index use {address} --library {library}\n" in left.out
    assert f"bunko index drop --all --engine {address} --library {library}\n" in left.out
    assert 'kind = "embedded"' in (library / "bunko.toml").read_text()


@pytest.mark.slow
def test_ctrl_c_is_one_sentence_and_switches_nothing(library: Path, tmp_path: Path) -> None:
    """The move is stopped while it waits for another writer, at a moment that is known."""
    from filelock import FileLock

    with FileLock(library / "library.db.lock"):
        command = [
            sys.executable,
            "-m",
            "bunko",
            "move",
            "--to",
            f"sqlite:{tmp_path / 'new.db'}",
            "--library",
            str(library),
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert "is writing to this library; waiting for it to finish." in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
    assert process.returncode == 130
    assert rest.strip().endswith("Interrupted. Finished work is saved; run the command again to continue.")
    assert "Traceback" not in rest
    assert not (library / "bunko.toml").exists()


def test_a_log_shows_every_two_seconds_how_far_a_step_has_come() -> None:
    lines: list[str] = []
    times = iter([0.0, 1.0, 2.5, 2.5, 3.0])
    update = step_line_writer(lines.append, lambda: next(times))
    for done in (1000, 2000, 3000):
        update("Copying", done, 9000)
    assert lines == ["Copying: 2,000/9,000"]
