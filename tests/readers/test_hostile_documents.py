"""Documents made to hang the reader, to fill the memory or to read other files are refused, or read without harm."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import readers
from bunko.errors import SourceError
from bunko.readers import notebook as notebook_reader
from bunko.readers import pdf
from bunko.readers.html import tree
from bunko.readers.office import docx, epub, package, pptx, xlsx
from bunko.readers.office import docx as office_word
from bunko.readers.office import epub as office_book
from bunko.readers.pdf import process
from tests.readers.pdf_files import build_pdf, write_pdf
from tests.readers.zip_files import book, build_zip, fixture, paragraph, presentation, rels, word, workbook

OFFICE_FILES = ("report.docx", "deck.pptx", "prices.xlsx", "novel.epub")


@pytest.mark.parametrize("name", OFFICE_FILES)
@pytest.mark.parametrize("length", [0, 3, 22, 100, 1000])
def test_a_broken_file_is_a_problem(name: str, length: int) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        readers.read(fixture(name)[:length], name)


@pytest.mark.parametrize("name", OFFICE_FILES)
def test_a_zip_file_of_something_else_is_a_problem(name: str) -> None:
    with pytest.raises(SourceError, match="is missing"):
        readers.read(build_zip({"hello.txt": "hello"}), name)


@pytest.mark.parametrize("name", OFFICE_FILES)
def test_a_file_with_a_password_is_a_problem_that_says_what_to_do(name: str) -> None:
    with pytest.raises(SourceError, match="without a password"):
        readers.read(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2000), name)  # as Office programs encrypt
    data = bytearray(fixture(name))
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        start = data.find(mark)
        while start >= 0:
            data[start + offset] |= 1  # as ZIP programs do
            start = data.find(mark, start + 4)
    with pytest.raises(SourceError, match="without a password"):
        readers.read(bytes(data), name)


@pytest.mark.parametrize("name", OFFICE_FILES)
@settings(max_examples=25, deadline=None)
@given(position=st.integers(0, 100_000), damage=st.binary(min_size=1, max_size=30))
def test_damage_makes_a_problem_or_other_text_but_nothing_else(name: str, position: int, damage: bytes) -> None:
    data = fixture(name)
    position %= len(data)
    with suppress(SourceError):
        readers.read(data[:position] + damage + data[position + len(damage) :], name)


@pytest.mark.parametrize("name", OFFICE_FILES)
@settings(max_examples=25, deadline=None)
@given(part=st.integers(0, 100), position=st.integers(0, 100_000), damage=st.text("<>/&\"'= xw:pr1", min_size=1))
def test_damage_inside_a_part_makes_a_problem_or_other_text(name: str, part: int, position: int, damage: str) -> None:
    with zipfile.ZipFile(io.BytesIO(fixture(name))) as source:
        parts = {entry: source.read(entry) for entry in source.namelist()}
    names = sorted(entry for entry in parts if entry.endswith((".xml", ".rels", ".opf", ".xhtml")))
    changed = names[part % len(names)]
    position %= len(parts[changed]) + 1
    parts[changed] = parts[changed][:position] + damage.encode() + parts[changed][position:]
    with suppress(SourceError):
        readers.read(build_zip(parts), name)


BOMBS = {
    "docx": lambda blanks: word(paragraph("x" + blanks)),
    "pptx": lambda blanks: presentation(blanks),
    "xlsx": lambda blanks: workbook("<row/>" + blanks),
    "epub": lambda blanks: book("<p>x</p>" + blanks),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_that_unpacks_to_far_more_is_stopped_halfway(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_UNCOMPRESSED_BYTES", 3 << 20)
    data = BOMBS[kind](" " * (8 << 20))
    assert len(data) < 100_000
    with pytest.raises(SourceError, match="unpacks to more than 3 MB"):
        readers.read(data, f"bomb.{kind}")


def test_a_part_is_measured_while_it_is_unpacked_whatever_its_header_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_UNCOMPRESSED_BYTES", 3 << 20)
    data = bytearray(word(paragraph(" " * (8 << 20))))
    for mark, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = data.find(mark)
        while start >= 0:
            struct.pack_into("<I", data, start + offset, 100)
            start = data.find(mark, start + 4)
    with pytest.raises(SourceError):
        docx.read(bytes(data))


def test_a_file_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_SECONDS", -1.0)
    with pytest.raises(SourceError, match="too slow"):
        docx.read(fixture("report.docx"))


def test_more_parts_than_a_document_has_are_refused_before_they_are_listed() -> None:
    with pytest.raises(SourceError, match="more than 20,000 parts"):
        docx.read(b"PK\x01\x02" * 20_001)


def notebook(cells: int) -> bytes:
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["x"]}
    return json.dumps({"cells": [cell] * cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


MAIL_HEAD = b"Subject: x\r\nContent-Type: text/html\r\n\r\n"
# More than any page of text has, in files of 6 MB and less; each is refused before the work is done.
CROWDED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a.html": (lambda: b"<p>" * 2_000_000, "more than 400,000 tags"),
    "attributes.html": (lambda: b"<p a b c d>" * 500_000, "more than 400,000 tags"),
    "a.eml": (lambda: MAIL_HEAD + b"<p>" * 2_000_000, "more than 400,000 tags"),
    "a.epub": (lambda: book("<p>" * 2_000_000), "more than 400,000 tags"),
    "a.docx": (lambda: word("<w:p/>" * 1_500_000), "more than 100,000 paragraphs"),
    "a.xlsx": (lambda: workbook("<row/>" * 5_000_000), "more than 4,000,000 XML elements"),
    "a.ipynb": (lambda: notebook(400_000), "more than 2,000,000 values"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CROWDED)
def test_a_file_with_more_parts_than_a_text_is_refused_by_their_number(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "MAX_SECONDS", 1e9)  # not by the time
    build, message = CROWDED[name]
    with pytest.raises(SourceError, match=message):
        readers.read(build(), name)


@pytest.mark.parametrize(
    ("module", "limit", "name", "build", "message"),
    [
        (tree, "MAX_TAGS", "a.html", lambda: b"<p>x</p>" * 30, "The page has more than 50 tags and attributes"),
        (tree, "MAX_TAGS", "a.html", lambda: b"<p a b=c d='e f' g/>x" * 12 + b" " * 60, "50 tags and attributes"),
        (tree, "MAX_TAGS", "a.eml", lambda: MAIL_HEAD + b"<p>x</p>" * 30, "50 tags and attributes"),
        (office_book, "MAX_TAGS", "a.epub", lambda: book("<p>x</p>" * 30), "The e-book has more than 50 tags"),
        (office_word, "MAX_PARAGRAPHS", "a.docx", lambda: word(paragraph("x") * 51), "more than 50 paragraphs"),
        (package, "MAX_ELEMENTS", "a.docx", lambda: word("<w:r/>" * 51), "more than 50 XML elements"),
        (notebook_reader, "MAX_VALUES", "a.ipynb", lambda: notebook(30), "more than 50 values"),
    ],
)
def test_the_parts_of_a_file_are_counted(
    module: object, limit: str, name: str, build: Callable[[], bytes], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, 50)
    with pytest.raises(SourceError, match=message):
        readers.read(build(), name)


def test_blanks_and_words_are_no_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_TAGS", 50)
    text = f"<p class='a b c' title=\"d e f\">{'word = <3 ' * 60}</p>"
    assert readers.read(text.encode(), "a.html").text.count("word") == 60


def test_a_chapter_that_a_book_names_three_thousand_times_is_read_once() -> None:
    items = '<item id="c" href="text/one.xhtml" media-type="application/xhtml+xml"/>'
    other = '<item id="d" href="TEXT/../text/./One.xhtml#x" media-type="application/xhtml+xml"/>'
    spine = '<itemref idref="c"/><itemref idref="d"/>' * 1500
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}{other}</manifest>'
        f"<spine>{spine}</spine></package>"
    )
    assert epub.read(book("<p>本文</p>", **{"OPS/book.opf": package})).text == "本文"


ENTITIES = {
    "another file": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
    "a page": '<!DOCTYPE x [<!ENTITY e SYSTEM "http://127.0.0.1:9/x">]>',
    "a billion laughs": '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY e "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    "a parameter": '<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
}


@pytest.mark.parametrize("prolog", ENTITIES.values(), ids=ENTITIES)
def test_entities_are_refused(prolog: str) -> None:
    with pytest.raises(SourceError, match="declares entities"):
        docx.read(word(paragraph("&e;" if "%" not in prolog else "x"), prolog=prolog))
    with pytest.raises(SourceError, match="declares entities"):
        docx.read(word(paragraph("x"), prolog=prolog.replace("<!DOCTYPE", f"<!--{'x' * (3 << 20)}--><!DOCTYPE")))


def test_entities_in_utf_16_are_refused_too() -> None:
    document = ENTITIES["another file"] + '<w:document xmlns:w="urn:w"><w:body/></w:document>'
    data = build_zip(
        {
            "_rels/.rels": rels({"word/document.xml": "officeDocument"}),
            "word/document.xml": ('<?xml version="1.0" encoding="utf-16"?>' + document).encode("utf-16"),
        }
    )
    with pytest.raises(SourceError, match="declares entities"):
        docx.read(data)


def test_an_e_book_reads_no_entities_and_no_other_files() -> None:
    chapter = (
        f"{ENTITIES['another file']}<html><body><p>本文 &e;</p><iframe src='file:///etc/passwd'></iframe>"
        "<img src='file:///etc/passwd' alt=''/></body></html>"
    )
    assert "root:" not in epub.read(book(chapter)).text
    with pytest.raises(SourceError, match="missing"):
        epub.read(
            build_zip(
                {
                    "META-INF/container.xml": (
                        '<container xmlns="urn:c"><rootfiles><rootfile full-path="../../../../etc/passwd"/></rootfiles>'
                        "</container>"
                    )
                }
            )
        )


def test_relationships_that_lead_out_of_the_file_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "styles.xml"
    secret.write_text("<secret/>")
    with pytest.raises(SourceError, match="main part is missing"):
        docx.read(build_zip({"_rels/.rels": rels({f"../../..{secret}": "officeDocument"})}))
    external = rels({"http://127.0.0.1:9/document.xml": "officeDocument"}).replace(
        "<Relationship ", '<Relationship TargetMode="External" '
    )
    with pytest.raises(SourceError, match="main part is missing"):
        docx.read(build_zip({"_rels/.rels": external}))


LONG_MARKUP = {
    "a comment": f"<!--{'x' * (3 << 20)}-->",
    "a picture in an attribute": f"<w:pict data='{'QUJD' * (3 << 18)}'/>",
    "an instruction": f"<?x {'x' * (3 << 20)}?>",
}


@pytest.mark.parametrize("markup", LONG_MARKUP.values(), ids=LONG_MARKUP)
def test_text_after_megabytes_of_markup_is_read(markup: str) -> None:
    assert docx.read(word(paragraph("before") + markup + paragraph("after"))).text.split() == ["before", "after"]
    assert docx.read(word(markup + paragraph("after"))).text.split() == ["after"]


@pytest.mark.slow
def test_what_follows_a_long_comment_is_held_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "PIECE_BYTES", 1 << 14)
    data = word(paragraph("before") + f"<!--{'x' * (1 << 18)}-->" + "<w:p/>" * 40_000)
    tracemalloc.start()
    try:
        assert docx.read(data).text.split() == ["before"]
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


def test_deep_nesting_is_a_problem() -> None:
    table = "<w:tbl><w:tr><w:tc>"
    depth = 5000
    with pytest.raises(SourceError, match="nested too deeply"):
        docx.read(word(table * depth + paragraph("x") + "</w:tc></w:tr></w:tbl>" * depth))
    group = "<p:grpSp>" * depth + "</p:grpSp>" * depth
    with pytest.raises(SourceError, match="nested too deeply"):
        pptx.read(presentation(group))
    assert "本文" in epub.read(book("<div>" * 50_000 + "本文" + "</div>" * 50_000)).text


def test_styles_based_on_each_other_and_lists_without_end_are_no_loop() -> None:
    styles = "".join(
        f'<w:style w:styleId="{name}"><w:name w:val="{name}"/><w:basedOn w:val="{base}"/></w:style>'
        for name, base in (("a", "b"), ("b", "a"))
    )
    assert docx.read(word(paragraph("本文", '<w:pStyle w:val="a"/>'), styles=styles)).text == "本文"
    numbering = (
        '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="999999"/><w:numFmt w:val="upperRoman"/>'
        '<w:lvlText w:val="%1%1%1%9."/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    item = paragraph("本文", '<w:numPr><w:ilvl w:val="99"/><w:numId w:val="1"/></w:numPr>')
    assert (
        "本文"
        in docx.read(
            word(item + paragraph("本文", '<w:numPr><w:numId w:val="1"/></w:numPr>'), numbering=numbering)
        ).text
    )


def test_notes_that_refer_to_themselves_are_no_loop() -> None:
    mark = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
    notes = "".join(
        f'<w:footnote w:id="{number}"><w:p><w:r><w:t>注{number}</w:t></w:r>{mark.format(3 - number)}</w:p></w:footnote>'
        for number in (1, 2)
    )
    text = docx.read(
        word(f"<w:p><w:r><w:t>本文</w:t></w:r>{mark.format(1)}{mark.format(1)}</w:p>", footnotes=notes)
    ).text
    assert text.count("注1") == text.count("注2") == 1


@pytest.mark.slow
def test_cells_far_apart_do_not_become_a_table_of_blanks() -> None:
    rows = "".join(
        f'<row r="{number}"><c r="{"A" if number % 2 else "GR"}{number}"><v>{number}</v></c></row>'
        for number in range(1, 30_001)
    )
    text = xlsx.read(workbook(rows)).text
    assert text.startswith("## Data!A1:GR30000\n\n1\n2\n3\n")
    assert len(text) < 300_000


def test_a_chapter_larger_than_any_is_a_problem() -> None:
    with pytest.raises(SourceError, match="chapter"):
        epub.read(book(b"<p>" + b"x" * (30 << 20)))


def test_spans_of_a_million_cells_do_not_fill_the_memory() -> None:
    cell = f'<w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr>{paragraph("x")}</w:tc>'
    text = docx.read(word(f"<w:tbl><w:tr>{cell}{cell}</w:tr><w:tr>{cell}{cell}</w:tr></w:tbl>")).text
    assert len(text) < 5000
    merges = "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 1000 + "</mergeCells>"
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    assert len(xlsx.read(workbook(rows, after=merges)).text) < 1000


@pytest.mark.slow
def test_a_million_cells_are_cut() -> None:
    row = "<row>" + "<c><v>1</v></c>" * 200 + "</row>"
    assert "(The rows from 2501 on are not indexed" in xlsx.read(workbook(row * 5000)).text


def test_cells_that_refer_to_nothing_do_no_harm() -> None:
    cells = '<c r="ZZZZ9" t="s"><v>123456789012</v></c><c t="s"><v>-1</v></c><c s="9999999"><v>5</v></c>'
    assert xlsx.read(workbook(f'<row r="99999999999">{cells}</row>')).text == "## Data!C1:C1\n\n5"


@pytest.mark.slow
def test_readers_open_no_connection_and_no_file(tmp_path: Path) -> None:
    """Audit hooks see every file and socket that Python opens."""
    for name in OFFICE_FILES:
        (tmp_path / name).write_bytes(fixture(name))
    code = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from bunko import readers
        files = {path.name: path.read_bytes() for path in Path(sys.argv[1]).iterdir()}
        for name, data in files.items():
            readers.read(data, name)  # loads the modules
        seen = []
        watched = ("open", "socket.connect", "urllib.Request", "subprocess.Popen", "os.listdir")
        sys.addaudithook(lambda event, args: seen.append((event, args)) if event in watched else None)
        for name, data in files.items():
            readers.read(data, name)
        print(seen)
        """
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


