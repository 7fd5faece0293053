"""Word documents are read as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko import readers
from bunko.chunkers import build
from bunko.errors import SourceError
from bunko.readers.office import docx
from tests.conftest import Opener
from tests.readers.zip_files import fixture, paragraph, word


def test_a_document_of_libreoffice_keeps_headings_lists_tables_notes_and_readings() -> None:
    read = readers.read(fixture("report.docx"), "Report.DOCX")
    assert (read.title, read.date, read.tags) == ("観測の報告", "2024-02-10T09:00:00+00:00", ("観測",))
    blocks = read.text.split("\n\n")
    assert blocks[0] == "# 一年の天候"
    assert blocks[1].endswith("毎日二回ずつ読んで記録している。[^1]")
    assert blocks[2] == "[^1]: 読み取りは午前九時と午後三時である。"
    assert blocks[3] == "## Summer rainfall"
    assert blocks[5] == (
        "- 雨量計を確かめる\n  - 漏斗の掃除\n- Check the rain gauge\n1. 電源を入れる\n2. 零点を合わせる"
    )
    assert blocks[7] == "雲雀の初鳴きは二月二十八日に記録された。（読み: 雲雀 ひばり）"
    assert blocks[8].split("\n") == [
        "| 月 | 平均気温 | 降水量 |",
        "| --- | --- | --- |",
        "| 夏 | 24.1 | 310 mm |",
        "| 夏 | 26.8 | 185 mm |",
        "| 冬 | 欠測 \\| missing |  |",
    ]


def test_a_document_of_pandoc_keeps_its_code_quotes_and_links() -> None:
    text = docx.read(fixture("handbook.docx")).text
    assert "\n\n```\ndef total(prices):\n    return sum(prices)\n```" in text
    assert "\n\n> 引用した規程はここに置く。\n\n" in text
    assert "See the rules for details." in text
    assert "| 食品 | 8% | 軽減税率 |" in text


def test_vertical_text_is_read_as_any_other() -> None:
    assert docx.read(fixture("vertical.docx")).text.startswith("# 春の便り\n\n拝啓、山の雪もようやく解け、")


def test_a_section_of_a_folder_s_document_is_found_and_cited(docs: Path, open_docs: Opener) -> None:
    (docs / "report.docx").write_bytes(fixture("report.docx"))
    (docs / "~$report.docx").write_bytes(b"\x05user")  # Word keeps it beside an open document
    library = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")
    assert not library.reindex().problems
    hit = library.search("雲雀の初鳴き").hits[0]
    assert hit.uri == "report.docx"
    assert hit.chunk.heading_path[0] == "観測の結果"
    assert "雲雀" in library.read(f"report.docx:L{hit.chunk.first_line}-L{hit.chunk.last_line}")


def test_numbers_of_headings_and_articles_stand_in_the_text() -> None:
    levels = (
        '<w:lvl w:ilvl="0"><w:numFmt w:val="japaneseCounting"/><w:lvlText w:val="第%1章"/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="第%2条"/></w:lvl>'
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    styles = (
        '<w:style w:styleId="1" w:type="paragraph"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/>'
        "</w:numPr></w:pPr></w:style>"
    )
    article = '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>'
    body = (
        paragraph("総則", '<w:pStyle w:val="1"/>') + paragraph("目的を定める。", article)
        + paragraph("用語を定める。", article) + paragraph("会員", '<w:pStyle w:val="1"/>')
        + paragraph("会員は名簿に載せる。", article)
    )  # fmt: skip
    read = docx.read(word(body, numbering=numbering, styles=styles))
    assert read.text.split("\n\n") == [
        "# 第一章 総則", "第3条 目的を定める。", "第4条 用語を定める。", "# 第二章 会員", "第3条 会員は名簿に載せる。",
    ]  # fmt: skip
    assert read.title == "第一章 総則"


def test_deleted_and_hidden_text_fields_and_the_table_of_contents_are_left_out() -> None:
    body = (
        "<w:p><w:del><w:r><w:delText>削除</w:delText></w:r></w:del><w:ins><w:r><w:t>挿入</w:t></w:r></w:ins>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>隠し</w:t></w:r><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
        '<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
        f"<w:sdtContent>{paragraph('目次')}</w:sdtContent></w:sdt>"
        f"<w:sdt><w:sdtContent>{paragraph('記入欄')}</w:sdtContent></w:sdt>"
    )
    assert docx.read(word(body)).text == "挿入\n\n記入欄"


def test_a_text_box_is_read_once_though_the_file_has_it_twice() -> None:
    box = f"<w:txbxContent>{paragraph('囲み記事')}</w:txbxContent>"
    body = (
        '<w:p><w:r><w:t>本文</w:t><mc:AlternateContent xmlns:mc="urn:mc">'
        f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    assert docx.read(word(body)).text == "本文\n\n囲み記事"


def test_many_readings_are_left_out_as_on_web_pages() -> None:
    reading = "<w:rt><w:r><w:t>よみがな</w:t></w:r></w:rt>"
    ruby = f"<w:ruby>{reading}<w:rubyBase><w:r><w:t>漢字{{}}</w:t></w:r></w:rubyBase></w:ruby>"
    body = "".join(f"<w:p><w:r>{ruby.format(number)}</w:r></w:p>" for number in range(30))
    assert "読み" not in docx.read(word(body)).text


def test_text_that_looks_like_markdown_does_not_become_structure() -> None:
    read = docx.read(word(paragraph("# 偽の見出し") + paragraph("本文")))
    assert [chunk.heading for chunk in build("headings", min_chars=0).chunks(read)] == [""]


def test_a_document_without_text_is_a_problem() -> None:
    with pytest.raises(SourceError, match="no text"):
        docx.read(word("<w:p/>"))
