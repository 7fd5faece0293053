"""A picture shows what a terminal of that width shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import pictures
from tests.cli.pictures import Screen, Terminal, check_picture


def test_a_picture_has_the_rows_of_a_terminal_of_that_width(terminal: Terminal, notes: Path) -> None:
    narrow = terminal("search", "京都", "--docs-dir", notes, width=40)
    wide = terminal("search", "京都", "--docs-dir", notes, width=200)
    assert narrow.code == wide.code == 0
    assert "\x1b[" in narrow.written
    assert not any("\x1b" in row for row in narrow.rows)
    assert len(narrow.rows) > len(wide.rows)


def test_a_picture_that_differs_is_an_error_that_says_how_to_renew_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "PICTURES", tmp_path)
    monkeypatch.setattr(pictures, "UPDATE", False)
    with pytest.raises(AssertionError, match="BUNKO_UPDATE_SNAPSHOTS=1"):
        check_picture("new", Screen(0, "", ["京都"]))
    monkeypatch.setattr(pictures, "UPDATE", True)
    check_picture("new", Screen(0, "", ["京都"]))
    monkeypatch.setattr(pictures, "UPDATE", False)
    check_picture("new", Screen(0, "", ["京都"]))
    with pytest.raises(AssertionError, match="looks different"):
        check_picture("new", Screen(0, "", ["奈良"]))
