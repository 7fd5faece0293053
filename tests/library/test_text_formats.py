"""The files of other programs are imported by default, and a hit leads back to its place in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.search.request import SearchRequest
from tests.conftest import Opener

FIXTURES = Path(__file__).parents[1] / "fixtures" / "formats"


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    for path in FIXTURES.iterdir():
        if path.suffix != ".md":
            shutil.copy(path, docs)
    opened = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="0")
    report = opened.reindex()
    assert report.problems == []
    assert report.added == 4 + 2 + 3  # the messages of two mailboxes are documents of their own
    return opened


@pytest.mark.parametrize(
    ("query", "file", "heading_path", "lines"),
    [
        ("water the tomatoes in the morning", "garden.org", ("Spring", "Tomatoes"), (12, 17)),
        ("落ち葉と堆肥", "garden.org", ("秋の仕事",), (18, 19)),
        ("boxes of the kitchen", "moving.rst", ("引っ越しの計画", "Before the move", "Boxes"), (10, 22)),
        ("mean of the values", "rainfall.ipynb", ("京都の降水量", "Averages", "Cell 4"), None),
    ],
)
def test_a_hit_names_the_headings_and_the_lines_of_the_file(
    library: Library, query: str, file: str, heading_path: tuple[str, ...], lines: tuple[int, int] | None
) -> None:
    hit = next(hit for hit in library.search(query, mode="bm25").hits if hit.chunk.heading_path == heading_path)
    assert hit.uri == file
    assert lines is None or hit.lines == lines


def test_a_section_ends_where_the_section_of_its_format_ends(library: Library) -> None:
    page = library.page(SearchRequest("tomatoes nights warm", mode="bm25", extract="section", top_k=1))
    [item] = page.results
    assert item.text.startswith("* Spring\n")
    assert item.text.endswith("#+end_src")


def test_messages_are_found_by_their_senders_and_subjects(library: Library) -> None:
    titles = [hit.title for hit in library.search("山田 花子 会議", mode="bm25").hits]
    assert titles[0] == "明日の会議について"
