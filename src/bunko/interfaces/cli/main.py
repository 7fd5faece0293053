"""Arguments in, an exit code out: finds the command, runs it, and turns errors into sentences."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from bunko import __version__
from bunko.errors import BunkoError, SettingsError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Named, not imported: `bunko --help` must not wait for a search engine to load.
COMMANDS = {
    "build": "Bring memos into the library, or take in what changed in them.",
    "config": "Show the settings in force and where each came from.",
    "completion": "Print a script that lets a shell complete commands, options and the names of tools.",
    "connect": "Tell an assistant about bunko: print or write its configuration.",
    "embedders": "List what can make vectors, what each lacks, and try one.",
    "export": "Write a tool into one file that another machine can take in.",
    "import": "Bring a tool's documents into the library.",
    "import-pack": "Take in a tool that `bunko export` wrote, ready to be searched.",
    "init": "Begin a library: make it and write a settings file to edit.",
    "doctor": "Check a library, and that its texts can be found.",
    "evaluate": "Measure how well questions with known answers are answered.",
    "init-test-db": "Keep a library of judged documents, for bunko evaluate.",
    "judge": "Say which results are right, one key each, for bunko evaluate.",
    "recent": "List the newest documents and memos by their dates.",
    "reembed": "Give tools the vectors of another embedder, from the texts they hold.",
    "reindex": "Make a folder searchable, or bring it up to date.",
    "search": "Find text in Japanese or English.",
    "serve": "Serve assistants over MCP.",
    "status": "Show what is indexed.",
    "sweep": "Find the settings that answer questions with known answers best.",
    "tags": "List the tags of documents and memos, the most used first.",
    "tool": "Name folders, describe them, and show them to assistants.",
    "tune": "Find the settings that search a tool best, without judgements.",
    "web": "Collect web pages, and keep them up to date.",
    "watch": "Keep tools fresh as their files change, until Ctrl-C.",
}

# A module cannot be named by a word of the language, nor with a dash.
_COMMAND_MODULES = {"import": "import_tools", "init-test-db": "init_test_db", "import-pack": "import_pack"}

# Every error code has its exit code, so that scripts can tell them apart. 2 is a wrong command line or setting.
EXIT_CODES = {
    "error": 1,
    "settings": 2,
    "source": 3,
    "query": 4,
    "embedder": 5,
    "unknown": 6,
    "refused": 7,
    "fetch": 8,
    "library": 10,
    "busy": 11,
    "too-new": 12,
    "damaged": 13,
    "mismatch": 14,
    "read-only": 15,
    "disk-full": 16,
}
INTERRUPTED_EXIT_CODE = 130


class LazyCommands(click.Group):
    """Loads a command when it is called; lists all without loading any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, loaded."""
        if cmd_name not in COMMANDS:
            return None
        module = _COMMAND_MODULES.get(cmd_name, cmd_name)
        command: click.Command = import_module(f"bunko.interfaces.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their one sentence each."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands without loading any, and this program's own options."""
        from click.shell_completion import CompletionItem

        offered = [CompletionItem(name, help=text) for name, text in sorted(COMMANDS.items())]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [one for one in offered if one.value.startswith(incomplete)] + options

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, and name the nearest one where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(error.message + meant, ctx) from error


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="bunko")
def bunko() -> None:
    """A local-first knowledge engine: folders become searchable, in Japanese and English, offline.

    \b
    Example:
      bunko reindex --docs-dir ~/notes
      bunko search "環境構築の方法" --docs-dir ~/notes
    """


def _check_unicode(arguments: list[str]) -> None:
    """Refuse what is not UTF-8: it can be neither stored nor printed. A query may be anything, as pasted."""
    for before, argument in zip(["", *arguments], arguments, strict=False):
        is_option = argument.startswith("-") or (before.startswith("-") and before != "--")
        if arguments[0] == "search" and not is_option:
            continue
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            option = f" of {before}" if before.startswith("-") and not argument.startswith("-") else ""
            shown = argument.encode("utf-8", "backslashreplace").decode("utf-8")
            raise SettingsError(
                f"The argument{option} is not valid Unicode: {shown}",
                hint="Write it in UTF-8; a file or folder that is called so has to be renamed.",
            ) from None


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; errors that the user can act on are told in sentences."""
    # A second thread spins beside products this small, and on a busy machine they wait for each other for milliseconds.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character should show a mark instead of stopping us.
            stream.reconfigure(errors="replace")
    try:
        _check_unicode(sys.argv[1:] if arguments is None else arguments)
        bunko.main(args=arguments, prog_name="bunko", standalone_mode=False)
    except BunkoError as error:
        from bunko.interfaces.cli.options import print_stderr

        print_stderr(f"Error: {error.message}")
        if error.hint:
            print_stderr(error.hint)
        sys.exit(EXIT_CODES[error.code])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; what was written stays, and the next run goes on from there.", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)
    except BrokenPipeError:
        # Whoever read our output has gone (| head); flushing at exit would only complain.
        sys.stderr.close()
        sys.exit(0)
