"""Say which Markdown a text is, and which lines of the document its lines are."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Syntax:
    """Which Markdown a text is."""

    has_html: bool = False
    has_site_marks: bool = False  # boxes, anchors and shortcodes of site generators
    has_wiki_links: bool = False
    keeps_line_ends: bool = False
    off: tuple[str, ...] = ()  # rules of the parser


@dataclass(slots=True)
class MarkdownText:
    """Lines to render, and which lines of the document they are, counted from 0.

    Those that are repeated from above have negative numbers.
    """

    lines: list[str]
    numbers: list[int]
    syntax: Syntax
    definitions: str = ""  # of links, anywhere in the document
    title: str = ""  # that stands above the text already
    table_label: str = ""
    cells: dict[int, tuple[int, int]] = field(default_factory=dict)  # row and column of the first one in a line