class TestPdf:
    """PDFium reads in a process of its own, which is ended when it takes too much."""

    @pytest.fixture(autouse=True)
    def _needs_package(self) -> None:
        pytest.importorskip("pypdfium2")

    def test_pages_outlines_and_forms_that_contain_themselves_are_no_loop(self) -> None:
        with suppress(SourceError):
            pdf.read(
                write_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"])
            )
        outline = b"<< /Title (x) /Parent 3 0 R /Next 4 0 R /First 4 0 R /Dest [6 0 R /Fit] >>"
        content = b"<< /Length 18 >>\nstream\n/X Do BT ET /X Do \nendstream"
        resources = b"/Resources << /XObject << /X 5 0 R >> >>"
        form = b"<< /Subtype /Form /BBox [0 0 9 9] %b /Length 6 >>\nstream\n/X Do \nendstream" % resources
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 7 0 R %b >>" % resources
        data = write_pdf(
            [
                b"<< /Type /Catalog /Pages 2 0 R /Outlines 3 0 R >>", b"<< /Type /Pages /Kids [6 0 R] /Count 1 >>",
                b"<< /Type /Outlines /First 4 0 R /Last 4 0 R >>", outline, form, page, content,
            ]
        )  # fmt: skip
        with pytest.raises(SourceError, match="images"):
            pdf.read(data)

    def test_short_lines_count_as_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        process.extractor.close()
        monkeypatch.setattr(process, "MAX_CHARS", 1000)
        with pytest.raises(SourceError, match="stopped at page 2 of 3"):
            pdf.read(build_pdf([[f"{number:02}" for number in range(20)]] * 3))
        process.extractor.close()

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform != "linux", reason="no limit of the memory of a process")
    def test_a_stream_that_was_packed_twice_takes_no_more_than_a_gigabyte(self, tmp_path: Path) -> None:
        packers = [zlib.compressobj(9), zlib.compressobj(9)]
        packed = b"".join(packers[1].compress(packers[0].compress(b" " * (1 << 20))) for _ in range(3000))
        packed += packers[1].compress(packers[0].flush()) + packers[1].flush()
        content = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%b\nendstream" % (len(packed), packed)
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>"
        tree = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
        file = tmp_path / "a.pdf"
        file.write_bytes(write_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", tree, page, content]))
        code = textwrap.dedent(
            """
            import resource, sys
            from pathlib import Path
            from bunko import readers
            from bunko.errors import SourceError
            try:
                readers.read(Path(sys.argv[1]).read_bytes(), "a.pdf")
            except SourceError as error:
                print(error.message)
            print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
            """
        )
        ran = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
        message, kilobytes = ran.stdout.splitlines()
        assert "too much memory" in message
        assert int(kilobytes) * 1024 <= 1 << 30

    @pytest.mark.slow
    def test_a_stream_that_unpacks_to_gigabytes_is_a_problem_or_no_text(self) -> None:
        packer = zlib.compressobj(9)
        packed = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(2048)) + packer.flush()
        content = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>"
        tree = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
        with pytest.raises(SourceError):
            pdf.read(write_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", tree, page, content]))
        assert "本文" in pdf.read(build_pdf([["本文"]])).text
