"""Write `docs/cli.md` and `docs/settings.md` from the commands and the settings.

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

Output is plain text in a pipe and JSON with `--json`. Notices, progress and errors go to stderr. With `--json`, an
error is also [an object on stdout](json.md#errors).
"""
EXITS = """
## Exit codes

An error message says what happened and what to do next. Each kind of error has its own exit code.

| exit | code | meaning |
|---:|---|---|
| 0 | | Success. |
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
    # Other modules have errors of these kinds, too, and a test may have imported them.
    errors = [error for error in _tree(BunkoError) if error.__module__ == BunkoError.__module__]
    descriptions = {error.code: error.__doc__ or "" for error in errors}
    rows = [(exit, f"`{code}`", descriptions[code]) for code, exit in EXIT_CODES.items()]
    rows.append((1, "", "`bunko search` found nothing. An error begins with `Error:` on stderr, this does not."))
    rows.append((1, "", "`bunko doctor` found an error."))
    rows.append((2, "", "The command line is invalid."))
    rows.append(
        (
            INTERRUPTED_EXIT_CODE,
            "",
            "Ctrl-C, except in `bunko ui` and `bunko find`. Finished work is saved; run the command again to continue.",
        )
    )
    yield from sorted(rows, key=lambda row: row[0])


def _tree(error: type[BunkoError]) -> Iterator[type[BunkoError]]:
    yield error
    for below in error.__subclasses__():
        yield from _tree(below)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(command_line(), encoding="utf-8")
    Path(__file__).with_name("settings.md").write_text(settings_reference(), encoding="utf-8")
