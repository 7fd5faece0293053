"""Detect whether a text is prose, a table, or both."""

from __future__ import annotations

import re
from typing import Literal

from bunko.chunkers.tables import MIN_COLUMNS, count_columns, markdown_tables
from bunko.readers.outline import unify_line_ends
from bunko.readers.outlines import has_outline

# Files of these types are Markdown after reading.
MARKDOWN_TYPES = frozenset((
    "text/markdown", "text/html", "application/pdf", "application/epub+zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
))  # fmt: skip

# A mail message is one thought: it is split only if it is too long.
WHOLE_TYPES = frozenset(("message/rfc822",))

ContentType = Literal["prose", "table", "mixed"]

_SAMPLE_CHARS = 64 * 1024  # enough to tell, and a large file costs no more than a small one
_NUMBER = re.compile(r"[-+±¥$€£]?\d[\d.,:/%％]*\w?")
_STRUCTURED_SHARE = 0.3
_NUMERIC_SHARE = 0.2
_TABLE_SHARE = 0.7  # with fewer lines in columns, the text between them is more than a caption


def has_headings(media_type: str) -> bool:
    """Return whether texts of a type may have headings."""
    return media_type in MARKDOWN_TYPES or has_outline(media_type)


def content_type(text: str) -> ContentType:
    """Return whether a text is prose, a table, or a mixture of the two."""
    lines = unify_line_ends(text[:_SAMPLE_CHARS])
    rows = [line for line in lines.split("\n") if line and not line.isspace()]
    markdown_rows = sum(
        lines.count("\n", table.start, table.end) + 1 for table in markdown_tables(lines, 0, len(lines))
    )
    column_rows = numeric_rows = tabular_rows = 0
    for row in rows:
        has_columns = count_columns(row) >= MIN_COLUMNS
        is_numeric = _is_numeric(row)
        column_rows += has_columns
        numeric_rows += is_numeric
        tabular_rows += has_columns or is_numeric
    # A single line is never a table.
    total = max(len(rows), 2)
    tabular_rows = max(tabular_rows, markdown_rows)
    if tabular_rows < 2:
        return "prose"
    if markdown_rows or column_rows >= total * _STRUCTURED_SHARE or numeric_rows >= total * _NUMERIC_SHARE:
        return "table" if tabular_rows >= total * _TABLE_SHARE else "mixed"
    return "prose"


def _is_numeric(row: str) -> bool:
    """Return whether at least two fields of a row, and at least half of them, are numbers."""
    fields = row.replace("|", " ").split()
    if len(fields) < 2:
        return False
    numbers = sum(_NUMBER.fullmatch(field) is not None for field in fields)
    return numbers >= 2 and numbers * 2 >= len(fields)
