"""A text comes in, a word about what it is made of goes out: prose, a table, or both."""

from __future__ import annotations

import re
from typing import Literal

from bunko.chunkers.tables import MIN_COLUMNS, count_columns, markdown_tables
from bunko.readers.outline import unify_line_ends

# Files of these kinds are Markdown once they are read.
MARKDOWN_TYPES = frozenset(("text/markdown", "text/html", "application/pdf"))

ContentType = Literal["prose", "table", "mixed"]

_SAMPLE_CHARS = (
    64 * 1024
)  # characters that are looked at: enough to tell, and a large file costs no more than a small one
_NUMBER = re.compile(r"[-+±¥$€£]?\d[\d.,:/%％]*\w?")
_STRUCTURED_SHARE = 0.3
_NUMERIC_SHARE = 0.2
_TABLE_SHARE = 0.7  # with fewer lines in columns, what stands between is more than a caption


def content_type(text: str) -> ContentType:
    """Say whether a text is running prose, a table, or a mixture of the two."""
    lines = unify_line_ends(text[:_SAMPLE_CHARS])
    rows = [line for line in lines.split("\n") if line and not line.isspace()]
    barred = sum(lines.count("\n", table.start, table.end) + 1 for table in markdown_tables(lines, 0, len(lines)))
    structured = numeric = tabular = 0
    for row in rows:
        in_columns = count_columns(row) >= MIN_COLUMNS
        in_numbers = _is_numeric(row)
        structured += in_columns
        numeric += in_numbers
        tabular += in_columns or in_numbers
    # One line alone is never a table.
    total = max(len(rows), 2)
    tabular = max(tabular, barred)
    if tabular < 2:
        return "prose"
    if barred or structured >= total * _STRUCTURED_SHARE or numeric >= total * _NUMERIC_SHARE:
        return "table" if tabular >= total * _TABLE_SHARE else "mixed"
    return "prose"


def _is_numeric(row: str) -> bool:
    """Say whether at least two fields, and half of them, are numbers."""
    fields = row.replace("|", " ").split()
    if len(fields) < 2:
        return False
    numbers = sum(_NUMBER.fullmatch(field) is not None for field in fields)
    return numbers >= 2 and numbers * 2 >= len(fields)
