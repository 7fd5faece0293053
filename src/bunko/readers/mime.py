"""Split a mail message into its headers and the texts of its parts."""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterator
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from typing import NamedTuple

from bunko.errors import SourceError
from bunko.readers import html
from bunko.readers.encoding import decode

# What is called by these names is written with the wider set that contains it.
_WIDER_CODECS = {
    "shift_jis": "cp932", "iso8859-1": "cp1252", "ascii": "utf-8", "gb2312": "gb18030", "gbk": "gb18030",
    "euc_kr": "cp949", "big5": "cp950", "iso8859-9": "cp1254", "tis-620": "cp874",
}  # fmt: skip
_JIS_SEGMENT = re.compile(rb"\x1b(\$[@B]|\$\([@BDOPQ]|\([BJIH])([^\x1b]*)")
_TWO_BYTES = re.compile(rb"[\x21-\x7e]{2}")


def decode_charset(data: bytes, charset: str) -> str:
    """Decode with the named encoding, else with what the bytes look like; never fails."""
    try:
        codec = codecs.lookup(charset.strip("\"' ")).name if charset else ""
    except (LookupError, ValueError):
        codec = ""
    if codec.startswith("iso2022_jp") or (not codec and b"\x1b$" in data):
        return _decode_iso_2022_jp(data)
    if codec and codec not in ("idna", "punycode", "utf-7"):
        try:
            text = data.decode(_WIDER_CODECS.get(codec, codec))
        except (UnicodeError, LookupError, AssertionError):  # also codecs that are not of text
            pass
        else:
            if isinstance(text, str):
                return text
    if codec == "utf-7":
        return data.decode(codec, "replace")
    try:
        return decode(data)[0]
    except SourceError:
        return data.decode("utf-8", "replace")


def _decode_iso_2022_jp(data: bytes) -> str:
    """Decode ISO-2022-JP with the characters of vendors (①, ㈱) and half-width katakana, which the codecs refuse."""
    for codec in ("iso2022_jp", "iso2022_jp_ext"):
        try:
            return data.decode(codec)
        except UnicodeDecodeError:
            continue
    first = data.find(b"\x1b")
    parts = [data[:first].decode("ascii", "replace")] if first > 0 else []
    for escape, segment in _JIS_SEGMENT.findall(data):
        if escape == b"(I":
            parts.append(bytes(byte | 0x80 for byte in segment).decode("cp932", "replace"))
        elif escape.startswith(b"$") and escape not in (b"$(D", b"$(O", b"$(P", b"$(Q"):
            parts.append(_TWO_BYTES.sub(lambda pair: _to_shift_jis(pair[0]), segment).decode("cp932", "replace"))
        else:
            parts.append(segment.decode("ascii" if not escape.startswith(b"$") else "utf-8", "replace"))
    return "".join(parts)


def _to_shift_jis(pair: bytes) -> bytes:
    """Return two bytes of JIS as Shift_JIS."""
    row, cell = pair[0] - 0x21, pair[1] - 0x21
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = cell + 0x9F if row % 2 else cell + (0x40 if cell < 63 else 0x41)
    return bytes((lead, trail))


# The library of Python reads the parts of a message recursively and parses headers of any length; a message that was
# made for that could take hours. So its parser sees one short block of headers at a time, and we find the parts.
_MAX_HEADER_BYTES = 128 * 1024
_MAX_HEADER_CHARS = 4000  # of one header
_MAX_PARAMETER_CHARS = 1000  # of a header with parameters
_MAX_DEPTH = 10
_MAX_PARTS = 200
_MAX_PART_BYTES = 20_000_000
_MAX_TEXT_CHARS = 5_000_000  # of all parts

_BLANK_LINE = re.compile(rb"\r?\n\r?\n|\A\r?\n")
_LINE_END = re.compile(rb"[ \t]*(?:\r?\n|\Z)")
_ENCODED_WORD = "=?"
_TEXT_TYPES = frozenset(("text/plain", "text/html", "text/markdown", "text/csv", "text/x-markdown", "text/enriched"))
_FILE_HEADER = re.compile(rb"[!-9;-~]{1,100}[ \t]*:")


class Part(NamedTuple):
    """A text of a message."""

    text: str
    is_html: bool
    name: str  # of an attached file; empty: it is the message itself


