"""The place of a passage leads back to all of its pages, slides or cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bunko.errors import UnknownName
from bunko.library.library import Library
from bunko.readers import places
from bunko.search.passages import Passage, extract_passages
from tests.conftest import Opener
from tests.readers.pdf_files import build_pdf
from tests.readers.zip_files import fixture


def _find(library: Library, query: str) -> Passage:
    return extract_passages(library.search(query, top_k=1).hits, library.document_of, "chunk")[0]


def _notebook(*sources: str) -> bytes:
    cells: list[dict[str, object]] = [
        {"cell_type": "code" if source.startswith("x") else "markdown", "source": source, "outputs": []}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def test_a_passage_of_two_short_pages_names_both_and_is_read_and_verified_by_them(
    docs: Path, open_docs: Opener
) -> None:
    pytest.importorskip("pypdfium2")
    (docs / "manual.pdf").write_bytes(build_pdf([["請求書の見本。"], ["締め処理は月末。"], ["奥付と索引。"]]))
    library = open_docs()
    passage = _find(library, "締め処理")
    first, _, last = passage.place.partition("-")
    assert first != last
    assert passage.text in library.read(f"manual.pdf:{passage.place}")
    assert library.verify_citation(f"manual.pdf:{passage.place}", passage.hash).status == "same"


def test_a_passage_of_several_rows_names_all_of_them(docs: Path, open_docs: Opener) -> None:
    (docs / "prices.xlsx").write_bytes(fixture("prices.xlsx"))
    library = open_docs()
    passage = _find(library, "みかん")
    assert passage.place.startswith("仕入れ!A1:")
    assert "みかん" in library.read(f"prices.xlsx:{passage.place}")
    assert library.verify_citation(f"prices.xlsx:{passage.place}", passage.hash).status == "same"


@pytest.mark.parametrize("place", ["p2-p3", "p2-3", "P.2-P.3", "p 2-p 3"])
def test_pages_are_read_however_their_range_is_written(place: str) -> None:
    text = "## Page 1\n\na\n\n## Page 2\n\nb\n\n## Page 3\n\nc\n\n## Page 4\n\nd"
    assert places.find_place(text, places.PDF, place) == (5, 11)
    assert places.find_place(text, places.PDF, "p5-p9") is None
    assert places.place_of(text, places.PDF, 5, 11) == "p2-p3"
    assert places.place_of(text, places.PDF, 5, 8) == "p2"


def test_rows_of_several_tables_of_a_sheet_are_one_range() -> None:
    text = "## S!A1:B2\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n## S!C5:D6\n\n| c | d |\n| --- | --- |\n| 3 | 4 |"
    assert places.place_of(text, places.WORKBOOK, 5, 11) == "S!A2:D6"
    assert places.find_place(text, places.WORKBOOK, "S!A2:D6") == (5, 11)
    assert places.find_place(text, places.WORKBOOK, "S!A2:D5") == (5, 9)
    assert places.find_place(text, places.WORKBOOK, "S!A3:D4") is None
    assert places.place_of(text, places.WORKBOOK, 5) == "S!A2"


def test_a_sheet_may_be_quoted_as_programs_quote_it() -> None:
    text = "## O'Brien 2!A1:A2\n\nfirst\nsecond"
    assert places.find_place(text, places.WORKBOOK, "'O''Brien 2'!A2") == (4, 4)


def test_a_cell_of_a_notebook_is_read_by_its_number_with_the_heading_above_it(docs: Path, open_docs: Opener) -> None:
    source = "# 雨量\n\n一年の雨量を調べて表にする。\n\n## 方法\n\n雨量計を使って毎朝はかる。"
    (docs / "rain.ipynb").write_bytes(
        _notebook(source, "x = load()\n### Cell 9", "## 結論\n\n六月がもっとも多い。\n\n### 注\n\n欠測が三日ある。")
    )
    library = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")
    assert library.read("rain.ipynb:cell3").startswith("## 結論\n\n### Cell 3\n\n六月が")
    assert library.read("rain.ipynb:cell 2") == "### Cell 2\n\n```\nx = load()\n### Cell 9\n```"
    assert library.read("rain.ipynb:cell1").endswith("毎朝はかる。")
    passage = _find(library, "六月がもっとも多い")
    assert passage.place == "cell3"
    assert library.verify_citation("rain.ipynb:cell3", passage.hash).status == "same"
    with pytest.raises(UnknownName):
        library.read("rain.ipynb:cell9")
