"""Format the help of commands in the user's language; lines of Japanese break anywhere but before a full stop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import east_asian_width

import click

from bunko.messages import language, translate

_MIN_WIDTH = 20
_MAX_FIRST_COLUMN = 30
_NO_LIMIT = 1000  # in characters; longer than any sentence
# These do not begin a line, and those do not end one.
_NO_START = frozenset("。、，．・：；！？）」』】〉》ー々〜…ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ,.:;!?)]}")
_NO_END = frozenset("（「『【〈《([{")
_NOTE = re.compile(r"(\[[^]]*\]+ ?)")


class TranslatedFormatter(click.HelpFormatter):
    """Writes help texts through the catalogue of the user's language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage of a command; its arguments stay in the column in which they begin."""
        if language() == "en":
            super().write_usage(prog, args, prefix)
            return
        start = f"{' ' * self.current_indent}{prefix or translate('Usage:') + ' '}{prog} "
        lines = list(wrap_cells(args, max(_MIN_WIDTH, self.width - cell_count(start)))) or [""]
        self.write(f"{start}{lines[0]}".rstrip() + "\n")
        self.write("".join(f"{' ' * cell_count(start)}{line}\n" for line in lines[1:]))

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


def first_sentence(command: click.Command) -> str:
    """Return what a command does, as a list of commands says it."""
    return command.get_short_help_str(limit=_NO_LIMIT)


def cell_count(text: str) -> int:
    """Return how many cells a text takes on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def wrap_cells(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text that fit a width in cells.

    Words and notes in brackets are kept whole, Japanese breaks between characters.
    """
    line = ""
    pieces: list[str] = []
    for part in filter(None, _NOTE.split(text)):
        is_note = _NOTE.fullmatch(part) is not None and cell_count(part.rstrip()) <= width
        pieces += [part] if is_note else _pieces(part)
    for piece in pieces:
        if line and cell_count(line + piece.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += piece if line else piece.lstrip()
        while cell_count(line.rstrip()) > width:  # a word that is longer than a line
            # After the last | or / that fits, else anywhere.
            widest = next(end for end in range(len(line), 0, -1) if cell_count(line[:end]) <= width or end == 1)
            end = max(line.rfind(mark, 1, widest) for mark in "|/") + 1 or widest
            yield line[:end]
            line = line[end:]
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
    body, _, rest = plain.rpartition(" [")
    notes = [translate(note) for note in rest.removesuffix("]").split("; ")]
    return f"{_translate_paragraph(body)} [{'、'.join(notes)}]" if body else plain
