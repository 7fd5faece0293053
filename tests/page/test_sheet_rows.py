"""Results of sheets: the rows that were found, with the names of their columns."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.types.tool_options import ToolOptions
from tests.readers.zip_files import workbook

PLANTS = [["Name", "Family", "Height", "Place"], *([f"Rose {n}", "Rosaceae", str(n), "glasshouse"] for n in range(60))]
PLANTS.insert(31, ["Hair moss", "Bryophyta", "5", "north <b>garden</b>"])


def table(text: str) -> list[list[str]]:
    """Return the cells of the first table of a page, with marks as they are."""
    rows = re.findall(r"<tr>(.*?)</tr>", re.findall(r'<table class="rows">.*?</table>', text, re.DOTALL)[0], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_a_sheet_shows_the_rows_that_were_found_with_their_header(
    browser: TestClient, library: Library, docs: Path
) -> None:
    cells = [
        f'<row r="{number}">'
        + "".join(
            f'<c r="{column}{number}" t="inlineStr"><is><t>{value.replace("<", "&lt;")}</t></is></c>'
            for column, value in zip("ABCD", row, strict=True)
        )
        + "</row>"
        for number, row in enumerate(PLANTS, 1)
    ]
    (docs / "plants.xlsx").write_bytes(workbook("".join(cells)))
    library.import_("docs")
    text = browser.get("/", params={"q": "hair moss bryophyta", "mode": "bm25"}).text
    assert table(text)[0] == ["Name", "Family", "Height", "Place"]
    (row,) = [row for row in table(text)[1:] if "<mark>" in "".join(row)]
    assert row[:3] == ["<mark>Hair</mark> <mark>moss</mark>", "<mark>Bryophyta</mark>", "5"]
    assert row[3] == "north garden"  # a cell is text


def test_rows_of_a_csv_file_have_the_header_of_its_first_line(
    browser: TestClient, library: Library, tmp_path: Path
) -> None:
    folder = tmp_path / "sheets"
    folder.mkdir()
    lines = [",".join(row) for row in PLANTS]
    (folder / "plants.csv").write_text("\n".join(lines), "utf-8")
    library.tools.add("sheets", "Sheets.", folder, options=ToolOptions(include=("*.csv",)))
    library.import_("sheets")
    found = table(browser.get("/", params={"q": "bryophyta", "tool": "sheets", "mode": "bm25"}).text)
    assert found[0] == ["Name", "Family", "Height", "Place"]
    assert ["Hair moss", "<mark>Bryophyta</mark>", "5", "north &lt;b&gt;garden&lt;/b&gt;"] in found
    assert len(found) == 4


def test_wide_sheets_show_the_first_column_and_those_that_were_found(
    browser: TestClient, library: Library, tmp_path: Path
) -> None:
    folder = tmp_path / "sheets"
    folder.mkdir()
    header = [f"column {number}" for number in range(30)]
    row = [f"value {number}" for number in range(30)]
    row[20] = "needle"
    (folder / "wide.tsv").write_text("\t".join(header) + "\n" + "\t".join(row) + "\n", "utf-8")
    library.tools.add("sheets", "Sheets.", folder, options=ToolOptions(include=("*.tsv",)))
    library.import_("sheets")
    found = table(browser.get("/", params={"q": "needle", "tool": "sheets", "mode": "bm25"}).text)
    assert found[0] == ["column 0", "column 1", "column 2", "column 3", "column 4", "column 20"]
    assert found[1][0] == "value 0"
    assert found[1][-1] == "<mark>needle</mark>"
