"""The entry point: find the command, run it, and turn errors into messages and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from bunko.errors import BunkoError, PackageError, SettingsError
from bunko.interfaces.cli.command_group import CommandGroup, describe_click_error, show_click_error
from bunko.interfaces.cli.help_formatter import TranslatedFormatter
from bunko.interfaces.cli.output import OutputError, discard_output, prepare_streams
from bunko.interfaces.cli.terminal.printing import json_text, print_stderr
from bunko.messages import set_language, translate
from bunko.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Named, not imported: `bunko --help` must not wait for a search engine to load.
COMMANDS = {
    "add": "Add a folder, a file or a web page, and import it.",
    "ask": "Answer a question from your documents, with sources.",
    "audit": "Show who changed the library, when, how, and with what result.",
    "backup": "Write the library to one file, as a backup.",
    "build": "Import memos into the library, or update them.",
    "chat": "Talk about your documents, with sources.",
    "config": "Show the settings and where each comes from, or change one.",
    "completion": "Print a script that completes commands in your shell.",
    "connect": "Connect an assistant: print or write its configuration.",
    "embedders": "List the embedders and what each one needs, or test one.",
    "export": "Export a tool to one file, to import it on another machine.",
    "find": "Search as you type, and open what you find.",
    "get": "Print a document, or the lines that a citation names.",
    "import": "Import a tool's documents into the library.",
    "import-pack": "Import a tool from a file written by `bunko export`.",
    "index": "Look after the index that answers searches.",
    "init": "Create a library and a settings file to edit.",
    "doctor": "Check a library for problems.",
    "help": "Explain a command.",
    "evaluate": "Measure search quality on questions with known answers.",
    "init-test-db": "Create a library of test documents for bunko evaluate.",
    "judge": "Judge search results with single keys, for bunko evaluate.",
    "ls": "List documents by path, tag or date.",
    "models": "List good local models, and get or remove one.",
    "move": "Move the library to another database or file.",
    "open": "Open a document in your editor at the line, or in the browser.",
    "recent": "List the newest documents and memos by date.",
    "reembed": "Embed the texts of tools again with the current embedder.",
    "reindex": "Index a folder, or update its index.",
    "restore": "Make an empty place the library of a backup.",
    "search": "Search documents in Japanese and English.",
    "serve": "Run a server for assistants, programs and browsers.",
    "slack": "Run a Slack bot that answers from the library.",
    "status": "Show what is indexed.",
    "sweep": "Find the settings that score best on known answers.",
    "tags": "List the tags of documents and memos, most used first.",
    "token": "Manage tokens: who may use `bunko serve --http`, and for what.",
    "tool": "Manage tools: the named folders that assistants search.",
    "tune": "Find the best search settings for a tool, without judgements.",
    "ui": "Search and manage the library in your browser.",
    "web": "Collect web pages and keep them up to date.",
    "watch": "Import files as they change, until Ctrl-C.",
}

# How help lists them.
GROUPS = {
    "Begin": ("add", "search", "ui", "connect", "help"),
    "Search and read": ("ask", "chat", "find", "get", "open", "ls", "recent", "tags"),
    "Library": ("status", "tool", "import", "reindex", "build", "watch", "export", "import-pack"),
    "Web and assistants": ("web", "serve", "slack", "token", "audit"),
    "Quality": ("evaluate", "judge", "tune", "sweep", "init-test-db"),
    "Maintenance": (
        "config", "embedders", "models", "reembed", "index", "backup", "restore", "move", "doctor", "init", "completion"
    ),
}  # fmt: skip

# `python -m bunko --docs-dir DIR` is `bunko serve --docs-dir DIR`, as other servers for a folder are started.
_SERVER_OPTIONS = ("--docs-dir", "--data-dir", "--verbose", "-v")

# Where a command is that is not called `command` in a module with its name.
_COMMAND_PLACES = {
    "completion": "help:completion",
    "export": "pack:export",
    "import": "import_tools:command",
    "import-pack": "pack:import_pack",
    "init": "config:init",
    "init-test-db": "evaluate:init_test_db",
    "open": "get:open_document",
    "recent": "ls:recent",
    "reembed": "import_tools:reembed",
    "reindex": "import_tools:reindex",
    "restore": "backup:restore",
    "tags": "ls:tags",
    "ui": "serve:ui",
}

# Every error code has its own exit code, so that scripts can tell errors apart. 2 is a usage or settings error.
EXIT_CODES = {
    "error": 1,
    "settings": 2,
    "source": 3,
    "query": 4,
    "embedder": 5,
    "unknown": 6,
    "refused": 7,
    "fetch": 8,
    "index": 9,
    "library": 10,
    "busy": 11,
    "too-new": 12,
    "damaged": 13,
    "mismatch": 14,
    "read-only": 15,
    "disk-full": 16,
    "unreachable": 17,
    "denied": 18,
    "moved": 19,
    "cluster": 20,
    "model": 21,
    "package": 22,
}
INTERRUPTED_EXIT_CODE = 130
_ENDED_BY_INTERRUPT = ("find", "ui")  # Ctrl-C is how people leave them, also while they start


class LazyCommands(CommandGroup):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = _COMMAND_PLACES.get(cmd_name, f"{cmd_name}:command").partition(":")
        command: click.Command = getattr(import_module(f"bunko.interfaces.cli.commands.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their descriptions, in groups."""
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), COMMANDS[name]) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, show at a terminal how to begin."""
        if not args and sys.stdout.isatty():
            from bunko.interfaces.cli.commands.help import start_page

            click.echo(start_page(ctx))
            ctx.exit()
        if args and args[0].partition("=")[0] in _SERVER_OPTIONS and not COMMANDS.keys() & set(args[2:]):
            args = ["serve", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, without importing them, and the top-level options."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=text) for name, text in sorted(COMMANDS.items()) if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="bunko")
def bunko() -> None:
    """A local-first knowledge engine: search folders, memos and web pages in Japanese and English, offline.

    \b
    Example:
      bunko add ~/notes
      bunko search "環境構築の方法"
    """


def _check_unicode(arguments: list[str]) -> None:
    """Reject arguments that are not UTF-8: they cannot be stored or printed. A pasted query may be anything."""
    for previous, argument in zip(["", *arguments], arguments, strict=False):
        is_option = argument.startswith("-") or (previous.startswith("-") and previous != "--")
        if arguments[0] in ("ask", "search") and not is_option:
            continue
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            option = f" of {previous}" if previous.startswith("-") and not argument.startswith("-") else ""
            escaped = argument.encode("utf-8", "backslashreplace").decode("utf-8")
            raise SettingsError(
                f"The argument{option} is not valid UTF-8: {escaped}",
                hint="Use UTF-8, and rename a file or folder whose name is not.",
            ) from None


def _report(error: BaseException, arguments: list[str]) -> int:
    """Return the exit code of an error: a message on stderr, with --json also an object on stdout; a bug is raised."""
    if isinstance(error, BunkoError):
        return _report_error(error, arguments)
    if isinstance(error, click.ClickException):
        show_click_error(error)
        usage = error.ctx if isinstance(error, click.UsageError) else None
        code = "usage" if isinstance(error, click.UsageError) else "error"
        hint = f"Run: {usage.command_path} --help." if usage else ""
        _print_json_error(arguments, code, describe_click_error(error).rstrip("."), hint)
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        if arguments and arguments[0] in _ENDED_BY_INTERRUPT:
            click.echo(translate("Stopped."), err=True)
            return 0
        click.echo(translate("Interrupted. Finished work is saved; run the command again to continue."), err=True)
        _print_json_error(arguments, "interrupted", "Interrupted", "Run the command again to continue.")
        return INTERRUPTED_EXIT_CODE
    if isinstance(error, BrokenPipeError | OutputError):
        raise error
    from bunko.runtime.package_errors import find_package_error
    from bunko.runtime.packages import used_packages

    packages = used_packages()
    wrong = next((package for package in packages if package.problem and not package.extra), None)
    package_error = find_package_error(error)
    if package_error is None and wrong is not None:
        package_error = PackageError(wrong.problem, hint=wrong.remedy)
    if package_error is not None and not {"-v", "--verbose"}.intersection(arguments):
        return _report_error(package_error, arguments)
    # Below the traceback, because often they are the cause of a bug.
    for package in packages:
        if package.problem:
            error.add_note(f"{package.problem}. {package.remedy}")
        elif package.is_newer:
            text = f"{package.name} {package.version} is newer than {package.tested_version}, which was tested."
            error.add_note(text)
    raise error


def _report_error(error: BunkoError, arguments: list[str]) -> int:
    """Print an error, and return its exit code."""
    # A name in it may have a line break; a line of ours begins at the margin.
    message = translate(error.message).replace("\n", "\n  ")
    print_stderr(f"{translate('Error')}: {message}")
    if error.hint:
        print_stderr(error.hint)
    _print_json_error(arguments, error.code, error.message, error.hint)
    return EXIT_CODES[error.code]


def _print_json_error(arguments: list[str], code: str, message: str, hint: str) -> None:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in options or "--format=json" in options or ("--format", "json") in pairwise(options):
        # On one line, because some commands print an object per line.
        click.echo(json_text({"error": {"code": code, "message": message, "hint": hint}}))


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line, and print errors that the user can act on as messages."""
    # Our matrix products are small: on a busy machine, a second BLAS thread spins and costs milliseconds of waiting.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    prepare_streams()
    click.Context.formatter_class = TranslatedFormatter
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            detect_language()
            _check_unicode(arguments)
            exit_code = bunko.main(args=arguments, prog_name="bunko", standalone_mode=False)
        except (Exception, KeyboardInterrupt) as error:
            exit_code = _report(error, arguments)
        sys.stdout.flush()
        if isinstance(exit_code, int) and exit_code:
            sys.exit(exit_code)
    except BrokenPipeError:
        # The reader of our output has exited (| head); flushing at exit would only raise again.
        sys.stderr.close()
        sys.exit(0)
    except OutputError as error:
        click.echo(translate(f"Error: The output cannot be written: {error.strerror}"), err=True)
        discard_output()
        sys.exit(EXIT_CODES["disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "error"])


_VARIABLE = "BUNKO_DISPLAY_LANGUAGE"


def detect_language() -> None:
    """Choose the language by the environment or the user's own config file, before a library is open."""
    set_language(os.environ.get(_VARIABLE) or _language_of_user())


def _language_of_user() -> str | None:
    """Return the language in the user's own config file; one that cannot be read is reported when it is loaded."""
    from bunko.library.opening.paths import user_config_folder

    folder = user_config_folder()
    try:
        texts = [path.read_bytes() for path in folder.iterdir() if path.suffix in (".toml", ".yaml")]
    except OSError:
        return None
    if not any(b"language" in text for text in texts):
        return None  # the settings take time to load, and `--help` should not
    from bunko.settings.files import CONFIG_NAMES, read_config

    path = next((path for name in CONFIG_NAMES if (path := folder / name).is_file()), folder)
    try:
        display = read_config(path).get("display")
    except BunkoError:
        return None
    return display.get("language") if isinstance(display, dict) else None
