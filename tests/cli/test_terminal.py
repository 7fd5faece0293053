"""What a terminal and a pipe get from the command line: colours, tables, encodings, and nothing that controls them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import ESCAPE, at_a_terminal, subprocess_environment
from tests.conftest import Run


@pytest.mark.slow
def test_python_m_bunko_is_bunko_and_speaks_utf_8_into_a_pipe(notes: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "search", "京都", "--docs-dir", str(notes)],
        capture_output=True, text=True, encoding="utf-8", check=True, env=subprocess_environment(tmp_path),
    )  # fmt: skip
    assert done.stdout.startswith("[1] temple.md:")
    assert "京都の寺" in done.stdout
    assert ESCAPE not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_terminal_that_cannot_show_japanese_gets_marks_instead_of_an_error(notes: Path, tmp_path: Path) -> None:
    environment = subprocess_environment(tmp_path, PYTHONUTF8="0", PYTHONIOENCODING="ascii:strict", LC_ALL="C")
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "search", "patent", "--docs-dir", str(notes), "--json"],
        capture_output=True, text=True, encoding="ascii", check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "patent was filed" in done.stdout


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_a_search_quietly(docs: Path, tmp_path: Path) -> None:
    for number in range(40):
        (docs / f"{number}.md").write_text(f"# {number}\n\n" + "京都の寺の庭を巡る。" * 250, encoding="utf-8")
    command = [sys.executable, "-m", "bunko", "search", "京都", "--docs-dir", str(docs), "--top-k", "500"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env=subprocess_environment(tmp_path),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("[1]")
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_a_terminal_gets_colours_tables_and_a_progress_bar(notes: Path, tmp_path: Path) -> None:
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="160")
    terminal.pop("NO_COLOR", None)
    imported = at_a_terminal("reindex", "--docs-dir", notes, env=terminal)
    assert "Importing" in imported
    assert "3/3" in imported
    assert "3 added" in imported
    found = at_a_terminal("search", "京都", "--docs-dir", notes, "--explain", env=terminal)
    assert f"{ESCAPE}[" in found
    assert "temple.md:L" in found
    status = at_a_terminal("status", "--docs-dir", notes, env=terminal)
    assert f"{ESCAPE}[1mdocuments" in status
    assert "───" in status
    assert ESCAPE in at_a_terminal("doctor", "--docs-dir", notes, env=terminal)
    assert "───" in at_a_terminal("config", "show", "search", "--docs-dir", notes, env=terminal)
    plain = at_a_terminal("search", "京都", "--docs-dir", notes, env=terminal | {"TERM": "dumb"})
    assert ESCAPE not in plain
    as_json = at_a_terminal("search", "京都", "--docs-dir", notes, "--json", env=terminal)
    assert json.loads(as_json)["results"]


@pytest.mark.slow
def test_a_progress_bar_shows_no_speed_before_it_is_known(notes: Path, tmp_path: Path) -> None:
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color")
    written = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", at_a_terminal("reindex", "--docs-dir", notes, env=terminal))
    assert "files" in written
    assert "?" not in written


@pytest.mark.slow
def test_the_first_search_of_a_large_folder_shows_a_progress_bar(docs: Path, tmp_path: Path) -> None:
    for number in range(120):
        (docs / f"{number}.md").write_text(f"# {number}\n\n京都の寺を巡った{number}日目の記録です。", encoding="utf-8")
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="120")
    asked = ("search", "京都", "--docs-dir", docs, "-k", "1")
    first = at_a_terminal(*asked, env=terminal)
    assert "Indexing" in first
    assert "120/120 files" in first
    assert first.index("Indexing") < first.index(".md:L1")
    (docs / "0.md").write_text("# 0\n\n京都の鐘。", encoding="utf-8")
    assert "Indexing" not in at_a_terminal(*asked, env=terminal), "a bar would only flicker"


@pytest.mark.slow
def test_a_document_cannot_steer_the_terminal_it_is_shown_on(docs: Path, tmp_path: Path) -> None:
    (docs / "evil.md").write_text("# 京都 \x1b]0;owned\x07\n\n京都の寺 \x1b[2J\x1b[H \x9b31m です。", encoding="utf-8")
    (docs / "na\x1b[2Jme.md").write_text("# 京都\n\n京都の寺の庭を巡る、少し長めの文章です。", encoding="utf-8")
    (docs / "empty\x1b[2J.md").touch()
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="160")
    for command in (("reindex",), ("search", "京都", "--explain"), ("status",)):
        written = at_a_terminal(*command, "--docs-dir", docs, env=terminal)
        assert f"{ESCAPE}[2J" not in written
        assert f"{ESCAPE}]0;" not in written
        assert "\x9b" not in written


def test_records_in_a_pipe_stay_one_line_and_cannot_steer_a_terminal(run: Run, docs: Path) -> None:
    text = "# 京都 \x1b]0;owned\x07\r\n\r\n京都の寺の庭を巡る、\x1b[2J 少し長めの文章です。\r\n"
    (docs / "new\nline\x1b[2J.md").write_bytes(text.encode())
    (docs / "empty\n.md").touch()
    assert "  empty\\n.md: is empty" in run("reindex", "--docs-dir", docs).err
    found = run("search", "京都", "--docs-dir", docs).out
    assert found.startswith("[1] new\\nline\\x1b[2J.md:L1")
    assert "少し長めの文章です。" in found
    assert not {ESCAPE, "\x07", "\r"} & set(found)
    listed = run("status", "-n", "documents", "--docs-dir", docs).out.splitlines()
    assert sum(line.startswith("new\\nline\\x1b[2J.md\t") for line in listed) == 1
    assert any(line.startswith("problem: empty\\n.md: is empty") for line in listed)
    assert json.loads(run("search", "京都", "--docs-dir", docs, "--json").out)["results"][0]["file_path"] == (
        "new\nline\x1b[2J.md"
    )
