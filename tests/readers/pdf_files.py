"""Write PDF files by hand, so that every byte is known."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def write_pdf(objects: Sequence[bytes], info: str = "") -> bytes:
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


def _stream(data: bytes, keys: bytes = b"") -> bytes:
    packed = zlib.compress(data)
    return b"<< /Length %d /Filter /FlateDecode %b >>\nstream\n%b\nendstream" % (len(packed), keys, packed)


def build_form(label: str, value: str) -> bytes:
    """Return a PDF with a label and a text field that was filled in; both in ASCII."""
    font = b"/Resources << /Font << /F 3 0 R >> >>"
    appearance = b"/Tx BMC BT /F 12 Tf 2 5 Td (%b) Tj ET EMC" % value.encode()
    return write_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] /DR << /Font << /F 3 0 R >> >> >> >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 850] /Contents 5 0 R /Annots [6 0 R] %b >>" % font,
            _stream(b"BT /F 12 Tf 50 700 Td (%b) Tj ET" % label.encode()),
            b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (%b) /F 4 /P 4 0 R /Rect [150 695 400 715]"
            b" /DA (/F 12 Tf 0 g) /AP << /N 7 0 R >> >>" % value.encode(),
            _stream(appearance, b"/Type /XObject /Subtype /Form /BBox [0 0 250 20] %b" % font),
        ]
    )


def build_pdf(pages: Sequence[Sequence[str]], info: str = "", scanned: Sequence[int] = ()) -> bytes:
    """Return a PDF with lines of text; its font numbers the characters and has a map from numbers to Unicode.

    The pages with the numbers `scanned` show an image.
    """
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
        image = b"q 500 0 0 700 50 50 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q" if number + 1 in scanned else b""
        objects.append(_stream(image + (f"BT /F 12 Tf\n{lines}ET".encode() if page else b"")))
    return write_pdf(objects, info)
