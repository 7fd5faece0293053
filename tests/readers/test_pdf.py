"""PDF files are read: some that programs have made, and some written by hand, so that every byte is known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import readers
from bunko.chunkers import build
from bunko.errors import SourceError, UnknownName
from bunko.readers import pdf
from bunko.readers.pdf import layout, process
from bunko.runtime.installation import install_command
from bunko.search.passages import extract_passages
from tests.conftest import Opener
from tests.readers.pdf_files import build_pdf, write_pdf
from tests.readers.zip_files import fixture

pytest.importorskip("pypdfium2")


def _utf_16(text: str) -> str:
    return f"<FEFF{text.encode('utf-16-be').hex()}>"


def test_each_page_stands_under_its_number() -> None:
    read = readers.read(build_pdf([["請求の手順", "月末に締める。"], ["The second page."]]), "Manual.PDF")
    assert read.text == "## Page 1\n\n請求の手順\n月末に締める。\n\n## Page 2\n\nThe second page."
    assert read.media_type == "application/pdf"
    assert [chunk.heading_path for chunk in build(min_chars=0).chunks(read)] == [("Page 1",), ("Page 2",)]


def test_title_and_date_come_from_the_file_and_a_program_s_own_words_do_not_count() -> None:
    info = f"/Title {_utf_16('請求の手引き')} /CreationDate (D:20240115093000+09'00')"
    read = pdf.read(build_pdf([["本文"]], info))
    assert (read.title, read.date) == ("請求の手引き", "2024-01-15T09:30:00+09:00")
    assert pdf.read(build_pdf([["本文"]], "/Title (Microsoft Word - x.doc) /CreationDate (D:2024)")).title == ""
    assert pdf.read(build_pdf([["本文"]], "/CreationDate (yesterday)")).date == ""


def test_lines_that_were_only_wrapped_are_joined_where_japanese_needs_no_blank() -> None:
    long = "この手引きは請求書を作るときの手順を説明するものであり毎月末に行う締"
    rest = "め処理についても述べる。"
    assert f"{long}{rest}" in pdf.read(build_pdf([["概要", long, rest]])).text
    assert "概要\nこの" in pdf.read(build_pdf([["概要", long, rest]])).text


def test_text_that_looks_like_markdown_does_not_become_structure() -> None:
    read = pdf.read(build_pdf([["# 偽の見出し", "本文"]]))
    assert [chunk.heading for chunk in build("headings", min_chars=0).chunks(read)] == ["## Page 1"]


def test_a_page_of_a_folder_s_pdf_is_found_and_says_where(docs: Path, open_docs: Opener) -> None:
    (docs / "manual.pdf").write_bytes(
        build_pdf([["Nothing of interest stands on this first page of ours."], ["締め処理は月末。"]])
    )
    library = open_docs()
    assert not library.reindex().problems
    hit = library.search("締め処理").hits[0]
    assert hit.uri == "manual.pdf"
    assert "## Page 2" in hit.chunk.text


def test_a_page_is_read_and_verified_by_its_number(docs: Path, open_docs: Opener) -> None:
    pages = [["請求書の見本をここに置く。"], ["締め処理は月末。", "翌月に送る。"], ["奥付"]]
    (docs / "manual.pdf").write_bytes(build_pdf(pages))
    library = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")
    passage = extract_passages(library.search("締め処理", top_k=1).hits, library.document_of, "chunk")[0]
    assert passage.place == "p2"
    assert library.read("manual.pdf:p2") == "## Page 2\n\n締め処理は月末。\n翌月に送る。"
    assert library.verify_citation("manual.pdf:p2", passage.hash).status == "same"
    assert library.verify_citation("manual.pdf:p1", passage.hash).status == "changed"
    (docs / "manual.pdf").rename(docs / "guide.pdf")
    assert library.verify_citation("manual.pdf:p2", passage.hash).citation == "guide.pdf:p2"
    with pytest.raises(UnknownName):
        library.read("guide.pdf:p9")


def test_a_pdf_of_libreoffice_has_headings_joined_lines_and_no_running_heads() -> None:
    read = pdf.read(fixture("report.pdf"))
    assert read.title == "観測の報告"
    blocks = read.text.split("\n\n")
    assert blocks[:2] == ["## Page 1", "### 一年の天候"]
    assert blocks[2].startswith("この年の春は例年よりも早く訪れ、三月の半ばには平地の雪がすべて消えた。")
    assert "\n" not in blocks[2]
    assert blocks[3] == "#### Summer rainfall"
    assert "the extraordinarily persistent southwesterly" in blocks[4]
    assert "unprecedented" in blocks[4]
    assert "- 雨量計を確かめる\n" in read.text
    assert "## Page 2\n\n### 観測の結果\n\n雲雀の初鳴きは" in read.text
    assert "| missing\n\n#### おわりに\n\n来年も観測を続ける。" in read.text
    assert "気象観測所" not in read.text


def test_vertical_text_is_read_in_lines_and_its_headings_are_known_by_their_size() -> None:
    text = pdf.read(fixture("vertical.pdf")).text
    assert text.startswith("## Page 1\n\n### 春の便り\n\n拝啓、山の雪もようやく解け、川の水が音を立てて流れる季節に")
    assert "ぜひお目にかかりたく存じます。" in text


def test_a_page_that_begins_in_the_middle_of_a_section_names_it() -> None:
    def page(number: int, top: str, size: float) -> list[layout.Line]:
        texts = [(top, size), *((f"{number}頁の本文の{line}行目です。", 10.0) for line in range(5))]
        return [
            layout.Line(text, size, 50, 700 - 20 * index, 300, 710 - 20 * index)
            for index, (text, size) in enumerate(texts)
        ]

    text = layout.markdown([page(1, "請求の手順", 16), page(2, "つづきの文である。", 10)])
    assert text.startswith("## Page 1\n\n### 請求の手順\n\n1頁の")
    assert "## Page 2: 請求の手順\n\nつづきの文である。" in text


def test_pages_that_are_images_are_a_problem_that_names_the_remedy() -> None:
    with pytest.raises(SourceError, match="text recognition"):
        pdf.read(build_pdf([[], []]))


def test_an_encrypted_file_is_a_problem_unless_its_password_is_empty() -> None:
    with pytest.raises(SourceError, match="without a password"):
        pdf.read(fixture("locked.pdf"))
    for name in ("restricted.pdf", "restricted-rc4.pdf"):
        assert "The secret recipe has two eggs." in pdf.read(fixture(name)).text


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"no pdf at all", build_pdf([["本文"]])[:200]])
def test_a_broken_file_is_a_problem(data: bytes) -> None:
    with pytest.raises(SourceError, match="PDF"):
        pdf.read(data)


def test_more_pages_than_a_book_has_are_refused() -> None:
    kids = b"3 0 R " * 6000
    tree = b"<< /Type /Pages /Kids [%b] /Count 6000 >>" % kids
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    with pytest.raises(SourceError, match="6,000 pages"):
        pdf.read(write_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", tree, leaf]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=20))
def test_damage_makes_a_problem_or_less_text_but_nothing_else(position: int, damage: bytes) -> None:
    data = build_pdf([["本文"], ["二頁目"]])
    position %= len(data)
    with suppress(SourceError):
        assert pdf.read(data[:position] + damage + data[position + len(damage) :]).text.startswith("## Page ")


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_a_problem_and_the_next_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    process.extractor.close()  # starting Python alone takes longer than this
    monkeypatch.setattr(process, "MAX_SECONDS", 0.001)
    with pytest.raises(SourceError, match="takes more than"):
        pdf.read(build_pdf([["本文"]]))
    monkeypatch.undo()
    assert "本文" in pdf.read(build_pdf([["本文"]])).text


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_crash_of_the_parser_costs_no_other_file() -> None:
    pdf.read(build_pdf([["本文"]]))
    running = process.extractor.process
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert "二つ目" in pdf.read(build_pdf([["二つ目"]])).text


def test_scanned_pages_of_a_file_with_text_are_named(docs: Path, open_docs: Opener) -> None:
    pages = [["一ページ目の本文。"], [], [], ["四ページ目の本文。"], [], [], ["七ページ目の本文。"]]
    (docs / "a.pdf").write_bytes(build_pdf(pages, scanned=(1, 2, 3, 6)))
    report = open_docs().reindex()
    [problem] = report.problems
    assert (report.added, problem.uri) == (1, "a.pdf")
    assert problem.reason.splitlines() == [
        "no text on pages 2-3, 6: scanned images",
        "Run text recognition on it, for example with ocrmypdf, then import it again.",
    ]


def test_an_empty_page_is_no_problem() -> None:
    assert pdf.read(build_pdf([["本文"], []])).missing == ""
    assert pdf.read(build_pdf([["本文"], []], scanned=[2])).missing.startswith("no text on page 2: ")


@pytest.mark.slow
def test_without_the_package_the_problem_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pypdfium2'] = None\n"
        "from bunko import readers\nfrom bunko.errors import SourceError\n"
        "try:\n    readers.read(b'%PDF-', 'a.pdf')\nexcept SourceError as error:\n    print(error.hint)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"Install it with: {install_command(package='pypdfium2')}\n"


def test_a_folder_announces_files_it_cannot_read_and_reads_them_once_the_package_is_there(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        (docs / name).write_bytes(build_pdf([[f"{name} の本文はここにある。"]]))
    library = open_docs()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pypdfium2", None)
        (problem,) = library.reindex().problems
        assert (problem.uri, problem.reason) == (
            "a.pdf",
            "cannot be read without the package pypdfium2 (like 2 more files of this format);"
            f" install it with: {install_command(package='pypdfium2')}",
        )
    report = library.reindex()
    assert (report.added, report.problems) == (3, [])
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pypdfium2", None)
        assert library.reindex().deleted == 0
    assert library.search("b.pdf の本文").hits
