"""A text comes in, chunks of so many tokens that overlap go out, each with its place in the source."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from bunko.chunkers import merge
from bunko.chunkers.detect import MARKDOWN_TYPES
from bunko.chunkers.merge import ChunkRange
from bunko.chunkers.split import safe_cut_offset
from bunko.readers.outline import Heading, scan_outline, unify_line_ends
from bunko.text.subwords import token_spans
from bunko.types import Chunk, Text

# Tokens are counted block by block, so that a huge file does not need a hundred times its size in memory.
_BLOCK_CHARS = 200_000


class Tokens:
    """Windows of `size` tokens; each begins with the last `overlap` tokens of the one before."""

    def __init__(self, size: int, overlap: int) -> None:
        self._size = size
        self._step = max(1, size - overlap)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the windows in order; the last one is as short as it comes."""
        lines = unify_line_ends(text.text)
        borders = _token_starts(lines, text.body_start)
        outline = _heading_positions(lines, text)
        found = []
        for first in range(0, len(borders) - 1, self._step):
            last = min(first + self._size, len(borders) - 1)
            start, end = (safe_cut_offset(lines, borders[at], text.body_start, len(lines)) for at in (first, last))
            start, end = merge.trim_blank_lines(lines, start, end)
            if start < end:
                found.append(_with_heading(outline, ChunkRange(start, end)))
            if last == len(borders) - 1:
                break
        return merge.build_chunks(text.text, lines, found)


def _token_starts(lines: str, body: int) -> array[int]:
    """Return where each token begins, and the end of the text."""
    borders = array("Q")
    start = body
    while start < len(lines):
        end = start + _BLOCK_CHARS
        if end < len(lines):
            end = lines.rfind("\n", start + 1, end) + 1 or end
        borders.extend(start + span[0] for span in token_spans(lines[start:end]))
        start = end
    # What the tokenizer passes over belongs to the token before it; at the very beginning there is none.
    return array("Q", [body, *borders[1:], len(lines)])


def _heading_positions(lines: str, text: Text) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return where each heading stands, as it is written, and the path to it."""
    if text.media_type not in MARKDOWN_TYPES:
        return []
    found = []
    above: list[Heading] = []
    for mark in scan_outline(lines, text.body_start):
        if isinstance(mark, Heading):
            above = [*(heading for heading in above if heading.level < mark.level), mark]
            found.append((mark.start, mark.source, tuple(heading.title for heading in above if heading.title)))
    return found


def _with_heading(outline: list[tuple[int, str, tuple[str, ...]]], chunk_range: ChunkRange) -> ChunkRange:
    at = bisect_right(outline, chunk_range.start, key=lambda heading: heading[0])
    if not at:
        return chunk_range
    _, source, path = outline[at - 1]
    return chunk_range._replace(heading=source, heading_path=path)


def build(size: int = 1024, overlap: int = 64) -> Tokens:
    """Cut into windows of `size` tokens of which neighbours share `overlap`."""
    return Tokens(size, overlap)
