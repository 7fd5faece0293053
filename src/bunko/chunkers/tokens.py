"""Split text into overlapping windows of tokens."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from bunko.chunkers import merge
from bunko.chunkers.detect import has_headings
from bunko.chunkers.merge import ChunkRange
from bunko.chunkers.split import safe_cut_offset
from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.text.subwords import token_spans
from bunko.types import Chunk, Text

# Text is tokenized in blocks, since the tokenizer needs a hundred times its input in memory.
_BLOCK_CHARS = 200_000


class Tokens:
    """Makes windows of `size` tokens; each begins with the last `overlap` tokens of the previous one."""

    def __init__(self, size: int, overlap: int) -> None:
        self._size = size
        self._step = max(1, size - overlap)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the windows in order; the last one may be shorter."""
        lines = unify_line_ends(text.text)
        token_starts = _token_starts(lines, text.body_start)
        outline = _heading_positions(lines, text)
        ranges = []
        for first in range(0, len(token_starts) - 1, self._step):
            last = min(first + self._size, len(token_starts) - 1)
            start, end = (
                safe_cut_offset(lines, token_starts[index], text.body_start, len(lines)) for index in (first, last)
            )
            start, end = merge.trim_blank_lines(lines, start, end)
            if start < end:
                ranges.append(_with_heading(outline, ChunkRange(start, end)))
            if last == len(token_starts) - 1:
                break
        return merge.build_chunks(text.text, lines, ranges)


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
    return array("Q", [body_start, *starts[1:], len(lines)])


def _heading_positions(lines: str, text: Text) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return the offset, the source and the path of each heading."""
    if not has_headings(text.media_type):
        return []
    positions = []
    path: list[Heading] = []
    for block in scan_outline(lines, text.body_start, media_type=text.media_type):
        if isinstance(block, Heading):
            path = [*(heading for heading in path if heading.level < block.level), block]
            positions.append((block.start, block.source, tuple(heading.title for heading in path if heading.title)))
    return positions


def _with_heading(outline: list[tuple[int, str, tuple[str, ...]]], chunk_range: ChunkRange) -> ChunkRange:
    index = bisect_right(outline, chunk_range.start, key=lambda heading: heading[0])
    if not index:
        return chunk_range
    _, source, path = outline[index - 1]
    return chunk_range._replace(heading=source, heading_path=path)


def build(size: int = 1024, overlap: int = 64) -> Tokens:
    """Split into windows of `size` tokens that overlap by `overlap` tokens."""
    return Tokens(size, overlap)
