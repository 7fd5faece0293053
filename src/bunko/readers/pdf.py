"""The bytes of a PDF come in, the text of its pages goes out, each under a heading with its number."""

from __future__ import annotations

import io
import logging
import re
import time
import warnings
from typing import TYPE_CHECKING, Any

from bunko.errors import SourceError
from bunko.readers.html.blocks import WIDE_CHARS, escape_markdown
from bunko.text.dates import iso_date
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.types import Text

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_PAGES = 5000
_MAX_CHARS = 20_000_000
_MAX_SECONDS = 300.0  # looked at after each page
_MAX_TITLE_CHARS = 300
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(?:(Z)|([-+]\d\d)'?(\d\d)?'?)?")
# A line as full as its neighbours goes on in the next one.
_FULL_LINE_SHARE = 0.8
_MIN_FULL_LINE_CHARS = 15
_WRAPPED_LINE_END = re.compile(rf"[{WIDE_CHARS}](?<![。．！？」』）】、])\Z")
_WIDE_LINE_START = re.compile(rf"[{WIDE_CHARS}]")

# What programs write where nobody gave a title.
_PLACEHOLDER_TITLE = re.compile(
    r"(?i)(?:untitled|無題|microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?|pptx?|xlsx?|tex))?"
)


def read(data: bytes) -> Text:
    """Return the text of all pages; a SourceError says why there is none."""
    # A damaged file makes it talk, on a log that nobody reads and by warnings.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = _open_reader(data)
        pages = _extract_pages(reader)
        about = _metadata(reader)
    if not any(pages):
        raise SourceError(
            "This PDF has pages, but no text: they are images.",
            hint="Run text recognition over it (ocrmypdf, for one), then import it again.",
        )
    text = "\n\n".join(f"## Page {number}\n\n{page}" for number, page in enumerate(pages, 1) if page)
    title = " ".join(remove_hidden_chars(str(about.get("/Title") or "")).split())[:_MAX_TITLE_CHARS]
    return Text(
        text=text,
        media_type="application/pdf",
        encoding="binary",
        title="" if _PLACEHOLDER_TITLE.fullmatch(title) else title,
        date=_parse_date(str(about.get("/CreationDate") or about.get("/ModDate") or "")),
    )


def _open_reader(data: bytes) -> PdfReader:
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise SourceError(
            "Reading PDF needs the package pypdf, which is not installed.",
            hint='Install it with: pip install "bunko[pdf]"',
        ) from error
    try:
        reader = PdfReader(io.BytesIO(data))
        # Many a PDF is encrypted with an empty password, only to forbid printing.
        locked = reader.is_encrypted and not reader.decrypt("")
    except Exception as error:
        raise _unreadable_error(error) from error
    if locked:
        raise SourceError("This PDF is encrypted.", hint="Save a copy without a password and import that one.")
    return reader


def _extract_pages(reader: PdfReader) -> list[str]:
    """Return the text of each page, "" where it has none."""
    try:
        number = len(reader.pages)
    except Exception as error:
        raise _unreadable_error(error) from error
    if number > _MAX_PAGES:
        raise SourceError(f"This PDF has {number:,} pages, more than {_MAX_PAGES:,}.", hint="Split it into volumes.")
    found: list[str] = []
    size, failed, started = 0, 0, time.monotonic()
    for at in range(number):
        try:
            page = _page_text(reader.pages[at].extract_text() or "")
        except Exception as error:
            # The other pages may be whole.
            failed += 1
            if failed == number:
                raise _unreadable_error(error) from error
            page = ""
        found.append(page)
        size += len(page)
        if size > _MAX_CHARS or time.monotonic() - started > _MAX_SECONDS:
            raise SourceError(
                f"This PDF takes too long to read: page {at + 1} of {number} is as far as it got.",
                hint="Split it, or save its text as a file of its own.",
            )
    return found


def _page_text(page: str) -> str:
    """Return the text of a page, lines that were only wrapped joined where Japanese needs no blank."""
    lines = [line.strip() for line in remove_hidden_chars(page.replace("\r\n", "\n").replace("\r", "\n")).split("\n")]
    # A typical long line: one that is longer than the rest, a footer, must not make all others look short.
    widths = sorted(len(line) for line in lines if line)
    full = max(_MIN_FULL_LINE_CHARS, _FULL_LINE_SHARE * widths[len(widths) * 3 // 4]) if widths else 0
    joined: list[str] = []
    last = ""
    for line in lines:
        if joined and len(last) >= full and _WRAPPED_LINE_END.search(last) and _WIDE_LINE_START.match(line):
            joined[-1] += line
        else:
            joined.append(line)
        last = line
    return escape_markdown(re.sub(r"\n{3,}", "\n\n", "\n".join(joined)).strip())


def _metadata(reader: PdfReader) -> dict[str, Any]:
    try:
        return dict(reader.metadata or {})
    except Exception:  # the pages were read, which is what matters
        return {}


def _parse_date(text: str) -> str:
    """Return ISO 8601 for what PDF writes: D:20240115093000+09'00'."""
    match = _PDF_DATE.match(text.strip())
    if not match:
        return ""
    year, month, day, hour, minute, second, utc, hours, minutes = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    if day and hour:
        zone = "Z" if utc else f"{hours}:{minutes or '00'}" if hours else ""
        return iso_date(f"{date}T{hour}:{minute}:{second or '00'}{zone}") or iso_date(date)
    return iso_date(date)


def _unreadable_error(error: Exception) -> SourceError:
    return SourceError(
        f"This PDF cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}.",
        hint="Open it and save it again, or exclude it.",
    )