class MimeMessage:
    """A message: its headers, decoded, and its texts."""

    def __init__(self, data: bytes) -> None:
        self._data = data.lstrip(b"\r\n")
        self._headers, self._body_start = _parse_headers(self._data)

    @property
    def has_headers(self) -> bool:
        """Whether the data begin with headers at all."""
        return bool(self._headers.keys()) and _FILE_HEADER.match(self._data) is not None

    def header(self, name: str) -> str:
        """Return a header on one line, or an empty string."""
        return _decoded_header(self._headers, name)

    def texts(self) -> list[Part]:
        """Return the texts that a reader would see: of two forms of one text the plain one, and attached texts."""
        return list(_Walk().parts(self._headers, self._data[self._body_start :], 0))


def _parse_headers(data: bytes) -> tuple[Message, int]:
    """Return the headers at the beginning of a message, and where its body begins."""
    blank = _BLANK_LINE.search(data, 0, _MAX_HEADER_BYTES)
    if blank:
        block, body_start = data[: blank.start()], blank.end()
    elif len(data) <= _MAX_HEADER_BYTES:
        block, body_start = data, len(data)
    else:
        block = data[: data.rfind(b"\n", 0, _MAX_HEADER_BYTES) + 1]
        rest = _BLANK_LINE.search(data, len(block))
        body_start = rest.end() if rest else len(data)
    try:
        headers = BytesHeaderParser().parsebytes(block)
    except (ValueError, IndexError, UnicodeError):
        return Message(), body_start
    # The time to find the parameters of a header grows with the square of its length.
    for name in ("content-type", "content-disposition"):
        if len(value := str(headers.get(name) or "")) > _MAX_PARAMETER_CHARS:
            headers.replace_header(name, value[:_MAX_PARAMETER_CHARS])
    return headers, body_start


def _decoded_header(headers: Message, name: str) -> str:
    """Return a header on one line, or an empty string."""
    folded_name = name.casefold()
    return next((_decode_words(str(value)) for key, value in headers.raw_items() if key.casefold() == folded_name), "")


def _decode_words(value: str) -> str:
    """Return a header with its encoded words decoded, on one line."""
    # Bytes outside ASCII, which no header may have, arrive as surrogates.
    raw = value[:_MAX_HEADER_CHARS].encode("utf-8", "surrogateescape")
    value = raw.decode("ascii") if raw.isascii() else decode_charset(raw, "")
    if _ENCODED_WORD not in value:
        return " ".join(value.split())
    try:
        # Blanks between two encoded words are not part of the text, and the decoder needs each word to end at one.
        parts = decode_header(" ".join(value.split()))
    except (ValueError, binascii.Error):
        return " ".join(value.split())
    plain_codec = "ascii" if value.isascii() else "raw-unicode-escape"  # what the decoder makes of text between words
    decoded = (
        part
        if isinstance(part, str)
        else decode_charset(part, charset)
        if charset
        else part.decode(plain_codec, "replace")
        for part, charset in parts
    )
    return " ".join("".join(decoded).split())


class _Walk:
    """Visits the parts of one message, within limits for all of them together."""

    def __init__(self) -> None:
        self._parts_left = _MAX_PARTS
        self._chars_left = _MAX_TEXT_CHARS

    def parts(self, headers: Message, body: bytes, depth: int) -> Iterator[Part]:
        self._parts_left -= 1
        if self._parts_left < 0 or self._chars_left <= 0 or depth > _MAX_DEPTH:
            return
        content_type = headers.get_content_type()
        boundary = _parameter(headers, "boundary")
        if content_type.startswith("multipart/") and boundary:
            sections = [_parse_section(section) for section in _split_parts(body, boundary, self._parts_left)]
            if content_type == "multipart/digest":
                for section_headers, _ in sections:
                    section_headers.set_default_type("message/rfc822")
            elif content_type == "multipart/alternative":
                sections = _best_alternative(sections)
            for section_headers, section_body in sections:
                yield from self.parts(section_headers, section_body, depth + 1)
        elif content_type == "message/rfc822":
            inner_headers, inner_body = _parse_section(_decode_transfer(headers, body).lstrip(b"\r\n"))
            labels = ((name, _decoded_header(inner_headers, name)) for name in ("Subject", "From"))
            if label := "\n".join(f"{name}: {value}" for name, value in labels if value):
                yield Part(label, is_html=False, name="")
            yield from self.parts(inner_headers, inner_body, depth + 1)
        elif content_type in _TEXT_TYPES:
            yield from self._text(headers, body, is_html=content_type == "text/html")

    def _text(self, headers: Message, body: bytes, *, is_html: bool) -> Iterator[Part]:
        data = _decode_transfer(headers, body[:_MAX_PART_BYTES])
        charset = _parameter(headers, "charset")
        if is_html:
            data = data[: self._chars_left]
            text = html.read(data, charset=charset).text.text
            self._chars_left -= len(data) - min(len(text), len(data))  # to read tags takes longer than their text
        else:
            text = decode_charset(data[: 4 * self._chars_left], charset)
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            if _parameter(headers, "format").casefold() == "flowed":
                text = _unwrap_flowed(text, keep_space=_parameter(headers, "delsp").casefold() != "yes")
        text = text[: self._chars_left]
        self._chars_left -= len(text)
        if text.strip():
            yield Part(text, is_html, _file_name(headers))


