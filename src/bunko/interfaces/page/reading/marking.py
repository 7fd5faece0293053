"""Mark in a part what was found, and name its lines, so that links lead to them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from bunko.interfaces.page.results import mark_terms
from bunko.text.snippets import SnippetTerms
from bunko.types import LineSpan

_ATTRIBUTES = {"css": "class", "label": "aria-label", "data_line": "data-line"}


@dataclass(slots=True)
class Marking:
    """The lines, the hit and the terms of a document, and which of them a part has shown."""

    span: LineSpan
    hit: tuple[int, int] | None  # lines of the document, counted from 0
    terms: SnippetTerms
    word: str = field(default_factory=lambda: f"x{secrets.token_hex(8)}")  # in front of the values of our attributes
    shows_hit: bool = False
    _named: set[int] = field(default_factory=set)

    def is_hit(self, first: int, last: int | None = None) -> bool:
        """Return whether lines are, or contain, some of the hit."""
        is_hit = (
            first >= 0
            and self.hit is not None
            and self.hit[0] <= (first if last is None else last)
            and first <= self.hit[1]
        )
        self.shows_hit = self.shows_hit or is_hit
        return is_hit

    def name(self, line: int) -> str:
        """Return the name of a line; "" if it has been given to something."""
        number = self.span.file_line(line + 1)
        if line < 0 or number in self._named:
            return ""
        self._named.add(number)
        return f"L{number}"

    def tag(self, element: str, **attributes: str) -> str:
        """Return the tag that begins an element, with attributes of our own that are not empty; `css` is its class."""
        written = "".join(
            f' {_ATTRIBUTES.get(name, name)}="{self.word}{escape(value)}"'
            for name, value in attributes.items()
            if value
        )
        return f"<{element}{written}>"

    def anchor(self, line: int) -> str:
        """Return an empty element with the name of a line."""
        name = self.name(line)
        return self.tag("span", id=name) + "</span>" if name else ""

    def table(self, label: str) -> str:
        """Return the beginning of a table in a box that scrolls."""
        return self.tag("div", css="table", tabindex="0", role="region", label=label) + "<table>\n"

    def text(self, text: str, *, is_hit: bool) -> Markup:
        """Return text as markup; in the hit, with the terms of the query marked."""
        if not is_hit or not self.terms.weights:
            return escape(text)
        return Markup("").join(
            Markup("<mark>{}</mark>").format(segment.text) if segment.is_marked else escape(segment.text)
            for segment in mark_terms(text, self.terms)
        )

    def code(self, lines: Sequence[str], numbers: Sequence[int]) -> str:
        """Return code, each line with its name."""
        parts = []
        for text, number in zip(lines, numbers, strict=True):
            is_hit = self.is_hit(number)
            tag = self.tag("span", id=self.name(number), css="hit" if is_hit else "")
            parts.append(f"{tag}{self.text(text, is_hit=is_hit)}</span>")
        return f"<pre><code>{chr(10).join(parts)}</code></pre>\n"
