"""Bytes of unknown encoding come in, the text they hold and the codec that reads it go out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bunko.errors import SourceError

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_ISO_2022_ESCAPES = re.compile(rb"\x1b(?:\$[@B(]|\([IJ])")
_ISO_2022_CODECS = ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004")

# Everything below the space but tab, line ends, form feed and escape (which ISO-2022-JP and terminals use).
_CONTROL_BYTES = bytes([*range(9), 11, *range(14, 27), *range(28, 32), 127])
_MAX_CONTROL_SHARE = 0.1  # real logs stay far below, compressed data and programs far above


def decode(data: bytes) -> tuple[str, str]:
    """Return the text without its byte order mark, and the name of the Python codec that reads it."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            name = codec.removesuffix("-sig").upper()
            return _decode_first_valid(data, (codec,), f"it begins like {name}, but does not go on so")
    controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
    if controls:
        from bunko.readers import legacy_encodings

        if wide := legacy_encodings.decode_utf_16(data):
            return wide
    if 0 in data:
        raise _binary_error("it holds NUL bytes")
    if controls > len(data) * _MAX_CONTROL_SHARE:
        raise _binary_error("it has too many control characters")
    if data.isascii() and _ISO_2022_ESCAPES.search(data):
        return _decode_first_valid(
            data, _ISO_2022_CODECS, "it has the escape sequences of ISO-2022-JP, but is not valid"
        )
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # Most files never come here, so what it takes to guess is loaded only now.
        from bunko.readers import legacy_encodings

        if found := legacy_encodings.decode_legacy(data):
            return found
        if legacy_encodings.looks_like_utf_8(data):
            why = f"it looks like UTF-8, but is cut off or damaged at byte {error.start}"
        else:
            why = f"it is not UTF-8 from byte {error.start} on, and no Japanese or Western encoding fits"
        raise _encoding_error(why) from error


def _decode_first_valid(data: bytes, codecs: Sequence[str], reason: str) -> tuple[str, str]:
    for codec in codecs:
        try:
            return data.decode(codec), codec
        except UnicodeDecodeError:
            continue
    raise _encoding_error(reason)


def _binary_error(reason: str) -> SourceError:
    return SourceError(f"This is not text: {reason}.", hint="Exclude the file, or save its text as UTF-8.")


def _encoding_error(reason: str) -> SourceError:
    return SourceError(f"The encoding is not known: {reason}.", hint="Save the file as UTF-8.")
