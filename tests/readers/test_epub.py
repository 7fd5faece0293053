"""E-books are read as Markdown, chapter by chapter."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko import readers
from bunko.errors import SourceError
from bunko.readers.office import epub
from tests.conftest import Opener
from tests.readers.zip_files import book, fixture

TEXT = "本文がここにある。"


def test_a_book_of_pandoc_has_chapters_readings_and_notes() -> None:
    read = readers.read(fixture("novel.epub"), "novel.epub")
    assert (read.title, read.date) == ("川辺の町", "2023-11-03")
    blocks = read.text.split("\n\n")
    first = blocks.index("# 第一章 渡し舟")
    assert blocks[first + 1].startswith("放出の渡し場に、朝の霧が立っていた。")
    assert blocks[first + 1].endswith("（読み: 放出 はなてん、艫 とも）")
    assert blocks[first + 2] == "# 第二章 雨の市"
    assert blocks[first + 3].endswith("子どもの足音が石畳に響く。^1")
    assert blocks[first + 4] == "## 夕暮れ"
    assert blocks[-1] == "1. 傘は蛇の目傘である。"


def test_a_book_of_libreoffice_has_headings_from_its_table_of_contents() -> None:
    blocks = epub.read(fixture("report.epub")).text.split("\n\n")
    assert blocks[0] == "# 一年の天候"
    assert blocks[1].startswith("この年の春は")
    assert "# 観測の結果" in blocks
    assert "雲雀の初鳴きは二月二十八日に記録された。（読み: 雲雀 ひばり）" in blocks
    assert any(block.startswith("| 月 | 平均気温 | 降水量 |") for block in blocks)


def test_a_chapter_of_a_folder_s_book_is_found_and_cited(docs: Path, open_docs: Opener) -> None:
    (docs / "novel.epub").write_bytes(fixture("novel.epub"))
    library = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")
    assert not library.reindex().problems
    hit = library.search("はなてん").hits[0]
    assert (hit.uri, hit.chunk.heading_path[-1]) == ("novel.epub", "第一章 渡し舟")


def test_closed_tags_of_xhtml_do_not_swallow_the_chapter() -> None:
    assert (
        epub.read(book(f"<html><head><title/><script/></head><body><a id='x'/><p>{TEXT}</p></body></html>")).text
        == TEXT
    )


def test_what_a_web_page_would_leave_out_is_part_of_a_book() -> None:
    chapter = f"<body><aside><p>注釈</p></aside><div class='sidebar'><p>囲み</p></div><p>{TEXT}</p></body>"
    assert epub.read(book(chapter)).text == f"注釈\n\n囲み\n\n{TEXT}"


def test_a_protected_book_is_a_problem_but_obfuscated_fonts_are_none() -> None:
    def encryption(name: str) -> dict[str, str]:
        return {
            "META-INF/encryption.xml": (
                f'<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><CipherReference URI="{name}"/>'
                "</encryption>"
            )
        }

    with pytest.raises(SourceError, match="protected"):
        epub.read(book(f"<p>{TEXT}</p>", **encryption("OPS/text/one.xhtml")))
    assert epub.read(book(f"<p>{TEXT}</p>", **encryption("OPS/font.otf"))).text == TEXT


def test_a_book_of_pictures_is_a_problem() -> None:
    with pytest.raises(SourceError, match="images"):
        epub.read(book("<body><img src='page.jpg'/></body>"))
