"""PDF files are read; the tests write them by hand, so that every byte is known."""

from __future__ import annotations

import io
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import readers
from bunko.chunkers import build
from bunko.errors import SourceError
from bunko.readers import pdf
from tests.conftest import Opener


def _file(objects: Sequence[bytes], info: str = "") -> bytes:
    """Write numbered objects to a file; the first is the catalog, the last the document information."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate((*objects, f"<< {info} >>".encode("latin-1")), 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(offsets) + 1, len(offsets))
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _stream(data: bytes) -> bytes:
    packed = zlib.compress(data)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)


def build_pdf(pages: Sequence[Sequence[str]], info: str = "") -> bytes:
    """Return a PDF with lines of text; its font numbers the characters and has a map from numbers to Unicode."""
    characters = sorted({character for page in pages for line in page for character in line})
    codes = {character: number for number, character in enumerate(characters, 1)}
    pairs = "\n".join(f"<{code:04X}> <{character.encode('utf-16-be').hex()}>" for character, code in codes.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        f"1 begincodespacerange <0000> <FFFF> endcodespacerange\n{len(codes)} beginbfchar\n{pairs}\nendbfchar\n"
        "endcmap CMapName currentdict /CMap defineresource pop end end"
    )
    first = 6
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [4 0 R]"
        b" /ToUnicode 5 0 R >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 1000"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        _stream(cmap.encode()),
    ]
    for number, page in enumerate(pages):
        lines = "".join(
            f"1 0 0 1 50 {800 - 20 * index} Tm <{''.join(f'{codes[character]:04X}' for character in line)}> Tj\n"
            for index, line in enumerate(page)
        )
        resources = "/Resources << /Font << /F 3 0 R >> >> /MediaBox [0 0 600 850]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {first + 1 + 2 * number} 0 R >>".encode())
        objects.append(_stream(f"BT /F 12 Tf\n{lines}ET".encode() if page else b""))
    return _file(objects, info)


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
    library = open_docs(BUNKO_SCANNER_FILE_EXTENSIONS=".pdf")
    assert not library.reindex().problems
    hit = library.search("締め処理").hits[0]
    assert hit.uri == "manual.pdf"
    assert "## Page 2" in hit.chunk.text


def test_pages_that_are_images_are_a_problem_that_names_the_remedy() -> None:
    with pytest.raises(SourceError, match="text recognition"):
        pdf.read(build_pdf([[], []]))


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_an_encrypted_file_is_a_problem_unless_its_password_is_empty(algorithm: str) -> None:
    from pypdf import PdfReader, PdfWriter

    def locked(password: str) -> bytes:
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(build_pdf([["秘密の本文"]]))))
        writer.encrypt(password, owner_password="owner", algorithm=algorithm)
        out = io.BytesIO()
        writer.write(out)
        return out.getvalue()

    with pytest.raises(SourceError, match="without a password"):
        pdf.read(locked("secret"))
    assert "秘密の本文" in pdf.read(locked("")).text


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"no pdf at all", build_pdf([["本文"]])[:200]])
def test_a_broken_file_is_a_problem(data: bytes) -> None:
    with pytest.raises(SourceError, match="PDF"):
        pdf.read(data)


def test_more_pages_than_a_book_has_are_refused() -> None:
    kids = b"3 0 R " * 6000
    tree = b"<< /Type /Pages /Kids [%b] /Count 6000 >>" % kids
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    with pytest.raises(SourceError, match="6,000 pages"):
        pdf.read(_file([b"<< /Type /Catalog /Pages 2 0 R >>", tree, leaf]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=20))
def test_damage_makes_a_problem_or_less_text_but_nothing_else(position: int, damage: bytes) -> None:
    data = build_pdf([["本文"], ["二頁目"]])
    position %= len(data)
    with suppress(SourceError):
        assert pdf.read(data[:position] + damage + data[position + len(damage) :]).text.startswith("## Page ")


def test_without_the_package_the_problem_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pypdf'] = None\n"
        "from bunko import readers\nfrom bunko.errors import SourceError\n"
        "try:\n    readers.read(b'%PDF-', 'a.pdf')\nexcept SourceError as error:\n    print(error.hint)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == 'Install it with: pip install "bunko[pdf]"\n'
