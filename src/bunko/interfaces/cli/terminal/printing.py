"""Print messages in the language of the user, JSON, and names and texts that cannot control a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from bunko.interfaces.cli.help_formatter import cell_count
from bunko.messages import translate
from bunko.text.labels import HIDDEN_CHAR

# All control characters except tab and newline, and the marks that change the direction of text.
_DIRECTION_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL_REPLACEMENTS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160), *_DIRECTION_MARKS), "\ufffd")
# What ends a line or a column, and what is hidden, except joiners: emoji and some scripts need them.
_UNSAFE_IN_NAMES = re.compile(rf"(?![\u200c\u200d])(?:[\t\n\r\u2028\u2029]|{HIDDEN_CHAR.pattern})")


def print_json(value: Any) -> None:
    """Print a value as indented JSON; what a terminal would obey is escaped, as JSON may."""
    click.echo(json_text(value, indent=2))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON in which the letters of all languages are as they are, and hidden characters are not."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return HIDDEN_CHAR.sub(lambda match: json.dumps(match[0])[1:-1], text)


def print_stderr(message: str) -> None:
    """Print a message that is not part of the answer to stderr, in the user's language."""
    click.echo(replace_controls(translate(message)), err=True)


def say(message: str) -> None:
    """Print a message for people to stdout, in the user's language."""
    click.echo(replace_controls(translate(message)))


def print_labelled(values: Mapping[str, str]) -> None:
    """Print values below each other after their labels."""
    labels = [f"{translate(label)}:" for label in values]
    width = max(map(cell_count, labels))
    for label, value in zip(labels, values.values(), strict=True):
        click.echo(replace_controls(f"{label}{' ' * (width - cell_count(label))} {value}"))


def confirm(question: str) -> bool:
    """Ask a question on stderr, in the user's language, and return whether the answer is yes."""
    return click.confirm(replace_controls(translate(question)), err=True)


def replace_controls(text: str) -> str:
    """Replace control characters, so that a document or file name cannot control or reorder the terminal."""
    return text.translate(_CONTROL_REPLACEMENTS)


def escape_controls(text: str) -> str:
    """Escape everything in a name that would end a line or column, hide or reorder it, or control the terminal."""
    return _UNSAFE_IN_NAMES.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def is_terminal() -> bool:
    """Return whether stdout is a terminal that can draw; a pipe gets plain text."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
