"""Texts are split where a reader would split them, and sentence ends are found."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bunko import chunkers
from bunko.errors import UnknownName
from bunko.readers import read
from bunko.readers.outline import Heading, scan_outline, unify_line_ends
from bunko.text.sentences import sentence_ends
from bunko.types import Chunk

LONG = "この段落は、短い断片として隣に足されないだけの長さを持つように、わざと少し言葉を重ねて書いてあります。"
ENGLISH = "This paragraph is long enough to stand on its own, and nothing more is asked of it than that."


def cut(content: str, kind: str = "headings", **limits: Any) -> list[Chunk]:
    return chunkers.build(kind, **limits).chunks(read(content.encode(), "note.md"))


def headings(content: str) -> list[str]:
    """Return every heading as it is written."""
    return [block.source for block in scan_outline(unify_line_ends(content)) if isinstance(block, Heading)]


def test_an_unknown_kind_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        chunkers.build("syllables")
    assert "headings" in caught.value.hint


def test_a_chunk_carries_its_heading_as_written_and_the_path_to_it() -> None:
    chunks = cut(f"前書き。{LONG}\n\n# 手引き {{#guide}}\n\n{LONG}\n\n## 導入 ##\n\n{LONG}\n\n# 付録\n\n{LONG}\n")
    assert [(chunk.heading, chunk.heading_path) for chunk in chunks] == [
        ("", ()),
        ("# 手引き {#guide}", ("手引き",)),
        ("## 導入 ##", ("手引き", "導入")),
        ("# 付録", ("付録",)),
    ]
    assert chunks[2].text == f"## 導入 ##\n\n{LONG}"
    assert (chunks[2].first_line, chunks[2].last_line) == (7, 9)


def test_deeper_headings_than_those_given_do_not_cut() -> None:
    chunks = cut(f"## 節\n\n{LONG}\n\n#### 細目\n\n{LONG}\n\n# 章\n\n{LONG}", heading_levels=(2,))
    assert [(chunk.heading, chunk.heading_path) for chunk in chunks] == [("## 節", ("節",))]
    assert "#### 細目" in chunks[0].text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# 一\n## 二\n###### 六", ["# 一", "## 二", "###### 六"]),
        ("####### seven\n#no\n\\# no\n#", ["#"]),
        ("   # three spaces\n    # four are code", ["# three spaces"]),
        ("text\n# 割り込む\ntext", ["# 割り込む"]),
        ("題\n==\n副題\n--", ["題", "副題"]),
        ("two\nlines\n---", ["two lines"]),
        ("text\n\n---\n\ntext", []),
        ("- item\n---\n> quote\n---\n1. one\n===", []),
        ("> quote\nlazy\n===\nlazy\n===", []),
        ("    code\n---", []),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n---", []),
        ("***\ntext\n---", ["text"]),
        ("---\n---\n===\nx\n===", ["=== x"]),
        ("```\n# code\n```\n# 本物", ["# 本物"]),
        ("````\n```\n# code\n````\n# 本物", ["# 本物"]),
        ("~~~ sh\n# code\n```\n~~~~\n# 本物", ["# 本物"]),
        ("```\n# never closed\n\n# still code", []),
        ("``` not ` a fence\n# 本物", ["# 本物"]),
        ("```\n    ```\n# code\n```", []),
        ("- ```sh\n  # code\n  ```\n\n# 本物", ["# 本物"]),
        ("10. step\n\n    ```\n# 本物", ["# 本物"]),
        ("<!-- # a\n# hidden\n\n# hidden\n--> # b\n# 本物", ["# 本物"]),
        ("<!-->\n# 本物", ["# 本物"]),
        ("<!-- never closed\n# hidden", []),
        ("<pre>\n# raw\n</pre>\n# 本物", ["# 本物"]),
        ("<H2 id='a'>題</H2>\ninline <h2>no</h2>\n<h3>open", ["<H2 id='a'>題</H2>"]),
        ("# 一\r\n本文\r\n\r\n二\r\n==\r\n", ["# 一", "二"]),
        ("# 一\r本文\r\r二\r--\r", ["# 一", "二"]),
        ("#\t表\t##\t", ["#\t表\t##"]),
    ],
)
def test_headings_are_found_where_markdown_has_them(content: str, expected: list[str]) -> None:
    assert headings(content) == expected


@pytest.mark.parametrize(
    "content",
    ["行です。\n" * 80 + "---", "# " + "長い" * 160, "文。" * 160 + "\n===", f"<h1>{'長い' * 160}</h1>"],
    ids=["lines", "hash", "line", "html"],
)
def test_a_heading_of_hundreds_of_characters_is_a_paragraph(content: str) -> None:
    assert headings(f"{content}\n# 見出し") == ["# 見出し"]
    assert headings(f"{'長い' * 100}\n---\n") == ["長い" * 100]


def test_lines_of_equal_signs_below_a_long_paragraph_are_text() -> None:
    assert headings("行です。\n" * 100 + "===\n" * 100 + "\n題\n===\n") == ["題"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("# a\nb\n" * 30_000, "headings"),
        ("# a\nb\n## a\nb\n" * 15_000, "headings"),
        (f"{ENGLISH}\n\n" * 30_000, "paragraphs"),
        ("|a|b|\n|-|-|\n" + "|1|2|\n" * 30_000, "tables"),
        ("|a|b|\n|-|-|\n\n" * 30_000, "tables"),
    ],
    ids=["sections", "levels", "paragraphs", "rows", "tables"],
)
def test_a_giant_list_has_fewer_chunks_than_items(content: str, kind: str) -> None:
    chunks = cut(content, kind)
    assert len(chunks) < 12_000
    assert all(len(chunk.text) <= 3000 for chunk in chunks)
    assert all(before.start <= after.start <= before.end + 2 for before, after in pairwise(chunks))
    assert chunks[-1].end == len(content.rstrip())


def test_front_matter_is_in_no_chunk() -> None:
    chunks = cut(f"---\ntitle: 題\n---\n# 見出し\n\n{LONG}")
    assert [chunk.text for chunk in chunks] == [f"# 見出し\n\n{LONG}"]
    assert chunks[0].first_line == 4


def test_a_bare_heading_goes_with_the_section_below_it() -> None:
    chunks = cut(f"# 章\n\n## 節\n\n{LONG}\n\n## 次の節\n\n{LONG}")
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# 章", "## 次の節"]
    assert (chunks[0].heading, chunks[0].heading_path) == ("## 節", ("章", "節"))


def test_a_small_section_beside_longer_ones_is_a_chunk_under_its_own_heading() -> None:
    chunks = cut(f"# 章\n\n{LONG}\n\n## 甲\n\n{LONG}\n\n## 乙\n\n短い。\n\n## 丙\n\n{LONG}")
    assert [chunk.heading for chunk in chunks] == ["# 章", "## 甲", "## 乙", "## 丙"]
    assert chunks[2].text == "## 乙\n\n短い。"


@pytest.mark.parametrize(("heading", "path"), [("", ()), ("# 章\n\n", ("章",))])
def test_a_short_introduction_goes_with_the_first_subsection(heading: str, path: tuple[str, ...]) -> None:
    chunks = cut(f"{heading}前書き。\n\n## 甲\n\n短い。\n\n## 乙\n\n{LONG}\n\n## 丙\n\n{LONG}")
    assert [chunk.heading_path for chunk in chunks] == [path, (*path, "乙"), (*path, "丙")]
    assert chunks[0].text == f"{heading}前書き。\n\n## 甲\n\n短い。"


def test_small_sections_of_one_level_are_joined_under_the_first() -> None:
    chunks = cut(f"# 章\n\n{LONG}\n\n## 甲\n\n短い。\n\n## 乙\n\n短い。\n\n## 丙\n\n{LONG}")
    assert [chunk.heading for chunk in chunks] == ["# 章", "## 甲", "## 丙"]
    assert chunks[1].text == "## 甲\n\n短い。\n\n## 乙\n\n短い。"


@pytest.mark.parametrize("kind", ["headings", "auto", "entry", "pages"])
def test_a_short_section_beside_a_long_table_keeps_its_heading(kind: str) -> None:
    rows = "".join(f"| 品{number} | {number} 円 |\n" for number in range(60))
    table = f"| 品名 | 値段 |\n|---|--:|\n{rows}"
    content = f"# 資料\n\n## 概要\n\n短い節。\n\n## 価格\n\n{table}\n## 連絡先\n\n内線 42。\n\n## 別表\n\n{table}"
    chunks = cut(content, kind, max_chars=300)
    assert all(len(chunk.text) <= 300 for chunk in chunks)
    assert [chunk.heading_path[-1] for chunk in chunks] == ["概要", *["価格"] * 4, "連絡先", *["別表"] * 4]
    assert [chunk.text for chunk in chunks if chunk.heading_path[-1] == "連絡先"] == ["## 連絡先\n\n内線 42。"]
    assert not any(chunk.text.rpartition("\n")[2].startswith("#") for chunk in chunks)
    assert all("| 品名 |" in chunk.text for chunk in chunks if chunk.heading_path[-1] in ("価格", "別表"))


def test_a_bare_heading_takes_the_first_part_of_a_section_that_does_not_fit_with_it() -> None:
    chunks = cut(f"## 甲\n\n{LONG}\n\n## 乙\n\n## 丙\n\n{LONG * 2}", max_chars=112)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["## 甲", "## 乙", LONG]
    assert [chunk.heading for chunk in chunks] == ["## 甲", "## 丙", "## 丙"]


def test_a_long_section_is_not_split_between_a_heading_inside_of_it_and_its_text() -> None:
    body = "".join(f"#### 細目{number}\n\n{LONG}\n\n" for number in range(20))
    chunks = cut(f"# 章\n\n{LONG}\n\n{body}", max_chars=170)
    assert len(chunks) > 8
    assert all(chunk.text.endswith(LONG) for chunk in chunks)


def test_a_chapter_of_headings_alone_is_split_between_them() -> None:
    chunks = cut("".join(f"# 見出し{number}\n\n" for number in range(100)) + LONG, max_chars=200)
    assert all(len(chunk.text) <= 200 for chunk in chunks)
    assert chunks[-1].text.endswith(LONG)
    assert chunks[-1].heading_path == ("見出し99",)
    assert all(chunk.text.startswith("# 見出し") for chunk in chunks)


def test_small_sections_in_a_row_do_not_end_up_in_one_lump() -> None:
    chunks = cut("".join(f"## 用語{number}\n\n短い説明がここにあります。\n\n" for number in range(40)))
    assert len(chunks) > 5


def test_a_small_section_stays_alone_rather_than_break_the_limit() -> None:
    chunks = cut("## 甲\n\nああああああ。\n\n## 乙\n\nい\n\n## 丙\n\nうううううう。", max_chars=16, min_chars=8)
    assert [chunk.heading for chunk in chunks] == ["## 甲", "## 乙", "## 丙"]


def test_a_long_section_is_split_at_paragraphs_then_sentences() -> None:
    sentences = "".join(f"文{number}はここで終わる。" for number in range(30))
    chunks = cut(f"# 長い\n\n{ENGLISH}\n\n{sentences}", max_chars=120)
    assert all(len(chunk.text) <= 120 for chunk in chunks)
    assert all(chunk.text.endswith((".", "。")) for chunk in chunks)
    assert {chunk.heading_path for chunk in chunks} == {("長い",)}


def test_a_split_table_carries_its_header_on() -> None:
    rows = "".join(f"| 品{number} | {number} 円 |\r\n" for number in range(30))
    chunks = cut(f"# 価格\r\n\r\n| 品名 | 値段 |\r\n|---|--:|\r\n{rows}", max_chars=200)
    assert len(chunks) > 2
    for chunk in chunks[1:]:
        assert chunk.text.startswith("| 品名 | 値段 |\r\n|---|--:|\r\n| 品")
        assert chunk.text.endswith("円 |")
        assert len(chunk.text) <= 200


def test_code_is_kept_whole_where_it_fits_and_split_between_lines_where_not() -> None:
    short = "```py\n" + "x = 1\n\n" * 20 + "```"
    chunks = cut(f"# 例\n\n{LONG}\n\n{short}\n\n{LONG}", max_chars=200)
    assert any(short in chunk.text for chunk in chunks)
    long = "```py\n" + "print('ok. really.')\n" * 40 + "```"
    chunks = cut(f"# 例\n\n{long}", max_chars=200, min_chars=0)
    assert all(chunk.text.endswith(("例", "')", "```")) for chunk in chunks)


def test_a_written_character_is_never_cut() -> None:
    family = "👩‍👩‍👧‍👦"
    chunks = cut(family * 20, max_chars=10, min_chars=0)
    assert [chunk.text for chunk in chunks] == [family] * 20
    assert [chunk.text for chunk in cut("か\u3099" * 6, max_chars=3)] == ["か\u3099"] * 6


def test_prose_is_cut_to_size_and_overlaps() -> None:
    content = "".join(f"これは{number}番目の文で、次の文に続きます。" for number in range(40))
    chunks = cut(content, "prose", size=100, overlap=30)
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        assert len(after.text) <= 100
        shared = before.end - after.start
        assert 0 < shared <= 30
        assert after.text.startswith(content[after.start : before.end])


def test_prose_overlaps_inside_of_one_endless_word_too() -> None:
    chunks = cut("x" * 1000, "prose", size=100, overlap=20)
    assert [before.end - after.start for before, after in pairwise(chunks)] == [20] * (len(chunks) - 1)


@pytest.mark.parametrize("content", ["", " \n\n\t", "短い。", "a"])
def test_empty_and_short_prose_works(content: str) -> None:
    assert [chunk.text for chunk in cut(content, "prose")] == [content.strip()] * bool(content.strip())


def test_an_overlap_reaches_back_no_further_than_the_first_chunk() -> None:
    # Right behind a short first line the overlap would begin before the text.
    content = "---\ntitle: " + ("ด" + "้" * 89 + " ") * 4
    chunks = cut(content, "prose", size=200, overlap=30)
    covered = {offset for chunk in chunks for offset in range(chunk.start, chunk.end)}
    assert all(offset in covered for offset, character in enumerate(content) if not character.isspace())


@pytest.mark.parametrize("kind", chunkers.KINDS)
def test_white_space_longer_than_a_chunk_is_skipped(kind: str) -> None:
    content = " " * 90 + f"始め。{LONG}" + "\n" * 300 + LONG + " " * 300 + "終わり"
    chunks = cut(content, kind, size=60, overlap=20, max_chars=60, min_chars=5)
    assert all(chunk.text.strip() for chunk in chunks)
    assert chunks[0].text.strip().startswith("始め。")
    assert chunks[-1].text.endswith("終わり")


def test_blank_lines_of_tabs_are_no_table() -> None:
    assert cut("\t\t\t\n\t\t\t\n", "tables") == []


def test_paragraphs_stand_alone_and_small_ones_go_with_what_follows() -> None:
    chunks = cut(f"題名\n\n{LONG}\n \n\n{ENGLISH}\n\n終わり", "paragraphs")
    assert [chunk.text for chunk in chunks] == [f"題名\n\n{LONG}", f"{ENGLISH}\n\n終わり"]


def test_a_long_paragraph_is_split_at_sentences() -> None:
    chunks = cut(LONG * 10, "paragraphs", max_chars=120)
    assert [chunk.text for chunk in chunks] == [LONG * 2] * 5


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("今日は晴れ。明日は雨！本当？", ["今日は晴れ。", "明日は雨！", "本当？"]),
        ("「行こう。」と言った。（そうだ！）終わり", ["「行こう。」", "と言った。", "（そうだ！）"]),
        ("まさか……！？嘘だ。", ["まさか……！？", "嘘だ。"]),
        ("円周率は３．１４です．次", ["円周率は３．１４です．"]),
        ("It works. Does it? Yes! (Really.) Fine", ["It works.", " Does it?", " Yes!", " (Really.)"]),
        ("Use e.g. this, i.e. that, etc. and go.", ["Use e.g. this, i.e. that, etc. and go."]),
        ("Mr. J. Smith met Dr. No. They left.", ["Mr. J. Smith met Dr. No.", " They left."]),
        ("See Fig. 3 and No. 5. The answer is no.", ["See Fig. 3 and No. 5.", " The answer is no."]),
        ("Version 3.11 of example.com/?a=1!b is out.", ["Version 3.11 of example.com/?a=1!b is out."]),
        ("1. 準備する\n2. 実行する", []),
        ("題名\n\n本文。", ["題名", "\n\n本文。"]),
        ("題名\r\n\r\n本文\r\r終わり", ["題名", "\r\n\r\n本文"]),
        ("一行\r\n二行\r三行\n四行", []),
        ("OK?はい!次", ["OK?", "はい!"]),
        ("", []),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str]) -> None:
    ends = sentence_ends(text)
    assert [text[start:end] for start, end in pairwise([0, *ends])] == sentences
