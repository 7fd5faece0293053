"""Read the text of PDF files, with a heading for each page."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from bunko.errors import SourceError
from bunko.readers.reader import Reader
from bunko.text.dates import iso_date
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.types import Text

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_PAGES = 5000
_MAX_CHARS = 20_000_000
_MAX_SECONDS = 300.0  # checked after each page
_MAX_TITLE_CHARS = 300
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(?:(Z)|([-+]\d\d)'?(\d\d)?'?)?")
# A line as long as its neighbours continues on the next line.
_FULL_LINE_SHARE = 0.8
_MIN_FULL_LINE_CHARS = 15

# Titles that programs write when the author gave none.
_PLACEHOLDER_TITLE = re.compile(
    r"(?i)(?:untitled|無題|microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?|pptx?|xlsx?|tex))?"
)


def read(data: bytes) -> Text:
    """Return the text of all pages; raise SourceError if there is none."""
    # pypdf logs and warns about damaged files; the user cannot act on that.
    import logging
    import warnings

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = _open_reader(data)
        pages = _extract_pages(reader)
        metadata = _metadata(reader)
    if not any(pages):
        raise SourceError(
            "The PDF has no text: its pages are images",
            hint="Run text recognition on it, for example with ocrmypdf, then import it again.",
        )
    text = "\n\n".join(f"## Page {page_number}\n\n{page}" for page_number, page in enumerate(pages, 1) if page)
    title = " ".join(remove_hidden_chars(str(metadata.get("/Title") or "")).split())[:_MAX_TITLE_CHARS]
    return Text(
        text=text,
        media_type="application/pdf",
        encoding="binary",
        title="" if _PLACEHOLDER_TITLE.fullmatch(title) else title,
        date=_parse_date(str(metadata.get("/CreationDate") or metadata.get("/ModDate") or "")),
    )


def _open_reader(data: bytes) -> PdfReader:
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise SourceError(
            "Reading PDF files needs the package pypdf, which is not installed",
            hint='Install it with: pip install "bunko[pdf]"',
        ) from error
    import io

    try:
        reader = PdfReader(io.BytesIO(data))
        # Many PDFs are encrypted with an empty password, only to forbid printing.
        is_locked = reader.is_encrypted and not reader.decrypt("")
    except Exception as error:
        raise _unreadable_error(error) from error
    if is_locked:
        raise SourceError("The PDF is encrypted", hint="Save a copy without a password and import that.")
    return reader


def _extract_pages(reader: PdfReader) -> list[str]:
    """Return the text of each page, "" where it has none."""
    try:
        page_count = len(reader.pages)
    except Exception as error:
        raise _unreadable_error(error) from error
    if page_count > _MAX_PAGES:
        raise SourceError(f"The PDF has {page_count:,} pages, more than {_MAX_PAGES:,}", hint="Split it into volumes.")
    pages: list[str] = []
    char_count, failed_count, start_time = 0, 0, time.monotonic()
    for index in range(page_count):
        try:
            page = _page_text(reader.pages[index].extract_text() or "")
        except Exception as error:
            # The other pages may be intact.
            failed_count += 1
            if failed_count == page_count:
                raise _unreadable_error(error) from error
            page = ""
        pages.append(page)
        char_count += len(page)
        if char_count > _MAX_CHARS or time.monotonic() - start_time > _MAX_SECONDS:
            raise SourceError(
                f"The PDF is too large or too slow to read: stopped at page {index + 1} of {page_count}",
                hint="Split it, or save its text as a separate file.",
            )
    return pages


@cache
def _line_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for the end of a wrapped Japanese line, and for the start of the next."""
    # Here: the modules that read HTML are loaded only when a file needs them.
    from bunko.readers.html.blocks import WIDE_CHARS

    return re.compile(rf"[{WIDE_CHARS}](?<![。．！？」』）】、])\Z"), re.compile(rf"[{WIDE_CHARS}]")


def _page_text(page: str) -> str:
    """Return the text of a page, with wrapped Japanese lines joined without a space."""
    from bunko.readers.html.blocks import escape_markdown

    wrapped_line_end, wide_line_start = _line_patterns()
    lines = [line.strip() for line in remove_hidden_chars(page.replace("\r\n", "\n").replace("\r", "\n")).split("\n")]
    # The upper quartile: a single very long line such as a footer must not make all others look short.
    widths = sorted(len(line) for line in lines if line)
    full_width = max(_MIN_FULL_LINE_CHARS, _FULL_LINE_SHARE * widths[len(widths) * 3 // 4]) if widths else 0
    joined_lines: list[str] = []
    previous = ""
    for line in lines:
        if (
            joined_lines
            and len(previous) >= full_width
            and wrapped_line_end.search(previous)
            and wide_line_start.match(line)
        ):
            joined_lines[-1] += line
        else:
            joined_lines.append(line)
        previous = line
    return escape_markdown(re.sub(r"\n{3,}", "\n\n", "\n".join(joined_lines)).strip())


def _metadata(reader: PdfReader) -> dict[str, Any]:
    try:
        return dict(reader.metadata or {})
    except Exception:  # the text is there, which is what matters
        return {}


def _parse_date(text: str) -> str:
    """Return a PDF date (D:20240115093000+09'00') as ISO 8601."""
    match = _PDF_DATE.match(text.strip())
    if not match:
        return ""
    year, month, day, hour, minute, second, utc, zone_hours, zone_minutes = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    if day and hour:
        zone = "Z" if utc else f"{zone_hours}:{zone_minutes or '00'}" if zone_hours else ""
        return iso_date(f"{date}T{hour}:{minute}:{second or '00'}{zone}") or iso_date(date)
    return iso_date(date)


def _unreadable_error(error: Exception) -> SourceError:
    return SourceError(
        f"The PDF cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}",
        hint="Open it and save it again, or exclude it.",
    )


READER = Reader(read, suffixes=(".pdf",), media_type="application/pdf", extra="pdf")
