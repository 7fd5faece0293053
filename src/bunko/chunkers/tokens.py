"""Split text into overlapping windows of tokens."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from bunko.chunkers import split
from bunko.chunkers.detect import has_headings
from bunko.chunkers.split import ChunkRange, safe_cut_offset
from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.text.subwords import token_spans
from bunko.types import Chunk, Text

# Text is tokenized in blocks, since the tokenizer needs a hundred times its input in memory.
_BLOCK_CHARS = 200_000
_BLANKS = re.compile(r"\s*")


class _HeadingRow(NamedTuple):
    """Headings with no text between them: where they begin, and the source and path of the last."""

    start: int
    source: str
    path: tuple[str, ...]


_NO_HEADINGS = _HeadingRow(0, "", ())


class Tokens:
    """Makes windows of `size` tokens; each begins with the last `overlap` tokens of the previous one."""

    def __init__(self, size: int, overlap: int) -> None:
        self._size = size
        self._step = max(1, size - overlap)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the windows in order; the last one may be shorter."""
        lines = unify_line_ends(text.text)
        token_starts = _token_starts(lines, text.body_start)
        headings = _heading_rows(lines, text)
        row, next_row = _NO_HEADINGS, next(headings, None)
        ranges = []
        for first in range(0, len(token_starts) - 1, self._step):
            last = min(first + self._size, len(token_starts) - 1)
            start, end = (
                safe_cut_offset(lines, token_starts[index], text.body_start, len(lines)) for index in (first, last)
            )
            start, end = split.trim_blank_lines(lines, start, end)
            while next_row and next_row.start <= start:
                row, next_row = next_row, next(headings, None)
            if start < end:
                ranges.append(ChunkRange(start, end, row.source, row.path))
            if last == len(token_starts) - 1:
                break
        return split.build_chunks(text.text, lines, ranges)


def _token_starts(lines: str, body_start: int) -> array[int]:
    """Return the offset of each token, and the end of the text."""
    starts = array("Q")
    block_start = body_start
    while block_start < len(lines):
        block_end = block_start + _BLOCK_CHARS
        if block_end < len(lines):
            block_end = lines.rfind("\n", block_start + 1, block_end) + 1 or block_end
        starts.extend(block_start + span[0] for span in token_spans(lines[block_start:block_end]))
        block_start = block_end
    # Text that the tokenizer skips belongs to the token before it, or to the first token.
    starts[:1] = array("Q", [body_start])
    starts.append(len(lines))
    return starts


def _heading_rows(lines: str, text: Text) -> Iterator[_HeadingRow]:
    """Yield each row of headings: a window that begins with several of them stands under the last."""
    if not has_headings(text.media_type):
        return
    path: list[Heading] = []
    row: _HeadingRow | None = None
    text_start = 0  # of the text under the row
    for block in scan_outline(lines, text.body_start, media_type=text.media_type):
        if not isinstance(block, Heading):
            continue
        if row and block.start > text_start:
            yield row
            row = None
        path = [*(heading for heading in path if heading.level < block.level), block]
        titles = tuple(heading.title for heading in path if heading.title)
        row = _HeadingRow(row.start if row else block.start, block.source, titles)
        match = _BLANKS.match(lines, block.end)
        text_start = match.end() if match else block.end
    if row:
        yield row


def build(size: int = 1024, overlap: int = 64) -> Tokens:
    """Split into windows of `size` tokens that overlap by `overlap` tokens."""
    return Tokens(size, overlap)
