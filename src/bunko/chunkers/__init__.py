"""Build chunkers, which split texts into the chunks to index."""

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
    """Return the chunker of a kind; `size` applies to prose and tokens, the other limits to all other kinds.

    `overlap` applies to prose, tokens and `pages`, which is `auto` for web pages: parts of a long text overlap.
    """
    match kind:
        case "auto" | "pages":
            page_overlap = overlap if kind == "pages" else 0
            sections = headings.build(max_chars, min_chars, heading_levels, page_overlap)
            return auto.build(
                sections,
                paragraphs.build(max_chars, min_chars, page_overlap),
                tables.build(row_context, max_chars, min_chars),
                entry.build(max_chars, sections),
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
    raise UnknownName(f"There is no chunker {kind!r}", hint=f"Choose one of: {', '.join(KINDS)}.")