def _parse_section(section: bytes) -> tuple[Message, bytes]:
    """Return the headers of a part, and its body."""
    headers, body_start = _parse_headers(section)
    return headers, section[body_start:]


def _split_parts(body: bytes, boundary: str, limit: int) -> list[bytes]:
    """Return the parts between the lines that begin with a boundary; a missing last boundary is forgiven."""
    name = re.escape(boundary.encode("utf-8", "surrogateescape"))
    mark = re.compile(rb"(?<![^\n])--" + name + rb"(--)?" + _LINE_END.pattern)
    sections: list[bytes] = []
    start = -1
    for match in mark.finditer(body):
        if start >= 0:
            sections.append(body[start : match.start()])
        start = match.end()
        if match[1] or len(sections) >= limit:
            return sections
    if start >= 0:
        sections.append(body[start:])
    return sections


def _best_alternative(sections: list[tuple[Message, bytes]]) -> list[tuple[Message, bytes]]:
    """Return the plain text if there is one that says anything, else the last form that holds text."""
    for headers, body in sections:
        if headers.get_content_type() == "text/plain" and _decode_transfer(headers, body[:_MAX_PART_BYTES]).strip():
            return [(headers, body)]
    readable = [
        section
        for section in sections
        if section[0].get_content_type() in _TEXT_TYPES or section[0].get_content_maintype() == "multipart"
    ]
    return readable[-1:]


def _decode_transfer(headers: Message, body: bytes) -> bytes:
    encoding = str(headers.get("content-transfer-encoding") or "").strip().casefold()
    if encoding == "base64":
        # Characters that do not belong there are skipped, and a part that is cut off is read up to its end.
        clean = re.sub(rb"[^A-Za-z0-9+/]", b"", body)
        return binascii.a2b_base64(clean[: len(clean) - len(clean) % 4] + _rest_of_base64(clean))
    if encoding == "quoted-printable":
        return binascii.a2b_qp(body)
    return body


def _rest_of_base64(clean: bytes) -> bytes:
    rest = clean[len(clean) - len(clean) % 4 :]
    return rest + b"=" * (4 - len(rest)) if len(rest) > 1 else b""


def _parameter(headers: Message, name: str) -> str:
    """Return a parameter of the content type."""
    try:
        value = headers.get_param(name, "")
    except (ValueError, IndexError, UnicodeError):
        return ""
    return (value[2] if isinstance(value, tuple) else str(value or "")).strip()[:1000]


def _file_name(headers: Message) -> str:
    try:
        name = headers.get_filename() or ""
    except (ValueError, IndexError, UnicodeError, LookupError):
        return ""
    return _decode_words(str(name))[:200]


def _unwrap_flowed(text: str, *, keep_space: bool) -> str:
    """Join the lines of flowed text (RFC 3676): a line that ends in a space goes on in the next one."""
    paragraphs: list[list[str]] = []
    last_depth, goes_on = 0, False
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip(">"))
        words = line[depth:].removeprefix(" ")
        is_signature_mark = words == "-- "
        if goes_on and depth == last_depth and not is_signature_mark:
            if not keep_space:
                paragraphs[-1][-1] = paragraphs[-1][-1].removesuffix(" ")
            paragraphs[-1].append(words)
        else:
            paragraphs.append([line if depth else words])
        last_depth, goes_on = depth, words.endswith(" ") and not is_signature_mark
    return "\n".join("".join(paragraph) for paragraph in paragraphs)
