"""An output in the docs that is not what its command prints is noticed, and its numbers are renewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import outputs
from tests.docs.outputs import check_output, renew

TABLE = "name    size     last import\n────────────────\nnotes   71.8 kB  3 min ago"


@pytest.mark.parametrize("printed", ["5 added", "4 added, 0 moved", "4 added\nmore", "14 added"])
def test_another_text_is_noticed(printed: str) -> None:
    assert renew("4 added", "4 added\n") == "4 added"
    assert renew("4 added", printed) is None
    assert renew("4 …", printed) == ("4 …" if printed.startswith("4") else None)


def test_numbers_are_renewed_and_times_and_what_is_left_out_stay() -> None:
    shown = "[1] a.md:L1-L2  score=0.8250\nwhy: word +3.1195; bm25 3.119 (rank 1)\n…\n09:00:00 Stopped"
    printed = "[1] a.md:L1-L2  score=0.9\nwhy: word +10.5; bm25 -2.25 (rank 1)\nText 1.5\n10:11:12 Stopped\n"
    renewed = shown.replace("0.8250", "0.9").replace("3.1195", "10.5").replace("3.119", "-2.25")
    assert renew(shown, printed) == renewed
    assert renew(shown, printed.replace("rank 1", "rank 2")) is None


def test_columns_of_a_table_may_be_wider() -> None:
    printed = "name         size      last import\n──────────\nnotes        72.05 kB  2026-01-02 10:00\n"
    assert renew(TABLE, printed, is_table=True) == TABLE.replace("71.8 kB", "72.05 kB")
    assert renew(TABLE, printed) is None
    assert renew(TABLE, printed.replace("notes", "no tes"), is_table=True) is None


def test_a_stale_number_fails_until_the_page_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "IS_UPDATE", False)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ bunko search x\nscore=0.8250  71.8 kB\n```\n")
    check_output([page], "bunko search x", "score=0.8250  71.8 kB\n", "score=0.8251  70.0 kB\n")
    with pytest.raises(AssertionError, match="make docs"):
        check_output([page], "bunko search x", "score=0.8250  71.8 kB\n", "score=0.8350  71.8 kB\n")
    with pytest.raises(AssertionError, match="make docs"):
        check_output([page], "bunko search x", "score=0.8250  71.8 kB\n", "score=0.8250  7.8 kB\n")
    assert "score=0.8250  71.8 kB\n" in page.read_text()
    monkeypatch.setattr(outputs, "IS_UPDATE", True)
    check_output([page], "bunko search x", "score=0.8250  71.8 kB\n", "score=0.8350  71.8 kB\n")
    assert page.read_text() == "```console\n$ bunko search x\nscore=0.8350  71.8 kB\n```\n"
