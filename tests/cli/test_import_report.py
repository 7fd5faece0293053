"""What an import tells while it runs, and what is left where Ctrl-C ends it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.cli.main import INTERRUPTED_EXIT_CODE
from bunko.interfaces.cli.terminal.progress import progress_line, progress_line_writer
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.runtime.observer import ImportProgress
from tests.cli.processes import at_a_terminal, subprocess_environment

# Several transactions; with --verbose they say more than a pipe holds, so an import whose pipe nobody reads cannot end.
FILES = 800

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal that a test can send there")


def test_a_pipe_gets_a_line_every_two_seconds_and_one_at_the_end() -> None:
    at, said = [0.0], list[str]()
    tell = progress_line_writer(said.append, lambda: at[0])
    for seconds, files in ((0.0, 0), (0.5, 10), (1.9, 20), (2.1, 30), (3.0, 40), (4.2, 50), (4.3, 100)):
        at[0] = seconds
        tell(ImportProgress(files, 100, files * 2, files * 1000, 100_000))
    assert [one.split()[1] for one in said] == ["30/100", "50/100", "100/100"]


def test_what_is_done_within_two_seconds_says_nothing() -> None:
    at, said = [0.0], list[str]()
    tell = progress_line_writer(said.append, lambda: at[0])
    for _ in range(3):  # three tools, one after the other
        for files in (0, 50, 100):
            at[0] += 0.6
            tell(ImportProgress(files, 100, files, files, 100))
    assert said == []


def test_a_line_tells_how_far_how_fast_and_how_long_still() -> None:
    half = ImportProgress(1200, 3000, 4321, 5_000_000, 15_000_000)
    assert progress_line(half, 50.0) == "Importing: 1,200/3,000 files, 4,321 chunks, 0.1 MB/s, about 1 min 40 s left"
    assert progress_line(ImportProgress(1, 2, 3, 1, 3601), 2.0).endswith("about 2 h 0 min left")
    assert progress_line(ImportProgress(2, 2, 3, 10, 10), 2.0) == "Importing: 2/2 files, 3 chunks, 0.0 MB/s"


@pytest.mark.slow
def test_a_terminal_gets_a_bar_with_files_and_chunks_and_the_summary_stays(docs: Path, tmp_path: Path) -> None:
    for number in range(3):
        (docs / f"{number}.md").write_text(
            f"# {number}\n\n京都の寺の庭を巡る、長さの足りた文章です。", encoding="utf-8"
        )
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="120")
    shown = at_a_terminal("reindex", "--docs-dir", docs, env=terminal)
    assert "3/3 files" in shown
    assert "3 chunks" in shown
    assert shown.rstrip().endswith("3 added, 0 updated, 0 deleted, 0 unchanged, 3 chunks in total")
    (docs / "3.md").write_text("# 3\n\n京都の寺の庭を巡る、四つ目の文章です。", encoding="utf-8")
    plain = at_a_terminal("reindex", "--docs-dir", docs, env=terminal | {"TERM": "dumb"})
    assert plain.split() == "1 added, 0 updated, 0 deleted, 3 unchanged, 4 chunks in total".split()


@pytest.fixture
def library(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with a tool `notes` over many files, nothing imported yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(docs, "京都")
    with open_library(paths_for_folder(tmp_path / "library"), environ={}) as opened:
        opened.tools.add("notes", "Notes", docs)
        yield opened


def write(docs: Path, word: str) -> None:
    for number in range(FILES):
        text = f"# {number}\n\n{word}の寺の庭を巡る、長さの足りた{number}番目の文章です。\n"
        (docs / f"{number:04}.md").write_text(text, encoding="utf-8")


def importing(library: Library, *arguments: str) -> tuple[list[str], dict[str, str]]:
    place = library.paths.folder
    command = [sys.executable, "-m", "bunko", "import", "-n", "notes", "--library", str(place), "--verbose", *arguments]
    return command, subprocess_environment(place.parent)


def interrupted(library: Library, *arguments: str) -> str:
    """Start an import, press Ctrl-C after its first transaction, and return what it said."""
    command, environment = importing(library, *arguments)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    ) as process:
        assert process.stderr is not None
        # A document is told of when its transaction is committed. From here on nobody reads, so it cannot end.
        assert any("processing: " in said for said in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == INTERRUPTED_EXIT_CODE, err
    assert out == ""
    return err


def finished(library: Library, *arguments: str) -> tuple[dict[str, Any], int]:
    """Run an import to its end; return its report and how many files it read."""
    command, environment = importing(library, "--json", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.count("processing: ")


@needs_signals
@pytest.mark.slow
def test_an_import_ended_by_ctrl_c_keeps_what_it_wrote_and_the_same_command_goes_on(library: Library) -> None:
    said = interrupted(library)
    assert "Traceback" not in said
    assert f" of {FILES} files." in said
    assert "Finished work is saved" in said
    held = library.status().tools[0]
    assert 0 < held.totals.documents < FILES
    assert held.import_state == "unfinished"
    report, read = finished(library)
    assert read == report["added"] == FILES - held.totals.documents
    assert report["unchanged"] == held.totals.documents
    after = library.status().tools[0]
    assert (after.totals.documents, after.import_state) == (FILES, "done")


@pytest.mark.slow
@needs_signals
def test_a_rebuild_ended_by_ctrl_c_leaves_the_old_index_and_goes_on_from_the_half(library: Library, docs: Path) -> None:
    finished(library)
    write(docs, "奈良")
    interrupted(library, "--mode", "replace")
    held = library.status().tools[0]
    assert held.totals.documents == FILES
    assert held.rebuild_documents is not None
    assert 0 < held.rebuild_documents < FILES
    assert library.search("京都", refresh=False).hits
    assert not library.search("奈良", mode="bm25", refresh=False).hits
    report, read = finished(library, "--mode", "replace")
    assert read == FILES - held.rebuild_documents
    assert report["updated"] == FILES
    after = library.status().tools[0]
    assert (after.totals.documents, after.rebuild_documents) == (FILES, None)
    assert library.search("奈良", mode="bm25", refresh=False).hits
    assert not library.search("京都", mode="bm25", refresh=False).hits
