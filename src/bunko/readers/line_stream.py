"""An open file comes in, its lines as text go out: of a large one only a few are in memory at a time."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from io import IncrementalNewlineDecoder
from typing import BinaryIO, NamedTuple

from bunko.errors import SourceError
from bunko.readers.encoding import decode
from bunko.readers.memo import unified

# Bytes that are read at once: a file of at most as many is one block.
AT_ONCE = 4_000_000
_BLOCK = 1_000_000
# Where a file is damaged, what most of it is written in; and how much of it may be none of that.
_DAMAGED = {"utf-8": 0.05, "cp932": 0.05, "euc_jp": 0.05}
# The same where a file begins with a mark. Of any bytes whatever, 97 % are characters of UTF-16.
_MARKED = {BOM_UTF8: {"utf-8-sig": 0.05}, BOM_UTF16_LE: {"utf-16": 0.01}, BOM_UTF16_BE: {"utf-16": 0.01}}
_NOTHING = dict.fromkeys((*range(9), 11, *range(14, 27), *range(28, 32), 127), "\ufffd")


class Read(NamedTuple):
    """The lines of a file without their ends, and the codec that reads them."""

    lines: Iterator[str]
    codec: str
    is_damaged: bool = False  # what could not be read is \ufffd


def lines(file: BinaryIO, size: int, most: int) -> Read:
    """Return the lines of a file of a size; a SourceError says why it is not text.

    A few damaged bytes cost what they stood for and no more: in a log of years they are somewhere. Of a line that is
    longer than `most` characters only a little more than those are there.
    """
    if size <= AT_ONCE:
        data = file.read()
        try:
            text, codec = decode(data)
        except SourceError:
            if not (found := _fitting(data, data[:4])):
                raise
            return Read(iter(unified(mended(data, found)).split("\n")), found, True)
        return Read(iter(unified(text).split("\n")), codec)
    codec, is_damaged = _codec(file)
    file.seek(0)
    return Read(_decoded(file, codec, most, is_damaged=is_damaged), codec, is_damaged)


def mended(data: bytes, codec: str) -> str:
    r"""Return what damaged bytes say, with \ufffd for what they do not."""
    return data.decode(codec, "replace").translate(_NOTHING)


def _codec(file: BinaryIO) -> tuple[str, bool]:
    """Return what reads all of a large file, told from a part of it, and whether some of it is damaged."""
    at, places = 0, list[int]()
    for _ in range(2):
        try:
            codec = _guess(file, at)
        except SourceError:
            break
        damaged = _damaged(file, codec)
        if damaged is None:
            return codec, False
        # What begins in English may be anything: the part that is not as expected says more.
        at = damaged
        places.append(at - at % 4)
    file.seek(0)
    mark = file.read(4)
    for place in (*places[:1], 0):
        file.seek(place)
        if codec := _fitting(file.read(AT_ONCE), mark):
            return codec, True
    file.seek(at - at % 4)
    decode(file.read(AT_ONCE))  # says what is wrong with it
    raise SourceError(
        f"The encoding is not known: it is not all the same, and differs near byte {at}.",
        hint="Save the file as UTF-8.",
    )


def _fitting(data: bytes, mark: bytes) -> str:
    """Return the codec that reads all but a little of damaged text; nothing if that is none.

    The mark is how its file begins, which may say what it is written in.
    """
    codecs = next((found for begin, found in _MARKED.items() if mark.startswith(begin)), _DAMAGED)
    for codec, share in codecs.items():
        text = mended(data, codec)
        if text and text.count("\ufffd") <= share * len(text):
            return codec
    return ""


def _guess(file: BinaryIO, at: int) -> str:
    file.seek(at - at % 4)
    block = file.read(AT_ONCE)
    last = block.rfind(b"\n") + 1 or len(block)
    with suppress(SourceError):
        return decode(block[:last])[1]
    # Characters of UTF-16 have two bytes or four.
    with suppress(SourceError):
        return decode(block[: last - last % 4])[1]
    return decode(block[: last - last % 4 - 2])[1]


def _damaged(file: BinaryIO, codec: str) -> int | None:
    """Return near which byte a file cannot be read so; None if it can be to its end."""
    decoder = getincrementaldecoder(codec)()
    file.seek(0)
    at = 0
    try:
        while block := file.read(_BLOCK):
            decoder.decode(block)
            at += len(block)
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        return at + error.start
    return None


def _decoded(file: BinaryIO, codec: str, most: int, *, is_damaged: bool) -> Iterator[str]:
    errors = "replace" if is_damaged else "strict"
    decoder = IncrementalNewlineDecoder(getincrementaldecoder(codec)(errors), translate=True)
    rest = ""
    try:
        while block := file.read(_BLOCK):
            if len(rest) > most:
                rest = rest[: most + 1]
            text = decoder.decode(block)
            *whole, rest = (rest + (text.translate(_NOTHING) if is_damaged else text)).split("\n")
            yield from whole
        *whole, rest = (rest + decoder.decode(b"", True)).split("\n")
    except UnicodeDecodeError as error:  # it could be read to its end a moment ago
        raise SourceError("It is being written.", hint="Wait until that is done and import again.") from error
    yield from whole
    yield rest
