"""Extract the lines of PDF files; `process` runs this file in a process of its own.

It must not import bunko. Requests are read from stdin and answered on stdout, each message as its length in four bytes
and its content: a request is a PDF, an answer one JSON object for the document, one for each page, and one at the end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from statistics import median
from typing import Any, BinaryIO

_MAX_OUTLINE_ENTRIES = 20_000
_MAX_OUTLINE_LEVEL = 15
_MIN_LINE_CHARS = 40  # a shorter line counts as one of this length: its size and box need memory too
_SIZE_SAMPLES = 5  # characters of a line whose sizes are compared


def main(max_pages: int, max_chars: int, max_bytes: int) -> None:
    """Answer requests until stdin ends, with a limit of the address space where the system has one."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.read(4):
        data = requests.read(int.from_bytes(header, "big"))
        try:
            for message in extract_messages(data, max_pages, max_chars):
                write_message(answers, message)
        except MemoryError:
            write_message(answers, {"error": "memory"})
        except Exception as error:  # anything may come of a damaged file
            write_message(answers, {"error": "broken", "reason": f"{error}"[:200]})
        answers.flush()


def write_message(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write a message with its length."""
    data = json.dumps(message).encode()
    stream.write(len(data).to_bytes(4, "big") + data)


def extract_messages(data: bytes, max_pages: int, max_chars: int) -> Iterator[dict[str, Any]]:
    """Yield the metadata of the document, then the lines of each page."""
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD
        yield {"error": "password"} if is_locked else {"error": "broken", "reason": str(error)}
        return
    with document:
        page_count = len(document)
        yield {"pages": page_count, "metadata": document.get_metadata_dict(), "outline": _outline(document)}
        chars_left = max_chars
        has_forms = _open_forms(document)
        for index in range(page_count if page_count <= max_pages else 0):
            try:
                page = _load_page(document, index, with_fields=has_forms)
                text_page = page.get_textpage()
            except pypdfium2.PdfiumError:  # the other pages may be intact
                yield {"lines": None}
                continue
            lines = list(_lines(pdfium, text_page, chars_left))
            is_image = not lines and _has_image(pdfium, page)
            text_page.close()
            page.close()
            yield {"lines": lines, "is_image": is_image}
            chars_left -= sum(max(len(line[0]), _MIN_LINE_CHARS) for line in lines)
            if chars_left <= 0:
                break
    yield {"end": True}


def _open_forms(document: Any) -> bool:
    """Return whether the document has fields that a reader may have filled in."""
    with suppress(Exception):  # the text around damaged fields may be intact
        document.init_forms()
        return document.formenv is not None
    return False


def _load_page(document: Any, index: int, *, with_fields: bool) -> Any:
    """Return a page; the contents of its fields become part of its text."""
    page = document[index]
    if with_fields:
        with suppress(Exception):
            page.flatten()
        page.close()
        page = document[index]
    return page


def _has_image(pdfium: Any, page: Any) -> bool:
    """Return whether a page shows an image, as a scanned one does and an empty one does not."""
    with suppress(Exception):  # damaged objects are no reason to lose the page
        return any(True for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE]))
    return False


def _outline(document: Any) -> list[tuple[int, str, int]]:
    """Return level, title and page of each bookmark, both counted from 0."""
    entries: list[tuple[int, str, int]] = []
    with suppress(Exception):  # a damaged outline is no loss
        for bookmark in document.get_toc(max_depth=_MAX_OUTLINE_LEVEL):
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            if page is not None:
                entries.append((bookmark.level, bookmark.get_title(), page))
            if len(entries) >= _MAX_OUTLINE_ENTRIES:
                break
    return entries


def _lines(pdfium: Any, text_page: Any, max_chars: int) -> Iterator[tuple[str, float, list[float]]]:
    """Yield text, font size and box of each line, in the order of the text."""
    handle = text_page.raw
    count = min(pdfium.FPDFText_CountChars(handle), max_chars)
    get_char = pdfium.FPDFText_GetUnicode
    codes = [get_char(handle, index) for index in range(count)]
    start = 0
    for index, code in enumerate([*codes, 0x0A]):
        if code != 0x0A:
            continue
        positions = [position for position in range(start, index) if codes[position] not in (0x0D, 0x20, 0xA0, 0)]
        start, first = index + 1, start
        if positions:
            yield _decode(codes[first:index]), _font_size(pdfium, handle, positions), _box(text_page, positions)


def _decode(codes: list[int]) -> str:
    """Return the text of UTF-16 units or code points."""
    units = "".join(map(chr, (code for code in codes if code < 0x110000)))
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _font_size(pdfium: Any, handle: Any, positions: list[int]) -> float:
    step = max(1, len(positions) // _SIZE_SAMPLES)
    matrix = pdfium.FS_MATRIX()
    sizes: list[float] = []
    for position in positions[::step]:
        size = pdfium.FPDFText_GetFontSize(handle, position)
        if pdfium.FPDFText_GetMatrix(handle, position, matrix):
            size *= (matrix.c**2 + matrix.d**2) ** 0.5
        sizes.append(size)
    return round(median(sizes), 1)


def _box(text_page: Any, positions: list[int]) -> list[float]:
    """Return left, bottom, right and top of a line."""
    boxes = [text_page.get_charbox(position, loose=True) for position in {positions[0], positions[-1]}]
    low, high = (
        [round(pick(box[side] for box in boxes), 1) for side in sides] for pick, sides in ((min, (0, 1)), (max, (2, 3)))
    )
    return [*low, *high]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
