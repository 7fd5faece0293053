"""The name of a kind and its limits come in, a chunker goes out that cuts texts into the pieces to index."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.chunkers import auto, entry, headings, paragraphs, prose, tables, tokens
from bunko.errors import UnknownName
from bunko.protocols import Chunker

__all__ = ["KINDS", "build"]

KINDS = ("auto", "entry", "headings", "paragraphs", "prose", "tables", "tokens")


def build(
    kind: str = "auto",
    *,
    max_chars: int = 3000,
    min_chars: int = 50,
    heading_levels: Sequence[int] = (1, 2, 3),
    size: int = 200,
    overlap: int = 30,
    row_context: int = 1,
) -> Chunker:
    """Return the chunker of a kind; `size` and `overlap` are for prose and tokens, the other limits for the rest."""
    match kind:
        case "auto":
            return auto.build(
                headings.build(max_chars, min_chars, heading_levels),
                paragraphs.build(max_chars, min_chars),
                tables.build(row_context, max_chars, min_chars),
            )
        case "entry":
            return entry.build(max_chars, headings.build(max_chars, min_chars, heading_levels))
        case "headings":
            return headings.build(max_chars, min_chars, heading_levels)
        case "paragraphs":
            return paragraphs.build(max_chars, min_chars)
        case "prose":
            return prose.build(size, overlap)
        case "tables":
            return tables.build(row_context, max_chars, min_chars)
        case "tokens":
            return tokens.build(size, overlap)
    raise UnknownName(f"There is no chunker {kind!r}.", hint=f"Choose one of: {', '.join(KINDS)}.")
