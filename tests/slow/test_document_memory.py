"""A file that nobody would write, or that was pasted from a log, is imported in little memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slow.memory import run_bunko

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="peak memory is told in its own unit"),
]

MOST = 500_000_000
TEXT = ("The quick brown fox jumps over the lazy dog near the river bank. " * 10 + "\n\n") * 1000

CASES: dict[str, Callable[[], str]] = {
    "a pasted log above a line of dashes": lambda: (
        "12:00:01 worker 7 has finished its job\n" * 400_000 + f"---\n{TEXT}"
    ),
    "tags in a line": lambda: "---\ntags: " + ", ".join(f"tag{number}" for number in range(200_000)) + f"\n---\n{TEXT}",
    "tags in a list": lambda: (
        "---\ntags:\n" + "".join(f"- tag{number}\n" for number in range(200_000)) + f"---\n{TEXT}"
    ),
    "headings without text": lambda: "# a\n" * 1_000_000,
    "headings with a word each": lambda: "# a\nb\n" * 1_000_000,
    "headings of changing levels": lambda: "# a\nb\n## a\nb\n" * 500_000,
    "headings that do not split": lambda: "".join(f"#### h{number}\nb\n" for number in range(1_000_000)),
    "underlined headings": lambda: "a\n==\nb\n\n" * 1_000_000,
    "long headings above short sections": lambda: (
        f"# {'あ い' * 90}\n## {'う え' * 90}\n" + f"### x\n{'uvw ' * 12}\n" * 250_000
    ),
    "rows of a table": lambda: "|a|b|\n|-|-|\n" + "|1|2|\n" * 3_000_000,
    "rows below a wide header": lambda: f"|{'長い見出し|' * 240}\n|{'-|' * 240}\n" + "|1|2|\n" * 1_000_000,
    "tables": lambda: "|a|b|\n|-|-|\n\n" * 1_300_000,
    "code blocks": lambda: "```\n```\n" * 1_200_000,
    "lines of one letter": lambda: "a\n" * 9_500_000,
    "one line": lambda: "x" * 19_000_000,
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_takes_little_memory_whatever_it_holds(tmp_path: Path, case: str) -> None:
    (tmp_path / "a.md").write_text(CASES[case](), encoding="utf-8")
    peak, printed = run_bunko(["reindex", "--docs-dir", tmp_path], tmp_path)
    assert "1 added" in printed
    assert peak < MOST


def test_paragraphs_of_a_plain_text_take_little_memory(tmp_path: Path) -> None:
    (tmp_path / "bunko.toml").write_text('[scanner]\nfile_extensions = [".txt"]\n')
    (tmp_path / "a.txt").write_text("a word\n\n" * 2_000_000, encoding="utf-8")
    peak, printed = run_bunko(["reindex", "--docs-dir", tmp_path], tmp_path)
    assert "1 added" in printed
    assert peak < MOST
