"""Bytes of unknown encoding come in, the text they hold and the codec that reads it go out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bunko.errors import SourceError

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_ESCAPES = re.compile(rb"\x1b(?:\$[@B(]|\([IJ])")
_ISO_2022 = ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004")

# Everything below the space but tab, line ends, form feed and escape (which ISO-2022-JP and terminals use).
_CONTROL = bytes([*range(9), 11, *range(14, 27), *range(28, 32), 127])
_CONTROL_SHARE = 0.1  # real logs stay far below, compressed data and programs far above


def decode(data: bytes) -> tuple[str, str]:
    """Return the text without its byte order mark, and the name of the Python codec that reads it."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            name = codec.removesuffix("-sig").upper()
            return _first(data, (codec,), f"it begins like {name}, but does not go on so")
    controls = len(data) - len(data.translate(None, _CONTROL))
    if controls:
        from bunko.readers import legacy_encodings

        if wide := legacy_encodings.wide(data):
            return wide
    if 0 in data:
        raise _binary("it holds NUL bytes")
    if controls > len(data) * _CONTROL_SHARE:
        raise _binary("it has too many control characters")
    if data.isascii() and _ESCAPES.search(data):
        return _first(data, _ISO_2022, "it has the escape sequences of ISO-2022-JP, but is not valid")
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # Most files never come here, so what it takes to guess is loaded only now.
        from bunko.readers import legacy_encodings

        if found := legacy_encodings.guess(data):
            return found
        if legacy_encodings.looks_like_utf_8(data):
            why = f"it looks like UTF-8, but is cut off or damaged at byte {error.start}"
        else:
            why = f"it is not UTF-8 from byte {error.start} on, and no Japanese or Western encoding fits"
        raise _unreadable(why) from error


def _first(data: bytes, codecs: Sequence[str], why: str) -> tuple[str, str]:
    for codec in codecs:
        try:
            return data.decode(codec), codec
        except UnicodeDecodeError:
            continue
    raise _unreadable(why)


def _binary(why: str) -> SourceError:
    return SourceError(f"This is not text: {why}.", hint="Exclude the file, or save its text as UTF-8.")


def _unreadable(why: str) -> SourceError:
    return SourceError(f"The encoding is not known: {why}.", hint="Save the file as UTF-8.")
