"""Tables for people: columns, paths and ages that fit a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bunko.interfaces.cli.terminal import columns
from bunko.interfaces.cli.terminal.columns import Column, display_path, format_age, number
from bunko.interfaces.cli.terminal.tables import cell_width, print_message, shorten_path, shorten_text, show_table

COLUMNS = (
    Column("tool", min_width=20),
    Column("state", "keep", 2),
    number("documents", 4),
    Column("source", "path", 3, min_width=20),
)
ROWS = (
    ("日記", "active", "1,203", "~/Documents/日記/2024/春から秋までの記録"),
    ("api-documentation", "disabled", "3", "/srv/shared/engineering/documentation/api/reference"),
)


def lines_at(width: int, columns: Sequence[Column] = COLUMNS, rows: Sequence[Sequence[str]] = ROWS) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_table(columns, rows, console=console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_a_table_is_one_line_per_row_and_no_wider_than_the_terminal(width: int) -> None:
    lines = lines_at(width)
    assert len(lines) == 2 + len(ROWS)
    assert max(map(cell_width, lines)) <= width


def test_without_room_the_least_important_column_is_left_out_first() -> None:
    assert lines_at(120)[0].split() == ["tool", "state", "documents", "source"]
    assert lines_at(58)[0].split() == ["tool", "state", "source"]
    assert lines_at(40)[0].split() == ["tool", "state"]
    assert lines_at(20)[0].split() == ["tool"]


def test_wide_characters_do_not_move_the_columns_beside_them() -> None:
    _, _, japanese, english = lines_at(80)
    assert cell_width(japanese[: japanese.index("active")]) == cell_width(english[: english.index("disabled")])


def test_a_column_without_a_value_is_left_out() -> None:
    columns = (Column("tag"), Column("note", priority=2))
    assert lines_at(80, columns, [("旅行", ""), ("python", "")])[0] == "tag"
    assert lines_at(80, columns, [("旅行", ""), ("python", "a language")])[0].split() == ["tag", "note"]


def test_a_line_break_in_a_cell_does_not_make_a_second_line() -> None:
    assert lines_at(80, (Column("title"),), [("Two\nlines",)])[2:] == ["Two lines"]


def test_a_column_that_wraps_keeps_all_of_its_text() -> None:
    text = "The folder does not exist any more; its index is kept. Move it back, or name the new one."
    lines = lines_at(40, (Column("check", "keep"), Column("result", "wrap")), [("日記", text)])
    assert " ".join(line[6:].strip() for line in lines[2:]).endswith("name the new one.")
    assert max(map(cell_width, lines)) <= 40


def test_a_command_that_does_not_fit_goes_on_a_line_of_its_own() -> None:
    message = "recipes: its folder is missing; the index is kept. If it has moved: bunko tool update -n recipes -s PATH"
    console = Console(file=io.StringIO(), width=60, highlight=False)
    print_message(message, console=console)
    assert isinstance(console.file, io.StringIO)
    *sentences, command = console.file.getvalue().splitlines()
    assert [line.rstrip() for line in sentences] == [
        "recipes: its folder is missing; the index is kept. If it has",
        "moved:",
    ]
    assert command == "  bunko tool update -n recipes -s PATH"


@pytest.mark.parametrize(
    ("path", "width", "shorter"),
    [
        ("~/notes/2024/plan.md", 40, "~/notes/2024/plan.md"),
        ("~/notes/work/projects/2024/plan.md", 24, "~/notes/…/2024/plan.md"),
        ("~/notes/work/projects/2024/plan.md", 12, "~/…/plan.md"),
        ("/srv/shared/engineering/api", 20, "/srv/…/api"),
        ("~/日記/二〇二四年/秋の京都.md:L3-L9", 30, "~/日記/…/秋の京都.md:L3-L9"),
        ("a-very-long-name-of-a-document.md:L3", 20, "a-very-lo…ment.md:L3"),
        ("https://example.com/docs/guide/start.html", 36, "example.com/docs/guide/start.html"),
        ("https://example.com/docs/guide/start.html", 28, "example.com/…/start.html"),
        (r"C:\Users\me\notes\2024\plan.md", 24, r"C:\Users\…\2024\plan.md"),
    ],
)
def test_a_long_path_is_cut_between_its_folders(path: str, width: int, shorter: str) -> None:
    assert shorten_path(path, width) == shorter


@given(st.text(), st.integers(1, 60))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    assert cell_width(shorten_path(text, width)) <= width
    assert cell_width(shorten_text(text, width)) <= width


def test_the_home_folder_is_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert display_path(str(tmp_path)) == "~"
    assert display_path(str(tmp_path / "日記")) == str(Path("~/日記"))
    assert display_path(f"{tmp_path}s") == f"{tmp_path}s"
    assert display_path("") == ""
    assert display_path(f"its source {tmp_path / 'a'} is missing") == f"its source {Path('~/a')} is missing"


@pytest.mark.parametrize(
    ("past", "age"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=3, seconds=50), "3 min ago"),
        (timedelta(hours=5, minutes=59), "5 h ago"),
        (timedelta(hours=30), "1 day ago"),
        (timedelta(days=9), "9 days ago"),
        (timedelta(days=90), "2024-03-17"),
        (-timedelta(days=2), "2024-06-17"),
    ],
)
def test_a_time_is_shown_as_an_age_and_after_a_month_as_a_date(
    past: timedelta, age: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2024, 6, 15, 12, tzinfo=UTC)
    monkeypatch.setattr(columns, "current_time", lambda: now)
    assert format_age((now - past).isoformat()) == age


def test_what_is_no_time_is_shown_as_it_is() -> None:
    assert format_age("never") == "never"
