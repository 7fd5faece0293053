"""The bytes of a PDF come in, the text of its pages goes out, each under a heading with its number."""

from __future__ import annotations

import io
import logging
import re
import time
import warnings
from typing import TYPE_CHECKING, Any

from bunko.errors import SourceError
from bunko.readers.html.blocks import WIDE, escaped
from bunko.text.dates import iso
from bunko.text.hidden_chars import clean
from bunko.types import Text

if TYPE_CHECKING:
    from pypdf import PdfReader

_MOST_PAGES = 5000
_MOST_CHARACTERS = 20_000_000
_SECONDS = 300.0  # looked at after each page
_LONGEST_TITLE = 300
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(?:(Z)|([-+]\d\d)'?(\d\d)?'?)?")
# A line as full as its neighbours goes on in the next one.
_FULL = 0.8
_SHORTEST_LINE = 15
_GOES_ON = re.compile(rf"[{WIDE}](?<![。．！？」』）】、])\Z")
_BEGINS = re.compile(rf"[{WIDE}]")

# What programs write where nobody gave a title.
_NO_TITLE = re.compile(r"(?i)(?:untitled|無題|microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?|pptx?|xlsx?|tex))?")


def read(data: bytes) -> Text:
    """Return the text of all pages; a SourceError says why there is none."""
    # A damaged file makes it talk, on a log that nobody reads and by warnings.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = _opened(data)
        pages = _pages(reader)
        about = _about(reader)
    if not any(pages):
        raise SourceError(
            "This PDF has pages, but no text: they are images.",
            hint="Run text recognition over it (ocrmypdf, for one), then import it again.",
        )
    text = "\n\n".join(f"## Page {number}\n\n{page}" for number, page in enumerate(pages, 1) if page)
    title = " ".join(clean(str(about.get("/Title") or "")).split())[:_LONGEST_TITLE]
    return Text(
        text=text,
        media_type="application/pdf",
        encoding="binary",
        title="" if _NO_TITLE.fullmatch(title) else title,
        date=_date(str(about.get("/CreationDate") or about.get("/ModDate") or "")),
    )


def _opened(data: bytes) -> PdfReader:
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
        raise _broken(error) from error
    if locked:
        raise SourceError("This PDF is encrypted.", hint="Save a copy without a password and import that one.")
    return reader


def _pages(reader: PdfReader) -> list[str]:
    """Return the text of each page, "" where it has none."""
    try:
        number = len(reader.pages)
    except Exception as error:
        raise _broken(error) from error
    if number > _MOST_PAGES:
        raise SourceError(f"This PDF has {number:,} pages, more than {_MOST_PAGES:,}.", hint="Split it into volumes.")
    found: list[str] = []
    size, failed, started = 0, 0, time.monotonic()
    for at in range(number):
        try:
            page = _text(reader.pages[at].extract_text() or "")
        except Exception as error:
            # The other pages may be whole.
            failed += 1
            if failed == number:
                raise _broken(error) from error
            page = ""
        found.append(page)
        size += len(page)
        if size > _MOST_CHARACTERS or time.monotonic() - started > _SECONDS:
            raise SourceError(
                f"This PDF takes too long to read: page {at + 1} of {number} is as far as it got.",
                hint="Split it, or save its text as a file of its own.",
            )
    return found


def _text(page: str) -> str:
    """Return the text of a page, lines that were only wrapped joined where Japanese needs no blank."""
    lines = [line.strip() for line in clean(page.replace("\r\n", "\n").replace("\r", "\n")).split("\n")]
    # A typical long line: one that is longer than the rest, a footer, must not make all others look short.
    widths = sorted(len(line) for line in lines if line)
    full = max(_SHORTEST_LINE, _FULL * widths[len(widths) * 3 // 4]) if widths else 0
    joined: list[str] = []
    last = ""
    for line in lines:
        if joined and len(last) >= full and _GOES_ON.search(last) and _BEGINS.match(line):
            joined[-1] += line
        else:
            joined.append(line)
        last = line
    return escaped(re.sub(r"\n{3,}", "\n\n", "\n".join(joined)).strip())


def _about(reader: PdfReader) -> dict[str, Any]:
    try:
        return dict(reader.metadata or {})
    except Exception:  # the pages were read, which is what matters
        return {}


def _date(written: str) -> str:
    """Return ISO 8601 for what PDF writes: D:20240115093000+09'00'."""
    match = _DATE.match(written.strip())
    if not match:
        return ""
    year, month, day, hour, minute, second, utc, hours, minutes = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    if day and hour:
        zone = "Z" if utc else f"{hours}:{minutes or '00'}" if hours else ""
        return iso(f"{date}T{hour}:{minute}:{second or '00'}{zone}") or iso(date)
    return iso(date)


def _broken(error: Exception) -> SourceError:
    return SourceError(
        f"This PDF cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}.",
        hint="Open it and save it again, or exclude it.",
    )
