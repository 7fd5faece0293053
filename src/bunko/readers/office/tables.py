"""Write rows of cells as a Markdown table."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BLANKS = re.compile(r"\s+")


def cell_text(text: str) -> str:
    """Return the text of a cell on one line."""
    return _BLANKS.sub(" ", text).strip().replace("|", "\\|")


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is its header; shorter rows are filled up."""
    width = max(map(len, rows), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    lines.insert(1, f"| {' | '.join(['---'] * width)} |")
    return "\n".join(lines)
