"""An open file comes in, its lines as text go out: of a large one only a few are in memory at a time."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from io import IncrementalNewlineDecoder
from typing import BinaryIO, NamedTuple

from bunko.errors import SourceError
from bunko.readers.encoding import decode
from bunko.readers.memo import collapse_line_ends

# Bytes that are read at once: a file of at most as many is one block.
MAX_READ_BYTES = 4_000_000
_BLOCK_BYTES = 1_000_000
# Where a file is damaged, what most of it is written in; and how much of it may be none of that.
_DAMAGE_LIMITS = {"utf-8": 0.05, "cp932": 0.05, "euc_jp": 0.05}
# The same where a file begins with a mark. Of any bytes whatever, 97 % are characters of UTF-16.
_DAMAGE_LIMITS_BY_MARK = {BOM_UTF8: {"utf-8-sig": 0.05}, BOM_UTF16_LE: {"utf-16": 0.01}, BOM_UTF16_BE: {"utf-16": 0.01}}
_CONTROL_REPLACEMENTS = dict.fromkeys((*range(9), 11, *range(14, 27), *range(28, 32), 127), "\ufffd")


class DecodedLines(NamedTuple):
    """The lines of a file without their ends, and the codec that reads them."""

    lines: Iterator[str]
    codec: str
    is_damaged: bool = False  # what could not be read is \ufffd


def read_lines(file: BinaryIO, size: int, max_chars: int) -> DecodedLines:
    """Return the lines of a file of a size; a SourceError says why it is not text.

    A few damaged bytes cost what they stood for and no more: in a log of years they are somewhere. Of a line that is
    longer than `most` characters only a little more than those are there.
    """
    if size <= MAX_READ_BYTES:
        data = file.read()
        try:
            text, codec = decode(data)
        except SourceError:
            if not (found := _damaged_codec(data, data[:4])):
                raise
            return DecodedLines(iter(collapse_line_ends(decode_with_replacement(data, found)).split("\n")), found, True)
        return DecodedLines(iter(collapse_line_ends(text).split("\n")), codec)
    codec, is_damaged = _detect_codec(file)
    file.seek(0)
    return DecodedLines(_stream_lines(file, codec, max_chars, is_damaged=is_damaged), codec, is_damaged)


def decode_with_replacement(data: bytes, codec: str) -> str:
    r"""Return what damaged bytes say, with \ufffd for what they do not."""
    return data.decode(codec, "replace").translate(_CONTROL_REPLACEMENTS)


def _detect_codec(file: BinaryIO) -> tuple[str, bool]:
    """Return what reads all of a large file, told from a part of it, and whether some of it is damaged."""
    at, places = 0, list[int]()
    for _ in range(2):
        try:
            codec = _guess_codec(file, at)
        except SourceError:
            break
        damaged = _find_damage(file, codec)
        if damaged is None:
            return codec, False
        # What begins in English may be anything: the part that is not as expected says more.
        at = damaged
        places.append(at - at % 4)
    file.seek(0)
    mark = file.read(4)
    for place in (*places[:1], 0):
        file.seek(place)
        if codec := _damaged_codec(file.read(MAX_READ_BYTES), mark):
            return codec, True
    file.seek(at - at % 4)
    decode(file.read(MAX_READ_BYTES))  # says what is wrong with it
    raise SourceError(
        f"The encoding is not known: it is not all the same, and differs near byte {at}.",
        hint="Save the file as UTF-8.",
    )


def _damaged_codec(data: bytes, mark: bytes) -> str:
    """Return the codec that reads all but a little of damaged text; nothing if that is none.

    The mark is how its file begins, which may say what it is written in.
    """
    codecs = next((found for begin, found in _DAMAGE_LIMITS_BY_MARK.items() if mark.startswith(begin)), _DAMAGE_LIMITS)
    for codec, share in codecs.items():
        text = decode_with_replacement(data, codec)
        if text and text.count("\ufffd") <= share * len(text):
            return codec
    return ""


def _guess_codec(file: BinaryIO, position: int) -> str:
    file.seek(position - position % 4)
    block = file.read(MAX_READ_BYTES)
    last = block.rfind(b"\n") + 1 or len(block)
    with suppress(SourceError):
        return decode(block[:last])[1]
    # Characters of UTF-16 have two bytes or four.
    with suppress(SourceError):
        return decode(block[: last - last % 4])[1]
    return decode(block[: last - last % 4 - 2])[1]


def _find_damage(file: BinaryIO, codec: str) -> int | None:
    """Return near which byte a file cannot be read so; None if it can be to its end."""
    decoder = getincrementaldecoder(codec)()
    file.seek(0)
    at = 0
    try:
        while block := file.read(_BLOCK_BYTES):
            decoder.decode(block)
            at += len(block)
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        return at + error.start
    return None


def _stream_lines(file: BinaryIO, codec: str, max_chars: int, *, is_damaged: bool) -> Iterator[str]:
    errors = "replace" if is_damaged else "strict"
    decoder = IncrementalNewlineDecoder(getincrementaldecoder(codec)(errors), translate=True)
    rest = ""
    try:
        while block := file.read(_BLOCK_BYTES):
            if len(rest) > max_chars:
                rest = rest[: max_chars + 1]
            text = decoder.decode(block)
            *whole, rest = (rest + (text.translate(_CONTROL_REPLACEMENTS) if is_damaged else text)).split("\n")
            yield from whole
        *whole, rest = (rest + decoder.decode(b"", True)).split("\n")
    except UnicodeDecodeError as error:  # it could be read to its end a moment ago
        raise SourceError("It is being written.", hint="Wait until that is done and import again.") from error
    yield from whole
    yield rest
