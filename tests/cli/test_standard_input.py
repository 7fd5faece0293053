"""`bunko ask -` and `bunko search -`: the question or query comes from standard input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.conftest import Run

QUESTION = "How long are\nbackups kept?\n"


@pytest.fixture
def library(docs: Path) -> Path:
    (docs / "backups.md").write_text("# Backups\n\nBackups are kept for 35 days.\n", encoding="utf-8")
    (docs / "旅.md").write_text("# 旅\n\n秋の京都で寺の庭を巡る。\n", encoding="utf-8")
    return docs


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_a_hyphen_reads_the_question_from_standard_input(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, QUESTION.encode())
    ran = run("ask", "-", "--docs-dir", library)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "Backups are kept for 35 days. [1]")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp932"])
def test_a_hyphen_reads_the_query_from_standard_input(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    pipe(monkeypatch, "京都の寺の庭を巡る旅\n".encode(encoding))
    ran = run("search", "-", "--docs-dir", library, "--format", "paths")
    assert (ran.code, ran.out.splitlines()[0].split("/")[-1]) == (0, "旅.md")


@pytest.mark.parametrize("command", ["ask", "search"])
@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b" \n", "Standard input is empty", "Pipe text into it, as in: bunko {} - < FILE."),
        (bytes(range(256)), "Standard input is not text", "Pipe text in UTF-8 into it."),
    ],
)
def test_standard_input_without_text_is_an_error(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, command: str, data: bytes, message: str, hint: str
) -> None:
    pipe(monkeypatch, data)
    ran = run(command, "-", "--docs-dir", library)
    assert (ran.code, ran.out) == (4, "")
    assert message in ran.err
    assert hint.format(command) in ran.err


def test_a_hyphen_among_words_is_a_word(run: Run, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"tea\n")
    assert "35 days" in run("search", "backups", "-", "kept", "--docs-dir", library).out
