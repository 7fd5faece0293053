"""Names of files cannot forge lines, reorder what stands beside them, or control a terminal."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bunko.interfaces.cli.terminal.printing import escape_controls
from tests.cli.pictures import Terminal
from tests.conftest import Run

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
REVERSED = "\u202egnp\u2066.\x1b[2Jx"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / f"notes{REVERSED}"
    folder.mkdir()
    (folder / f"{REVERSED}\nforged.md").write_text(
        f"# 京都{REVERSED}\n\n#旅{REVERSED} 金閣寺に行った。\n", encoding="utf-8"
    )
    (folder / f"broken{REVERSED}.pdf").write_bytes(b"%PDF-1.4 nothing")
    return folder


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file names")
def test_no_command_prints_what_a_terminal_obeys(run: Run, folder: Path, tmp_path: Path) -> None:
    place = ("--library", str(tmp_path / "library"))
    name = f"{REVERSED}\nforged.md"
    for arguments in (
        ("add", str(folder), "-n", "notes", "--verbose"), ("import", "-n", "notes"), ("ls",), ("ls", "-l"),
        ("ls", "--json"), ("search", "金閣寺", "--verbose"), ("search", "金閣寺", "--json"), ("get", name),
        ("get", f"{name}:1", "--json"), ("get", f"none{name}"), ("open", f"none{name}"), ("status",),
        ("status", "--json"), ("recent",), ("tags",),
        ("web", "status"), ("tool", "ls"), ("tool", "ls", "-l"), ("doctor",), ("search", "金閣寺", "-n", name),
        ("search", "金閣寺", "--json", "-n", name), ("add", str(folder / f"none{name}")), ("models", "get", name),
        ("import", "-n", "notes", "--json"), ("add", str(folder / f"broken{REVERSED}.pdf")),
    ):  # fmt: skip
        ran = run(*arguments, *place)
        shown = f"{ran.out}{ran.err}" if arguments != ("get", name) else ran.err  # the document itself, in a pipe
        assert not OBEYED.search(shown), (arguments, shown)
        assert not re.search(r"^forged", shown, re.MULTILINE), (arguments, shown)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file names")
def test_no_command_obeys_a_name_at_a_terminal(run: Run, folder: Path, tmp_path: Path, terminal: Terminal) -> None:
    place = ("--library", str(tmp_path / "library"))
    run("add", str(folder), "-n", "notes", *place)
    for arguments in (
        ("ls",),
        ("search", "金閣寺"),
        ("status",),
        ("recent",),
        ("tool", "ls"),
        ("import", "-n", "notes"),
    ):
        assert not OBEYED.search("\n".join(terminal(*arguments, *place, width=80).rows)), arguments


def test_an_escaped_name_keeps_the_letters_of_all_languages() -> None:
    for name in ("日本語　の.md", "👨\u200d👩\u200d👧.md", "नमस्\u200cते.md", "e\u0301.md", "\ufe0f❤"):
        assert escape_controls(name) == name
    assert escape_controls("a\tb\n\x9b\u202e\u200f\u2028\ufeff\U000e0061") == (
        r"a\tb\n\x9b\u202e\u200f\u2028\ufeff\U000e0061"
    )
