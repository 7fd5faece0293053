"""Read the lines of a text file, streaming large files."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from io import IncrementalNewlineDecoder
from typing import BinaryIO, NamedTuple

from bunko.errors import SourceError
from bunko.readers.encoding import decode, may_be
from bunko.readers.memo import collapse_line_ends

# Bytes that are read at once: a file up to this size is read in one block.
MAX_READ_BYTES = 4_000_000
BLOCK_BYTES = 1_000_000
# Codecs to try for a damaged file, and the share of it that each may fail to decode.
_DAMAGE_LIMITS = {"utf-8": 0.05, "cp932": 0.05, "euc_jp": 0.05, "gb18030": 0.05}
# The same for files with a byte order mark. Of random bytes, 97 % are valid UTF-16.
_DAMAGE_LIMITS_BY_MARK = {BOM_UTF8: {"utf-8-sig": 0.05}, BOM_UTF16_LE: {"utf-16": 0.01}, BOM_UTF16_BE: {"utf-16": 0.01}}
_CONTROL_REPLACEMENTS = dict.fromkeys((*range(9), 11, *range(14, 27), *range(28, 32), 127), "\ufffd")


class DecodedLines(NamedTuple):
    """The lines of a file without line ends, and the codec that decodes them."""

    lines: Iterator[str]
    codec: str
    is_damaged: bool = False  # undecodable bytes became \ufffd


def read_lines(file: BinaryIO, size: int, max_chars: int) -> DecodedLines:
    """Return the lines of a file of `size` bytes; raise SourceError if it is not text.

    A few damaged bytes are replaced and the rest is kept: a log of many years often has some. A line of a large file
    that is longer than `max_chars` characters is truncated a little past them.
    """
    if size <= MAX_READ_BYTES:
        data = file.read()
        try:
            text, codec = decode(data)
        except SourceError:
            if not (damaged_codec := _damaged_codec(data, data[:4])):
                raise
            return DecodedLines(
                iter(collapse_line_ends(decode_with_replacement(data, damaged_codec)).split("\n")), damaged_codec, True
            )
        return DecodedLines(iter(collapse_line_ends(text).split("\n")), codec)
    codec, is_damaged = _detect_codec(file)
    file.seek(0)
    return DecodedLines(_stream_lines(file, codec, max_chars, is_damaged=is_damaged), codec, is_damaged)


def decode_with_replacement(data: bytes, codec: str) -> str:
    r"""Decode damaged text, with \ufffd for bytes that cannot be decoded."""
    return data.decode(codec, "replace").translate(_CONTROL_REPLACEMENTS)


def _detect_codec(file: BinaryIO) -> tuple[str, bool]:
    """Return the codec of a large file, guessed from a part of it, and whether the file is damaged."""
    position, damaged_positions = 0, list[int]()
    for _ in range(2):
        try:
            codec = _guess_codec(file, position)
        except SourceError:
            break
        damage = _find_damage(file, codec)
        if damage is None:
            return codec, False
        # A file that begins in English may have any encoding: the part that fails to decode tells more.
        position = damage
        damaged_positions.append(position - position % 4)
    file.seek(0)
    mark = file.read(4)
    for start in (*damaged_positions[:1], 0):
        file.seek(start)
        if codec := _damaged_codec(file.read(MAX_READ_BYTES), mark):
            return codec, True
    file.seek(position - position % 4)
    decode(file.read(MAX_READ_BYTES))  # raises with the exact reason, where there is one
    raise SourceError(
        f"The encoding of the file is unknown: it changes near byte {position}",
        hint="Save the file as UTF-8.",
    )


def _damaged_codec(data: bytes, mark: bytes) -> str:
    """Return the codec that decodes nearly all of a damaged text, or "" if there is none.

    `mark` is the beginning of the file, which may be a byte order mark.
    """
    limits_by_codec = next(
        (limits for byte_order_mark, limits in _DAMAGE_LIMITS_BY_MARK.items() if mark.startswith(byte_order_mark)),
        _DAMAGE_LIMITS,
    )
    for codec, max_share in limits_by_codec.items():
        text = decode_with_replacement(data, codec)
        if text and text.count("\ufffd") <= max_share * len(text) and may_be(text, codec):
            return codec
    return ""


def _guess_codec(file: BinaryIO, position: int) -> str:
    file.seek(position - position % 4)
    block = file.read(MAX_READ_BYTES)
    end = block.rfind(b"\n") + 1 or len(block)
    with suppress(SourceError):
        return decode(block[:end])[1]
    # UTF-16 characters take two or four bytes.
    with suppress(SourceError):
        return decode(block[: end - end % 4])[1]
    return decode(block[: end - end % 4 - 2])[1]


def _find_damage(file: BinaryIO, codec: str) -> int | None:
    """Return the approximate offset at which the codec fails, or None if it decodes the whole file."""
    decoder = getincrementaldecoder(codec)()
    file.seek(0)
    position = 0
    try:
        while block := file.read(BLOCK_BYTES):
            decoder.decode(block)
            position += len(block)
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        return position + error.start
    return None


def _stream_lines(file: BinaryIO, codec: str, max_chars: int, *, is_damaged: bool) -> Iterator[str]:
    errors = "replace" if is_damaged else "strict"
    decoder = IncrementalNewlineDecoder(getincrementaldecoder(codec)(errors), translate=True)
    partial_line = ""
    try:
        while block := file.read(BLOCK_BYTES):
            if len(partial_line) > max_chars:
                partial_line = partial_line[: max_chars + 1]
            text = decoder.decode(block)
            *lines, partial_line = (
                partial_line + (text.translate(_CONTROL_REPLACEMENTS) if is_damaged else text)
            ).split("\n")
            yield from lines
        *lines, partial_line = (partial_line + decoder.decode(b"", True)).split("\n")
    except UnicodeDecodeError as error:  # the whole file could be decoded a moment ago
        raise SourceError("The file is being written", hint="Wait until it is complete, then import again.") from error
    yield from lines
    yield partial_line
