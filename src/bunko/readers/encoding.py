"""Decode bytes of unknown encoding."""

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
            return _decode_first_valid(
                data, (codec,), f"it begins with a {name} byte order mark, but is not valid {name}"
            )
    controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
    if controls:
        from bunko.readers import legacy_encodings

        if decoded := legacy_encodings.decode_utf_16(data):
            return decoded
    if 0 in data:
        raise _binary_error("it contains NUL bytes")
    if controls > len(data) * _MAX_CONTROL_SHARE:
        raise _binary_error("it contains too many control characters")
    if data.isascii() and _ISO_2022_ESCAPES.search(data):
        return _decode_first_valid(data, _ISO_2022_CODECS, "it contains ISO-2022-JP escape sequences, but is not valid")
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # Most files never get here, so the patterns for guessing are loaded only now.
        from bunko.readers import legacy_encodings

        if decoded := legacy_encodings.decode_legacy(data):
            return decoded
        if legacy_encodings.looks_like_utf_8(data):
            reason = f"it looks like UTF-8, but is truncated or damaged at byte {error.start}"
        else:
            reason = f"it is not valid UTF-8 at byte {error.start}, and no Japanese, Chinese or Western encoding fits"
        raise _encoding_error(reason) from error


def _decode_first_valid(data: bytes, codecs: Sequence[str], reason: str) -> tuple[str, str]:
    for codec in codecs:
        try:
            return data.decode(codec), codec
        except UnicodeDecodeError:
            continue
    raise _encoding_error(reason)


def _binary_error(reason: str) -> SourceError:
    return SourceError(f"The file is not text: {reason}", hint="Exclude the file, or save its text as UTF-8.")


def _encoding_error(reason: str) -> SourceError:
    return SourceError(f"The encoding of the file is unknown: {reason}", hint="Save the file as UTF-8.")
