"""Show an answer as a table in HTML, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.types import Answer, Hit

_MAX_CHARS = 300  # of a text: the cell of a notebook stays short


def html_table(answer: Answer) -> str:
    """Return one row for each hit, and the notices above; a document cannot add markup of its own."""
    notices = "".join(f"<p>{escape(notice)}</p>" for notice in answer.notices)
    head = "".join(f"<th>{name}</th>" for name in ("", "score", "citation", "heading", "text"))
    rows = "".join(_row(number, hit) for number, hit in enumerate(answer.hits, 1))
    caption = f"<caption>{escape(answer.query)}</caption>"
    return f"{notices}<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(number: int, hit: Hit) -> str:
    text = hit.text if len(hit.text) <= _MAX_CHARS else f"{hit.text[:_MAX_CHARS].rstrip()}…"
    headings = " › ".join(hit.chunk.headings(hit.title))
    cells = (str(number), f"{hit.score:.4f}", hit.citation, headings, text)
    aligned = "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in cells)
    return f"<tr>{aligned}</tr>"
