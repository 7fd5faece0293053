"""Files whose package is missing are counted wherever a tool is shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bunko.runtime.installation import install_command
from tests.conftest import Run


@pytest.fixture
def papers(docs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a note and three PDF files, in an environment without the package that reads those."""
    (docs / "a.md").write_text("# 京都\n\n京都の寺。\n", encoding="utf-8")
    for name in ("x.pdf", "y.pdf", "z.pdf"):
        (docs / name).write_bytes(b"%PDF-1.4")
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    return docs


def test_add_and_status_count_them(run: Run, papers: Path) -> None:
    added = run("add", papers, "-n", "papers")
    assert "Added papers: 1 document, 1 chunk, 3 files not read\n" in added.out
    assert "3 documents not indexed, or only in part:" in added.err
    line = (
        "problem: x.pdf: cannot be read without the package pypdfium2 (like 2 more files of this format);"
        f" install it with: {install_command(package='pypdfium2')}"
    )
    assert line in run("status").out
    assert run("status", "-n", "papers").out.count(line) == 1


def test_one_more_file_is_called_a_file(run: Run, papers: Path) -> None:
    (papers / "z.pdf").unlink()
    assert "(like 1 more file of this format)" in run("add", papers).err


def test_without_files_of_the_format_nothing_is_said(run: Run, papers: Path) -> None:
    for name in ("x.pdf", "y.pdf", "z.pdf"):
        (papers / name).unlink()
    assert "not read" not in run("add", papers).out
    assert "problem" not in run("status").out
