"""Read mail messages and mailboxes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from bunko.errors import SourceError
from bunko.readers.reader import Reader
from bunko.text.labels import remove_hidden_chars
from bunko.text.tags import parse_tags
from bunko.types import Text

if TYPE_CHECKING:
    from bunko.readers.mime import Part

MEDIA_TYPE = "message/rfc822"
MAILBOX_SUFFIXES = (".mbox",)
_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
_MAX_HEADER_CHARS = 500  # a message to hundreds of people is not about them
_MAX_TITLE_CHARS = 300
_MAX_SIGNATURE_LINES = 10  # more text than that after the dashes is no signature
_READ_BYTES = 64 * 1024  # of a line at a time
# Labels of Gmail that say where a message is, not what it is about.
_FOLDER_LABELS = frozenset(
    "inbox sent unread opened starred important archived trash spam draft drafts chat all".split()
)

# The date is as C writes it; without it, a paragraph that begins with "From" would begin a message.
_SEPARATOR = re.compile(rb"From \S+[ \t]+(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?[ \t].{0,40}\d\d:\d\d.{0,20}\d{4}")
_QUOTED_SEPARATOR = re.compile(rb"(?m)^>(>*From )")
_BLANK_RUN = re.compile(r"\n{3,}")


class MailboxMessage(NamedTuple):
    """A message of a mailbox: its lines, and its bytes up to a limit."""

    first_line: int  # counted from 1, both inclusive
    last_line: int
    data: bytes


def read_message(data: bytes) -> Text:
    """Return the headers that people read and the texts of a message; raise SourceError if it is none."""
    from bunko.readers.mime import MimeMessage  # here: the modules of Python that read mail take time to load

    message = MimeMessage(data)
    if not message.has_headers:
        raise SourceError("The file is not a mail message: it has no headers", hint="Rename it to .txt, or exclude it.")
    subject = remove_hidden_chars(message.header("Subject"))
    labels = message.header("X-Gmail-Labels") or message.header("X-Keywords") or message.header("Keywords")
    lines = [f"Subject: {subject}"] if subject else []
    for name in _SHOWN_HEADERS:
        if value := remove_hidden_chars(message.header(name))[:_MAX_HEADER_CHARS]:
            lines.append(f"{name}: {value}")
    body = "\n\n".join(_part_text(part) for part in message.texts())
    text = "\n".join(lines) + f"\n\n{body}" if body.strip() else "\n".join(lines)
    return Text(
        text=text.strip("\n"),
        media_type=MEDIA_TYPE,
        encoding="binary",
        title=subject[:_MAX_TITLE_CHARS],
        date=_iso_date(message.header("Date")),
        tags=tuple(label for label in parse_tags(labels.split(",")) if label not in _FOLDER_LABELS),
    )


def read_file(data: bytes) -> Text:
    """Read a message, or all messages of a mailbox as one text."""
    if not data.startswith(b"From "):
        return read_message(data)
    texts = [text for text in (_try_read(message.data) for message in split_mailbox(io.BytesIO(data))) if text]
    if not texts:
        raise SourceError("The mailbox has no messages", hint="Exclude it, or export it again.")
    return Text("\n\n".join(text.text for text in texts), MEDIA_TYPE, "binary", texts[0].title, texts[0].date)


def split_mailbox(file: BinaryIO, max_bytes: int = 20_000_000) -> Iterator[MailboxMessage]:
    """Yield the messages of a mailbox in order; of a longer message only the first `max_bytes` are kept.

    A message begins with a line "From sender date" at the beginning of the file or after a blank line. Its own lines
    that begin so are quoted with ">".
    """
    block: list[bytes] = []
    size = line_number = first_line = 0
    is_after_blank = True
    for line, begins_line in _lines(file):
        line_number += begins_line
        if begins_line and is_after_blank and _SEPARATOR.match(line):
            if first_line:
                yield MailboxMessage(first_line, line_number - 1, _unquote(block))
            block, size, first_line = [], 0, line_number
        elif first_line and size <= max_bytes:
            block.append(line)
            size += len(line)
        if begins_line:
            is_after_blank = not line.strip()
    if first_line:
        yield MailboxMessage(first_line, line_number, _unquote(block))


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield lines, long ones in pieces, and whether each piece begins a line."""
    begins_line = True
    while line := file.readline(_READ_BYTES):
        yield line, begins_line
        begins_line = line.endswith(b"\n")


def _unquote(block: Iterable[bytes]) -> bytes:
    return _QUOTED_SEPARATOR.sub(rb"\1", b"".join(block))


def _try_read(data: bytes) -> Text | None:
    try:
        return read_message(data)
    except SourceError:
        return None


def _part_text(part: Part) -> str:
    text = remove_hidden_chars(part.text)
    if not part.is_html and not part.name:
        text = _without_signature(text)
    text = _BLANK_RUN.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip("\n")
    return f"Attachment: {remove_hidden_chars(part.name)}\n\n{text}" if part.name else text


def _without_signature(text: str) -> str:
    """Remove the lines after the last one of two dashes and a space, if it is short and is not all there is."""
    before, mark, signature = f"\n{text}".rpartition("\n-- \n")
    is_signature = mark and before.strip() and signature.strip("\n").count("\n") < _MAX_SIGNATURE_LINES
    return before.removeprefix("\n") if is_signature else text


def _iso_date(header: str) -> str:
    """Return the date of a message as ISO 8601, in its own zone."""
    from email.utils import parsedate_tz

    try:
        parts = parsedate_tz(header[:200])
        if parts is None:
            return ""
        zone = timezone(timedelta(seconds=parts[9] or 0))
        return datetime(*parts[:6], tzinfo=zone).isoformat(timespec="seconds")
    except (ValueError, TypeError, OverflowError, IndexError):
        return ""


READER = Reader(
    read_file,
    suffixes=(".eml", *MAILBOX_SUFFIXES),
    media_type=MEDIA_TYPE,
    default_suffixes=(".eml", *MAILBOX_SUFFIXES),
    label="mail",
)
