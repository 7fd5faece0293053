"""Test that benchmarks find the tables that they write in the docs and notes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.documents import write_section

from tests.docs.test_docs import PAGES, text_of

_MARKER = re.compile(r"<!-- (/?bench)(?::([\w-]+))? -->")


def test_each_table_of_a_benchmark_stands_in_one_page() -> None:
    markers = [marker for page in PAGES for marker in _MARKER.findall(text_of(page))]
    assert [kind for kind, _ in markers] == ["bench", "/bench"] * (len(markers) // 2)
    names = [name for kind, name in markers if kind == "bench"]
    assert len(names) == len(set(names)) > 25


def test_a_table_is_written_into_the_page_that_has_it(tmp_path: Path) -> None:
    pages = [tmp_path / "words.md", tmp_path / "memos.md"]
    for page in pages:
        page.write_text(f"before\n\n<!-- bench:{page.stem} -->\n\nold\n\n<!-- /bench -->\n\nafter\n", encoding="utf-8")
    words = pages[0].read_text(encoding="utf-8")
    write_section("memos", "new", pages)
    assert [page.read_text(encoding="utf-8") for page in pages] == [
        words,
        "before\n\n<!-- bench:memos -->\n\nnew\n\n<!-- /bench -->\n\nafter\n",
    ]
    with pytest.raises(SystemExit, match="bench:meno"):
        write_section("meno", "new", pages)


@pytest.mark.parametrize("page", ["docs/performance.md", "docs/scaling.md"])
def test_what_users_need_of_the_measurements_fits_two_pages(page: str) -> None:
    prose = re.sub(r"<!--.*?-->", "", text_of(page))
    assert len([word for word in prose.split() if re.search(r"\w", word)]) <= 1200
