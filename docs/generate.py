"""The commands and the settings as they are in, `docs/cli.md` and `docs/settings.md` out.

Run it after a change of either: `.venv/bin/python docs/generate.py`. A test fails while a page is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from bunko.errors import BunkoError
from bunko.interfaces.cli.main import EXIT_CODES, INTERRUPTED_EXIT_CODE, bunko
from bunko.settings.docs import settings_reference

HEAD = """\
# The command line

Answers are plain text in a pipe and JSON with `--json`. What is not the answer goes to stderr.
"""
EXITS = """
## Exit codes

A message says what happened and what to do next; scripts can tell the cases apart by the exit code.

| exit | code | what is the matter |
|---:|---|---|
| 0 | | Nothing. A search that found nothing is no error. |
"""


def command_line() -> str:
    """Return every command's own help and every exit code, as Markdown."""
    # The width is fixed, so that the page does not depend on whose terminal made it.
    top = click.Context(bunko, info_name="bunko", terminal_width=100, **bunko.context_settings)
    parts = [HEAD]
    for name, text in _helps(top):
        parts.append(f"\n## {name}\n\n```text\n{text.rstrip()}\n```\n")
    return "".join(parts) + EXITS + "".join(f"| {exit} | {code} | {text} |\n" for exit, code, text in _exits())


def _helps(context: click.Context) -> Iterator[tuple[str, str]]:
    command = context.command
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _helps(click.Context(below, parent=context, info_name=name))


def _exits() -> Iterator[tuple[int, str, str]]:
    told = {error.code: error.__doc__ or "" for error in _tree(BunkoError)}
    rows = [(exit, f"`{code}`", told[code]) for code, exit in EXIT_CODES.items()]
    rows.append((1, "", "`bunko doctor` found something that is wrong."))
    rows.append((2, "", "The command line itself makes no sense."))
    rows.append((INTERRUPTED_EXIT_CODE, "", "Ctrl-C. What was written stays, and the next run goes on from there."))
    yield from sorted(rows, key=lambda row: row[0])


def _tree(error: type[BunkoError]) -> Iterator[type[BunkoError]]:
    yield error
    for below in error.__subclasses__():
        yield from _tree(below)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(command_line(), encoding="utf-8")
    Path(__file__).with_name("settings.md").write_text(settings_reference(), encoding="utf-8")
