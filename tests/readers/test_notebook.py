"""Jupyter notebooks are read as text, cell by cell."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import chunkers, readers
from bunko.errors import SourceError
from bunko.types import Text

FIXTURE = Path(__file__).parents[1] / "fixtures" / "formats" / "rainfall.ipynb"


def read(cells: list[Any], **metadata: Any) -> Text:
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return readers.read(json.dumps(notebook).encode(), "a.ipynb")


def code(source: str, *outputs: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}}


def prose(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def test_a_notebook_that_was_run_has_its_metadata_and_a_heading_for_each_cell() -> None:
    text = readers.read(FIXTURE.read_bytes(), "rainfall.ipynb")
    assert (text.title, text.date, text.tags) == ("Rainfall of Kyoto", "2024-06-01", ("weather", "京都"))
    found = chunkers.build("auto", min_chars=12).chunks(text)
    assert [chunk.heading_path for chunk in found] == [
        ("京都の降水量", "Cell 1"),
        ("京都の降水量", "Cell 2"),
        ("京都の降水量", "Averages", "Cell 3"),
        ("京都の降水量", "Averages", "Cell 4"),
        ("京都の降水量", "Averages", "Cell 5"),
        ("京都の降水量", "Averages", "Cell 6"),
    ]
    assert "```python\nmonths = ['Jan', 'Feb', 'Mar']" in found[1].text
    assert "```\nloaded 3 months\n```" in found[1].text
    assert "#### Method" in found[2].text
    assert "74.86666666666666" in found[3].text
    assert found[4].text.endswith("```\nZeroDivisionError: division by zero\n```")


def test_the_numbers_of_cells_count_the_empty_ones() -> None:
    text = read([prose("Intro"), code(""), code("x = 1"), prose("  \n")])
    assert text.text == "### Cell 1\n\nIntro\n\n### Cell 3\n\n```\nx = 1\n```"


def test_a_notebook_of_version_3_and_lists_of_lines_are_read() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old ", "notes"]},
        {"cell_type": "code", "input": ["a = 1\n", "a"], "outputs": [{"output_type": "pyout", "text": ["1"]}]},
    ]
    data = json.dumps({"worksheets": [{"cells": cells}], "metadata": {}, "nbformat": 3}).encode()
    text = readers.read(data, "a.ipynb")
    assert text.title == "Old notes"
    assert text.text == "## Old notes\n\n### Cell 1\n\n### Cell 2\n\n```\na = 1\na\n```\n\n```\n1\n```"


def test_front_matter_of_the_first_cell_gives_title_date_and_tags() -> None:
    raw = {"cell_type": "raw", "source": "---\ntitle: 報告\ndate: 2024-02-03\ntags: [r, 統計]\n---"}
    text = read([raw, prose("Text.")])
    assert (text.title, text.date, text.tags) == ("報告", "2024-02-03", ("r", "統計"))
    assert text.text == "### Cell 2\n\nText."


def test_outputs_are_cut_and_hold_no_escape_codes_images_or_progress() -> None:
    printed = {"output_type": "stream", "text": "\x1b[31mred\x1b[0m\r\n" + "10%\r50%\r100%\n"}
    picture = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=" * 1000}}
    table = {"output_type": "execute_result", "data": {"text/plain": ["row\n"] * 5000, "text/html": "<table></table>"}}
    text = read([code("run()", printed, picture, table)]).text
    assert "```\nred\n100%\nrow\nrow\n" in text
    assert "iVBOR" not in text
    assert "\x1b" not in text
    assert len(text) < 2200


def test_code_that_contains_a_fence_stays_code() -> None:
    text = read([code('print("""\n```\n# not a heading\n""")')])
    assert [chunk.heading_path for chunk in chunkers.build("auto", min_chars=0).chunks(text)] == [("Cell 1",)]


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'{"cells": []}',
        b'{"cells": [1, null, {"cell_type": 3}]}',
        b'{"cells": {"a": 1}, "worksheets": [{"cells": 5}]}',
        b'{"cells":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
        b'{"cells": [{"cell_type": "code", "source": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}",
        b'{"metadata": {"tags": {}, "title": []}, "cells": [{"cell_type": "markdown", "source": 5}]}',
        b"\x89PNG\r\n\x1a\n",
    ],
    ids=range(9),
)
def test_a_file_that_is_no_notebook_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        readers.read(data, "a.ipynb")
    assert caught.value.hint


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["cells", "metadata", "source", "cell_type", "outputs", "data", "text", "level", "tags"]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
@settings(deadline=None, max_examples=40)
def test_any_json_is_read_or_refused(value: object) -> None:
    for document in (value, {"cells": [value], "metadata": value}, {"cells": [{"source": "x", "outputs": [value]}]}):
        with suppress(SourceError):
            assert readers.read(json.dumps(document).encode(), "a.ipynb").text.strip()


def test_a_notebook_as_the_library_of_jupyter_writes_it_is_read() -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# 見出し\n\nText."), nbformat.v4.new_code_cell("x")]
    )
    text = readers.read(nbformat.writes(notebook).encode(), "a.ipynb")
    assert text.title == "見出し"
    assert "### Cell 2" in text.text
