"""Workbooks are read as Markdown tables under the names of their ranges."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko import readers
from bunko.errors import SourceError
from bunko.readers import places
from bunko.readers.office import number_formats, xlsx
from bunko.readers.office import xlsx as sheets
from bunko.search.passages import extract_passages
from tests.conftest import Opener
from tests.readers.zip_files import fixture, workbook


def test_a_workbook_of_libreoffice_shows_what_people_see() -> None:
    read = readers.read(fixture("prices.xlsx"), "prices.xlsx")
    assert (read.title, read.date) == ("仕入れの表", "2024-03-05T08:00:00+00:00")
    assert read.text.split("\n\n") == [
        "## 仕入れ!A1:F3",
        "| 品名 | 単価 | 数量 | 小計 | 日付 | 割引 |\n| --- | --- | --- | --- | --- | --- |\n"
        "| りんご | 120.5 | 30 | 3615 | 2024-03-01 | 15% |\n| みかん \\| 箱 | 80 | 100 | 8000 | 2024-03-02 |  |",
        "## 仕入れ!B8:C10",
        "| 担当 | 佐藤 花子 |\n| --- | --- |\n| 開始 | 08:30 |\n| 確認 | 1 |",
        "## Notes 2024!A1:A1",
        "Suppliers close in August.",
    ]


def test_every_row_leads_back_to_its_cells_and_cells_to_their_row() -> None:
    read = xlsx.read(fixture("prices.xlsx"))
    lines = read.text.split("\n")
    for text, place in (
        ("みかん", "仕入れ!A3"),
        ("開始", "仕入れ!B9"),
        ("品名", "仕入れ!A1"),
        ("August", "Notes 2024!A1"),
    ):
        line = next(number for number, line in enumerate(lines, 1) if text in line)
        assert places.place_of(read.text, read.media_type, line) == place
        assert places.find_place(read.text, read.media_type, place) == (line, line)
    assert places.find_place(read.text, read.media_type, "仕入れ!D5") is None


def test_a_row_of_a_folder_s_workbook_is_found_read_and_verified(docs: Path, open_docs: Opener) -> None:
    (docs / "prices.xlsx").write_bytes(fixture("prices.xlsx"))
    library = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")
    passage = extract_passages(library.search("開始", top_k=1).hits, library.document_of, "chunk")[0]
    assert passage.place.startswith("仕入れ!B")
    assert library.read("prices.xlsx:仕入れ!B9") == "| 開始 | 08:30 |"
    assert library.read("prices.xlsx:仕入れ!A2:F3").count("\n") == 1
    assert library.verify_citation("prices.xlsx:仕入れ!B9", passage.hash).status == "same"


def test_cells_merged_over_rows_are_repeated_and_readings_are_no_part_of_a_string() -> None:
    strings = "<si><t>東京</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh></si><si><r><t>大</t></r><r><t>阪</t></r></si>"
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>支店</t></is></c></row>'
        '<row r="2"><c r="B2" t="s"><v>1</v></c></row>'
    )
    read = xlsx.read(workbook(rows, strings=strings, after='<mergeCells><mergeCell ref="A1:A2"/></mergeCells>'))
    assert read.text == "## Data!A1:B2\n\n| 東京 | 支店 |\n| --- | --- |\n| 東京 | 大阪 |"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("General", "number"), ("0.00E+00", "number"), ("#,##0;[Red]-#,##0", "number"), ('0.0"kg"', "number"),
        ("0.0%", "percent"), ("yyyy/m/d", "date"), ('[$-411]ggge"年"m"月"d"日"', "date"), ("m/d h:mm", "datetime"),
        ("h:mm:ss", "time"), ("[h]:mm", "duration"), ("0000", 4), ("@", "number"),
    ],
)  # fmt: skip
def test_a_format_code_tells_dates_from_numbers(code: str, kind: object) -> None:
    assert number_formats.kind_of_format(code) == kind


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        ("45352", "date", "2024-03-01"), ("45352.5", "datetime", "2024-03-01 12:00"), ("0.75", "time", "18:00"),
        ("1", "date", "1900-01-01"), ("60.5", "duration", "1452:00:00"), ("0.30000000000000004", "number", "0.3"),
        ("12345678901", "number", "12345678901"), ("7", 4, "0007"), ("0.125", "percent", "12.5%"),
        ("1e300", "date", "1e+300"), ("nan", "date", "nan"), ("-3", "date", "-3"), ("x", "number", "x"),
    ],
)  # fmt: skip
def test_a_number_is_shown_as_its_format_says(value: str, kind: number_formats.NumberKind, shown: str) -> None:
    assert number_formats.format_number(value, kind, since_1904=False) == shown


def test_a_workbook_may_count_days_from_1904() -> None:
    rows = '<row r="1"><c r="A1" s="0"><v>1</v></c></row>'
    styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    assert "1904-01-02" in xlsx.read(workbook(rows, styles=styles, properties='<workbookPr date1904="1"/>')).text


def test_a_huge_sheet_is_cut_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_CELLS", 10)
    rows = "".join(f'<row r="{number}"><c><v>{number}</v></c><c><v>0</v></c></row>' for number in range(1, 100))
    text = xlsx.read(workbook(rows)).text
    assert text.startswith("## Data!A1:B5\n")
    assert text.endswith("(The rows from 6 on are not indexed: the workbook is too large.)")


def test_an_empty_workbook_is_a_problem() -> None:
    with pytest.raises(SourceError, match="no text"):
        xlsx.read(workbook(""))
