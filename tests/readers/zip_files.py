"""Build ZIP files and office documents part by part."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

DOCUMENTS = Path(__file__).parents[1] / "fixtures" / "documents"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"


def fixture(name: str) -> bytes:
    """Return a document that a program has made."""
    return (DOCUMENTS / name).read_bytes()


def build_zip(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def rels(targets: Mapping[str, str]) -> str:
    """Return a list of relationships: their types and targets, with ids r1, r2, …"""
    items = "".join(
        f'<Relationship Id="r{number}" Type="{OFFICE_RELATIONSHIPS}/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(targets.items(), 1)
    )
    return f'<Relationships xmlns="{_RELATIONSHIPS}">{items}</Relationships>'


def word(body: str, *, prolog: str = "", **parts: str) -> bytes:
    """Return a Word document; `parts` are further ones, such as styles and numbering."""
    names = {f"{name}.xml": name for name in parts}
    return build_zip(
        {
            "_rels/.rels": rels({"word/document.xml": "officeDocument"}),
            "word/_rels/document.xml.rels": rels(names),
            "word/document.xml": f'{prolog}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
            **{f"word/{name}.xml": f'<w:{name} xmlns:w="{_WORD}">{xml}</w:{name}>' for name, xml in parts.items()},
        }
    )


def paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of a Word document."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def workbook(rows: str, *, after: str = "", styles: str = "", strings: str = "", properties: str = "") -> bytes:
    """Return a workbook with one sheet, Data."""
    sheet = f'<sheet name="Data" sheetId="1" r:id="r1" xmlns:r="{OFFICE_RELATIONSHIPS}"/>'
    return build_zip(
        {
            "_rels/.rels": rels({"xl/workbook.xml": "officeDocument"}),
            "xl/_rels/workbook.xml.rels": rels(
                {"worksheets/sheet1.xml": "worksheet", "styles.xml": "styles", "sharedStrings.xml": "sharedStrings"}
            ),
            "xl/workbook.xml": f'<workbook xmlns="{_SHEET}">{properties}<sheets>{sheet}</sheets></workbook>',
            "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}">{styles}</styleSheet>',
            "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}">{strings}</sst>',
            "xl/worksheets/sheet1.xml": (
                f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData>{after}</worksheet>'
            ),
        }
    )


def presentation(shapes: str, **parts: str) -> bytes:
    """Return a presentation with one slide; `parts` are further ones."""
    return build_zip(
        {
            "_rels/.rels": rels({"ppt/presentation.xml": "officeDocument"}),
            "ppt/_rels/presentation.xml.rels": rels({"slides/slide1.xml": "slide"}),
            "ppt/presentation.xml": (
                f'<p:presentation xmlns:p="{_SLIDE}" xmlns:r="{OFFICE_RELATIONSHIPS}"><p:sldIdLst>'
                '<p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>'
            ),
            "ppt/slides/slide1.xml": (
                f'<p:sld xmlns:p="{_SLIDE}" xmlns:a="{_DRAWING}"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>'
            ),
            **parts,
        }
    )


def book(chapter: str | bytes, **parts: str) -> bytes:
    """Return an e-book with one chapter."""
    return build_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
            ),
            "OPS/book.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
                '<item id="c" href="text/one.xhtml" media-type="application/xhtml+xml"/></manifest>'
                '<spine><itemref idref="c"/></spine></package>'
            ),
            "OPS/text/one.xhtml": chapter,
            **parts,
        }
    )
