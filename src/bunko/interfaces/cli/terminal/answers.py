"""Print an answer with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bunko.interfaces.answers import answer_text, introduction, visible_sources
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.terminal.printing import escape_controls, is_terminal, print_stderr, replace_controls
from bunko.messages import translate

if TYPE_CHECKING:
    from bunko.interfaces.result_fields import Tools
    from bunko.types.answers import CheckedAnswer


def print_answer(answer: CheckedAnswer, tools: Tools, *, strict: bool) -> None:
    """Print an answer with its sources: drawn at a terminal, plain in a pipe."""
    if is_terminal():
        terminal.render_answer.show_answer(answer, tools, strict=strict)
        return
    if answer.sentences:
        print_stderr(introduction(answer, strict=strict))
    click.echo(replace_controls(answer_text(answer, strict=strict, translate=translate)))
    sources = [
        f"[{source.number}] {escape_controls(source.location)}" for source in visible_sources(answer, strict=strict)
    ]
    if sources:
        click.echo("\n" + "\n".join(sources))
