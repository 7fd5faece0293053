"""Read the text of PDF files, with a heading for each page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bunko.errors import SourceError
from bunko.readers.reader import Reader
from bunko.runtime.installation import install_command
from bunko.text.dates import iso_date
from bunko.text.labels import clean_title
from bunko.types import Text

if TYPE_CHECKING:
    from bunko.types import Text

_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(?:(Z)|([-+]\d\d)'?(\d\d)?'?)?")

_OCR_HINT = "Run text recognition on it, for example with ocrmypdf, then import it again."
_MAX_RANGES = 20  # of pages that are listed


def read(data: bytes) -> Text:
    """Return the text of all pages; raise SourceError if there is none."""
    from bunko.readers.pdf import layout, process

    if not READER.is_available():
        raise SourceError(
            "Reading PDF files needs the package pypdfium2, which is not installed",
            hint=f"Install it with: {install_command(package=READER.package)}",
        )
    messages = process.extract(data)
    _check_errors(messages, process.MAX_PAGES, process.MAX_CHARS)
    document, page_messages = messages[0], [message for message in messages if "lines" in message]
    pages = [message["lines"] for message in page_messages]
    text = layout.markdown(
        [[layout.Line(line, size, *box) for line, size, box in page or ()] for page in pages],
        [tuple(entry) for entry in document["outline"]],
    )
    if not text:
        if pages and all(page is None for page in pages):
            raise _unreadable_error("none of its pages can be loaded")
        raise SourceError(
            "The PDF has no text: its pages are images",
            hint=_OCR_HINT,
        )
    scanned = [number for number, message in enumerate(page_messages, 1) if message.get("is_image")]
    metadata = document["metadata"]
    return Text(
        text=text,
        media_type="application/pdf",
        encoding="binary",
        title=clean_title(metadata.get("Title") or ""),
        date=_parse_date(metadata.get("CreationDate") or metadata.get("ModDate") or ""),
        missing=_describe_scanned(scanned),
    )


def _describe_scanned(numbers: list[int]) -> str:
    """Return which pages have no text because they are images, and what to do; empty if there are none."""
    if not numbers:
        return ""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    ranges = [f"{start}" if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]
    listed = ", ".join(ranges[:_MAX_RANGES]) + (", …" if len(ranges) > _MAX_RANGES else "")
    pages = "page" if len(numbers) == 1 else "pages"
    return f"no text on {pages} {listed}: scanned images\n{_OCR_HINT}"


def _check_errors(messages: list[dict[str, Any]], max_pages: int, max_chars: int) -> None:
    last = messages[-1]
    if last.get("error") == "password":
        raise SourceError("The PDF is encrypted", hint="Save a copy without a password and import that.")
    if "error" in last:
        raise _unreadable_error(last.get("reason") or "it needs too much memory")
    page_count = messages[0]["pages"]
    if page_count > max_pages:
        raise SourceError(f"The PDF has {page_count:,} pages, more than {max_pages:,}", hint="Split it into volumes.")
    if len(messages) - 2 < page_count:
        raise SourceError(
            f"The PDF has more than {max_chars:,} characters: stopped at page {len(messages) - 2} of {page_count}",
            hint="Split it, or save its text as a separate file.",
        )


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


def _unreadable_error(reason: str) -> SourceError:
    return SourceError(
        f"The PDF cannot be read: {' '.join(reason.split())[:200]}", hint="Open it and save it again, or exclude it."
    )


READER = Reader(
    read,
    suffixes=(".pdf",),
    media_type="application/pdf",
    default_suffixes=(".pdf",),
    package="pypdfium2",
    label="PDF",
)
