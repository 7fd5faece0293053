"""What stands at the edges of PDF pages is left out only if it is a running head or a page number."""

from __future__ import annotations

import pytest

from bunko.readers import pdf
from bunko.readers.pdf import layout
from tests.readers.pdf_files import build_form
from tests.readers.zip_files import fixture

_WORDS = ("雨量", "気温", "湿度", "風速", "日照", "積雪")


def _pages(top: list[str], bottom: list[str]) -> list[list[layout.Line]]:
    """Return pages with a line at the top, four lines of text and a line at the bottom."""
    pages = []
    for number, (first, last) in enumerate(zip(top, bottom, strict=True)):
        texts = [first, *(f"{_WORDS[number]}の{'一二三四'[row]}行目の文です。" for row in range(4)), last]
        pages.append(
            [
                layout.Line(text, 10, 50, 700 - 100 * index, 300, 710 - 100 * index)
                for index, text in enumerate(texts)
                if text
            ]
        )
    return pages


def test_rows_of_numbers_at_the_edge_of_a_page_are_no_page_numbers() -> None:
    rows = ["4,812 977 31%", "3,004 150 9%", "5,771 622 14%", "1,208 845 27%", "2,650 391 88%", "7,433 518 62%"]
    text = layout.markdown(_pages(rows, rows[::-1]))
    assert [text.count(row) for row in rows] == [2] * 6


def test_every_row_of_a_printed_sheet_is_read() -> None:
    lines = pdf.read(fixture("numbers.pdf")).text.split("\n")
    rows = fixture("numbers.csv").decode().replace(",", " ").split("\n")
    assert [row for row in rows if row not in lines] == []
    assert [line for line in lines if line.startswith("## Page 3")]


@pytest.mark.parametrize(
    "feet",
    [
        ["1", "2", "3", "4", "5", "6"],
        ["- 7 -", "- 8 -", "- 9 -", "- 10 -", "- 11 -", "- 12 -"],
        ["Page 1 of 6", "Page 2 of 6", "Page 3 of 6", "Page 4 of 6", "Page 5 of 6", "Page 6 of 6"],
        ["3-1", "3-2", "3-3", "3-4", "4-1", "4-2"],
        ["i", "ii", "iii", "iv", "v", "vi"],
        ["", "2 気象年報", "", "4 気象年報", "", "6 気象年報"],
        ["2024年度版"] * 6,
    ],
)
def test_page_numbers_and_running_heads_are_left_out(feet: list[str]) -> None:
    text = layout.markdown(_pages([""] * 6, feet))
    assert not [foot for foot in feet if foot and f"\n{foot}\n" in f"{text}\n"]


def test_a_heading_that_a_bookmark_names_stays_although_all_pages_begin_alike() -> None:
    titles = [f"Chapter {number}" for number in range(1, 7)]
    outline = [(0, title, number) for number, title in enumerate(titles)]
    text = layout.markdown(_pages(titles, [""] * 6), outline)
    assert [text.count(f"### {title}\n") for title in titles] == [1] * 6


def test_a_running_head_that_repeats_the_heading_of_its_page_is_left_out() -> None:
    pages = _pages(["観測の結果"] * 6, [""] * 6)
    pages[2].insert(1, layout.Line("観測の結果", 16, 50, 650, 300, 666))
    text = layout.markdown(pages, [(0, "観測の結果", 2)])
    assert text.count("\n観測の結果\n") == 0
    assert text.count("### 観測の結果\n") == 1


def test_what_was_written_into_a_form_is_read() -> None:
    text = pdf.read(build_form("Applicant", "Kestrel and sons")).text
    assert "Applicant" in text
    assert "Kestrel and sons" in text
