"""Decode bytes whose encoding is named, as in mail, where the name is often not quite true."""

from __future__ import annotations

import codecs
import re

from bunko.errors import SourceError
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
