"""Format the help of commands in the user's language; lines of Japanese break anywhere but before a full stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from unicodedata import east_asian_width

import click

from bunko.interfaces.cli.language import language, translate

_MIN_WIDTH = 20
_MAX_FIRST_COLUMN = 30
# These do not begin a line, and those do not end one.
_NO_START = frozenset("。、，．・：；！？）」』】〉》ーぁぃぅぇぉっゃゅょァィゥェォッャュョ,.:;!?)]}")
_NO_END = frozenset("（「『【〈《([{")


class TranslatedFormatter(click.HelpFormatter):
    """Writes help texts through the catalogue of the user's language."""

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        super().write_heading(translate(heading))

    def write_text(self, text: str) -> None:
        """Write paragraphs; those after a line with \\b keep their lines."""
        if language() == "en":
            super().write_text(text)
            return
        indent = " " * self.current_indent
        paragraphs = []
        for paragraph in text.split("\n\n"):
            is_verbatim = paragraph.startswith("\b")
            plain = paragraph.removeprefix("\b\n")
            lines = [translate(line) for line in plain.split("\n")] if is_verbatim else [_translate_paragraph(plain)]
            width = max(_MIN_WIDTH, self.width - self.current_indent)
            wrapped = lines if is_verbatim else [part for line in lines for part in wrap_cells(line, width)]
            paragraphs.append("\n".join(f"{indent}{line}" for line in wrapped))
        self.write("\n\n".join(paragraphs) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = _MAX_FIRST_COLUMN, col_spacing: int = 2) -> None:
        """Write a list of names or options with what they are."""
        if language() == "en":
            super().write_dl(list(rows), col_max, col_spacing)
            return
        rows = [(name, _translate_paragraph(text)) for name, text in rows]
        first_width = min(max((cell_count(name) for name, _ in rows), default=0), col_max) + col_spacing
        width = max(_MIN_WIDTH, self.width - self.current_indent - first_width)
        for name, text in rows:
            lines = list(wrap_cells(text, width)) or [""]
            indent = " " * self.current_indent
            name_width = cell_count(name)
            if name_width > first_width - col_spacing:
                self.write(f"{indent}{name}\n")
                self.write(f"{indent}{' ' * first_width}{lines[0]}\n")
            else:
                self.write(f"{indent}{name}{' ' * (first_width - name_width)}{lines[0]}".rstrip() + "\n")
            for line in lines[1:]:
                self.write(f"{indent}{' ' * first_width}{line}\n")


def cell_count(text: str) -> int:
    """Return how many cells a text takes on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def wrap_cells(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text that fit a width in cells: words are kept whole, Japanese breaks between characters."""
    line, cells = "", 0
    for piece in _pieces(text):
        piece_cells = cell_count(piece)
        if line and cells + cell_count(piece.rstrip()) > width:
            yield line.rstrip()
            line, cells = "", 0
            piece = piece.lstrip()
            piece_cells = cell_count(piece)
        line, cells = line + piece, cells + piece_cells
    if line.strip():
        yield line.rstrip()


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of a text between which a line may end."""
    piece = ""
    for char in text:
        is_wide = east_asian_width(char) in "WF"
        previous = piece[-1:]
        may_break = piece and (
            previous == " " or ((is_wide or east_asian_width(previous) in "WF") and previous not in _NO_END)
        )
        if may_break and char not in _NO_START and char != " ":
            yield piece
            piece = ""
        piece += char
    if piece:
        yield piece


def _translate_paragraph(text: str) -> str:
    """Return a help text in the user's language; what click adds in brackets after it stays at its end."""
    plain = " ".join(text.split())
    translated = translate(plain)
    if translated != plain or not plain.endswith("]"):
        return translated
    body, _, rest = plain.rpartition("  [")
    if not body:
        body, _, rest = plain.rpartition(" [")
    return f"{translate(body)} [{translate(rest.removesuffix(']'))}]" if body else plain
