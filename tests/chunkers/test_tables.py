"""Tables, cut row by row, and how content is told by its lines."""

from __future__ import annotations

import pytest

from bunko import chunkers
from bunko.chunkers.detect import content_type
from bunko.types import Text
from tests.chunkers.test_chunkers import ENGLISH, LONG, cut

TABLE = """\
| 名前 | HP | MP |
|---|---|---|
| 青い粘液 | 8 | 0 |
| こうもり | 11 | 2 |
| 竜王 | 350 | 50 |
| 幽霊 | 14 | 4 |"""


def test_a_table_is_cut_row_by_row_with_header_and_neighbours() -> None:
    chunks = cut(f"{LONG}\n\n{TABLE}\n\n{LONG}", "tables", row_context=1)
    assert chunks[0].text == chunks[-1].text == LONG
    rows = chunks[1:-1]
    assert len(rows) == 4
    assert all(chunk.text.startswith("| 名前 | HP | MP |\n|---|---|---|\n| ") for chunk in rows)
    assert rows[2].text.endswith("| こうもり | 11 | 2 |\n| 竜王 | 350 | 50 |\n| 幽霊 | 14 | 4 |")
    assert (rows[2].first_line, rows[2].last_line) == (6, 8)


def test_rows_without_context_are_single() -> None:
    rows = cut(TABLE, "tables", row_context=0)
    assert [chunk.text.count("\n") for chunk in rows] == [2, 2, 2, 2]
    assert (rows[3].first_line, rows[3].last_line) == (6, 6)


@pytest.mark.parametrize("gap", ["\t", "   ", "\u3000\u3000"])
def test_columns_of_tabs_and_spaces_are_tables_too(gap: str) -> None:
    lines = [gap.join(row) for row in (["名前", "HP", "MP"], ["竜王", "350", "50"], ["骸骨", "30", "0"])]
    rows = cut("\n".join(lines), "tables", row_context=0)
    assert [chunk.text for chunk in rows] == [f"{lines[0]}\n{lines[1]}", f"{lines[0]}\n{lines[2]}"]


def test_a_giant_header_is_not_copied_into_every_row() -> None:
    header = "|" + "長" * 2000 + "|b|\n|-|-|\n"
    chunks = cut(header + "|1|2|\n" * 2000, "tables")
    assert sum(len(chunk.text) for chunk in chunks) < 100_000


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "prose"),
        ("1 2 3", "prose"),
        (f"{LONG}\n{ENGLISH}\n{LONG}", "prose"),
        ("One sentence.  Another one.  A third.\nAnd so on.  And on.  And on.", "prose"),
        ("- [x] 済み\n- [ ] まだ\n", "prose"),
        (TABLE, "table"),
        ("名前\tHP\tMP\n竜王\t350\t50\n骸骨\t30\t0", "table"),
        ("名前   HP   MP\n竜王   350   50", "table"),
        ("竜王 350 50\n骸骨 30 0\n", "table"),
        (f"{LONG}\n\n{LONG}\n\n{LONG}\n\n{TABLE}\n\n{LONG}", "mixed"),
        (f"{LONG}\n{LONG}\n{LONG}\na\tb\tc\n1\t2\t3\n", "mixed"),
    ],
)
def test_content_is_told_by_its_lines(content: str, expected: str) -> None:
    assert content_type(content) == expected


def test_auto_chooses_by_media_type_and_content() -> None:
    sheet = "名前\tHP\tMP\n" + "".join(f"竜{number}\t{number}\t0\n" for number in range(5))
    auto = chunkers.build(row_context=0)
    assert len(auto.chunks(Text(sheet, "text/plain", "utf-8"))) == 5
    assert len(auto.chunks(Text(TABLE, "text/markdown", "utf-8"))) == 4
    plain = f"# 見出しではない\n{LONG}\n\n{LONG}"
    assert [chunk.heading for chunk in auto.chunks(Text(plain, "text/plain", "utf-8"))] == ["", ""]
    assert auto.chunks(Text(f"# 表\n\n{TABLE}", "text/markdown", "utf-8"))[0].heading == "# 表"
