"""Decode the bytes of a web page.

The order is that of the HTML standard: byte order mark, server, the page's own declaration, then a guess. A
declaration that does not fit the bytes loses to a guess that does.
"""

from __future__ import annotations

import codecs
import re

from bunko.errors import SourceError
from bunko.readers import encoding

_HEAD_BYTES = 4096  # bytes; the standard asks for 1024, but some pages begin with long comments
_META_CHARSET = re.compile(rb"(?i)<meta[^>]{0,1000}?charset\s*=\s*[\"']?\s*([^\s\"'/>;]{1,40})")
_XML_ENCODING = re.compile(rb"(?i)\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"']{1,40})")
_COMMENT = re.compile(rb"(?s)<!--.*?(?:-->|\Z)")
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

# The plain codec first, then wider ones with the characters that vendors added.
_SHIFT_JIS = ("cp932", "shift_jis_2004")
_EUC_JP = ("euc_jp", "euc_jis_2004")
_ISO_2022_JP = ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004")
_WESTERN = ("cp1252",)
_CODECS_BY_LABEL = {
    "utf-8": ("utf-8",), "utf8": ("utf-8",), "unicode-1-1-utf-8": ("utf-8",),
    "utf-16": ("utf-16-le",), "utf-16le": ("utf-16-le",), "utf-16be": ("utf-16-be",),
    "shift_jis": _SHIFT_JIS, "shift-jis": _SHIFT_JIS, "sjis": _SHIFT_JIS, "x-sjis": _SHIFT_JIS, "ms_kanji": _SHIFT_JIS,
    "csshiftjis": _SHIFT_JIS, "windows-31j": _SHIFT_JIS, "cp932": _SHIFT_JIS, "ms932": _SHIFT_JIS,
    "euc-jp": _EUC_JP, "x-euc-jp": _EUC_JP, "eucjp": _EUC_JP, "x-euc": _EUC_JP, "cseucpkdfmtjapanese": _EUC_JP,
    "iso-2022-jp": _ISO_2022_JP, "csiso2022jp": _ISO_2022_JP, "jis": _ISO_2022_JP,
    "iso-8859-1": _WESTERN, "iso8859-1": _WESTERN, "latin1": _WESTERN, "us-ascii": _WESTERN, "ascii": _WESTERN,
    "windows-1252": _WESTERN, "gb2312": ("gb18030",), "gbk": ("gb18030",), "x-gbk": ("gb18030",),
    "big5": ("big5hkscs",), "euc-kr": ("cp949",), "ks_c_5601-1987": ("cp949",), "x-user-defined": (),
}  # fmt: skip
# Python codecs that no page may declare: what looks like plain text in them may be something else.
_REFUSED_CODECS = frozenset(
    ("utf_7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem")
)
_THREE_BYTE_CHAR = re.compile("[\u0800-\uffff]")
_MIN_THREE_BYTE_CHARS = 3  # so many three-byte characters without a wrong byte are no accident


def decode(data: bytes, charset: str = "") -> tuple[str, str]:
    """Return the text and its codec; never fails, since undecodable bytes become U+FFFD."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace"), codec
    declared = _find_codecs(charset)
    if not declared:
        head = _COMMENT.sub(b"", data[:_HEAD_BYTES])
        match = _META_CHARSET.search(head) or _XML_ENCODING.match(head)
        declared = _find_codecs(match[1].decode("ascii", "ignore") if match else "")
        # A declaration that was readable as ASCII cannot be in UTF-16, even if it says so.
        declared = ("utf-8",) if declared and declared[0].startswith("utf-16") else declared
    if declared and declared[0] != "utf-8" and (text := _decode_certain_utf_8(data)) is not None:
        return text, "utf-8"
    if declared != _WESTERN:
        for codec in declared:
            text = _decode_strict(data, codec)
            if text is not None:
                return text, codec
    if declared == ("utf-8",) and encoding.looks_like_utf_8(data):
        return data.decode("utf-8", "replace"), "utf-8"
    # Unconfigured servers declare everything as Western, in which any bytes are valid.
    try:
        return encoding.decode(data)
    except SourceError:
        codec = declared[0] if declared else "utf-8"
        return data.decode(codec, "replace"), codec


def is_known_charset(label: str) -> bool:
    """Return whether there is a codec for a charset label."""
    return bool(_find_codecs(label))


def _find_codecs(label: str) -> tuple[str, ...]:
    """Return the codecs to try for a label, or () if it is unknown."""
    name = label.strip().strip("\"'").lower()
    if not name or name in _CODECS_BY_LABEL:
        return _CODECS_BY_LABEL.get(name, ())
    try:
        codec_name = codecs.lookup(name).name
        b"".decode(codec_name)  # some Python codecs do not decode to text
    except (LookupError, ValueError, TypeError):
        return ()
    return () if codec_name.replace("-", "_") in _REFUSED_CODECS else (codec_name,)


def _decode_certain_utf_8(data: bytes) -> str | None:
    """Return the text if it is certainly UTF-8, else None."""
    if data.isascii():
        return None
    text = _decode_strict(data, "utf-8")
    if text is None or len(_THREE_BYTE_CHAR.findall(text[:100_000])) < _MIN_THREE_BYTE_CHARS:
        return None
    return text


def _decode_strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError):
        return None
