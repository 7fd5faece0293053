"""Options and output helpers that all commands share."""

from __future__ import annotations

import functools
import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bunko.interfaces.cli.help_formatter import cell_count
from bunko.interfaces.cli.language import set_language, translate

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.paths import LibraryPaths
    from bunko.settings import LoadedSettings

F = TypeVar("F", bound=Callable[..., Any])
# All control characters except tab and newline.
_CONTROL_REPLACEMENTS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "\ufffd")


@dataclass(slots=True)
class SharedOptions:
    """The values of the options that all commands share."""

    library: Path | None
    database: Path | None
    docs_dir: Path | None
    data_dir: Path | None
    config: Path | None
    as_json: bool
    verbose: bool

    def names_library(self) -> bool:
        """Return whether an option names the library or folder to use."""
        return any(path is not None for path in (self.library, self.database, self.docs_dir, self.data_dir))

    def library_paths(self) -> LibraryPaths:
        """Return the paths of the selected library."""
        from bunko.library.paths import locate_library

        return locate_library(
            library=self.library,
            database=self.database,
            docs_dir=self.docs_dir,
            data_dir=self.data_dir,
            environ=os.environ,
        )

    def load_settings(
        self, flags: Mapping[str, object] | None = None, *, all_providers: bool = False
    ) -> LoadedSettings:
        """Load the settings of the selected library without opening it; `flags` override them."""
        from bunko.library.load_settings import load_library_settings

        loaded = load_library_settings(
            self.library_paths(),
            environ=os.environ,
            flags=flags,
            config=self.config,
            all_providers=all_providers,
        )
        set_language(loaded.settings.display.language)
        return loaded

    def configure_logging(self) -> None:
        """Print timings to stderr with --verbose; `open` calls this itself."""
        _configure_logging(self.verbose, debug=False)

    def open(self, *, create: bool = True, read_only: bool = False, allow_moved: bool = False) -> Library:
        """Open the selected library and print its notices to stderr."""
        from bunko.library.open import open_library

        _configure_logging(self.verbose, debug=False)
        library = open_library(
            self.library_paths(),
            environ=os.environ,
            config=self.config,
            create=create,
            read_only=read_only,
            allow_moved=allow_moved,
        )
        _configure_logging(self.verbose, debug=library.settings.log.debug)
        set_language(library.settings.display.language)
        for notice in library.notices:
            print_stderr(notice)
        return library

    def library_flags(self, library: Library) -> str:
        """Return the options, after a space, with which a suggested command opens this library; often none."""
        config = f" --config {shlex.quote(str(self.config))}" if self.config is not None else ""
        return library.paths.cli_flags() + config


class _PathType(click.Path):
    """A path; an empty one, as of a variable that is not set, would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


PATH = _PathType(path_type=Path)
TEXT_PATH = _PathType()


def shared_options(command: F) -> F:
    """Add the shared options to a command, which reads them with `pop_shared_options`."""
    command = library_options(command)
    for option in reversed(
        (
            click.option("--docs-dir", type=PATH, metavar="DIR", help="Folder of documents with its own index."),
            click.option(
                "--data-dir", type=PATH, metavar="DIR", help="Folder for the index of --docs-dir. [DIR/.rag-index]"
            ),
        )
    ):
        command = option(command)
    return command


def library_options(command: F) -> F:
    """Add the shared options without those for a folder with its own index."""
    for option in reversed(
        (
            click.option(
                "--library", type=PATH, metavar="DIR", help="Library folder. [$BUNKO_LIBRARY, or your data folder]"
            ),
            click.option("--database", type=PATH, metavar="FILE", help="Library in a single file."),
            click.option(
                "--config",
                type=PATH,
                metavar="FILE",
                help="Settings file: bunko.toml, config.yaml or config.toml.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
            click.option("--verbose", "-v", is_flag=True, help="Print timings to stderr."),
        )
    ):
        command = option(command)
    return command


def cluster_option(command: F) -> F:
    """Add the option that selects where documents are prepared."""
    return click.option(
        "--on",
        metavar="PLACE",
        help="Where to prepare documents: local, ray, ray:auto or ray://HOST:PORT. [from the settings: local]",
    )(command)


def chunking_options(command: F) -> F:
    """Add the options that select how documents are split into chunks."""
    for option in reversed(
        (
            click.option(
                "--chunker",
                type=click.Choice(["auto", "headings", "paragraphs", "prose", "tables", "tokens"]),
                help="How to split documents into chunks. [from the settings: auto]",
            ),
            click.option(
                "--chunk-size",
                type=click.IntRange(512, 4096),
                metavar="N",
                help="Tokens per chunk; selects the chunker tokens. [1024]",
            ),
            click.option(
                "--chunk-overlap",
                type=click.IntRange(0, 4095),
                metavar="N",
                help="Tokens shared by neighbouring chunks; selects the chunker tokens. [64]",
            ),
        )
    ):
        command = option(command)
    return command


def name_argument(command: F) -> F:
    """Let a command take the name of a tool as an argument, or with -n."""

    @click.argument("name_argument", required=False, metavar="NAME", shell_complete=complete_tool_names)
    @click.option("--name", "-n", metavar="NAME", help="Name of the tool.", shell_complete=complete_tool_names)
    @functools.wraps(command)
    def run(name_argument: str | None, name: str | None, **options: Any) -> Any:
        if name_argument is not None and name is not None:
            raise click.UsageError("The tool is named both by an argument and with --name.")
        if name is None and name_argument is None:
            raise click.MissingParameter(param_type="argument", param_hint="'NAME'")
        return command(name=name or name_argument, **options)

    return cast("F", run)


def names_option(help_text: str) -> Callable[[F], F]:
    """Let a command take the names of several tools as `names`."""
    return click.option(
        "--name",
        "-n",
        "names",
        multiple=True,
        metavar="TOOL",
        help=f"{help_text}; may be repeated.",
        shell_complete=complete_tool_names,
    )


def pop_shared_options(options: dict[str, Any]) -> SharedOptions:
    """Remove the shared options from a command's arguments and return them."""
    return SharedOptions(**{name: options.pop(name, None) for name in SharedOptions.__dataclass_fields__})


def read_words(words: Sequence[str]) -> str:
    """Return the words of a query as one text; a single - stands for standard input."""
    if tuple(words) != ("-",):
        return " ".join(words)
    from bunko.errors import QueryError, SourceError
    from bunko.readers.encoding import decode

    try:
        text, _ = decode(sys.stdin.buffer.read())
    except SourceError as error:
        raise QueryError("Standard input is not text", hint="Pipe text in UTF-8 into it.") from error
    if not text.strip():
        command = click.get_current_context().info_name
        raise QueryError("Standard input is empty", hint=f"Pipe text into it, as in: bunko {command} - < FILE.")
    return text.strip()


def complete_tool_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the tool names that a shell may complete to."""
    location = {name: ctx.params.get(name) for name in ("library", "database", "docs_dir", "data_dir", "config")}
    return [name for name in find_tool_names(**location) if name.startswith(incomplete)]


def find_tool_names(**location: Any) -> list[str]:
    """Return the names of a library's tools; none, without an error, if there is no library. Nothing is created."""
    from bunko.library.tool_names import tool_names

    options = dict.fromkeys(("library", "database", "docs_dir", "data_dir", "config")) | location
    try:
        paths = SharedOptions(**options, as_json=False, verbose=False).library_paths()
        return tool_names(paths, environ=os.environ, config=options["config"])
    except Exception:  # an error message would garble the command line that is being typed
        return []


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_stderr(message: str) -> None:
    """Print a message that is not part of the answer to stderr, in the user's language."""
    click.echo(replace_controls(translate(message)), err=True)


def say(message: str) -> None:
    """Print a message for people to stdout, in the user's language."""
    click.echo(replace_controls(translate(message)))


def print_labelled(values: Mapping[str, str], *, in_language: bool = True) -> None:
    """Print values below each other after their labels, in the user's language unless a program reads them."""
    labels = [f"{translate(label) if in_language else label}:" for label in values]
    width = max(map(cell_count, labels))
    for label, value in zip(labels, values.values(), strict=True):
        click.echo(replace_controls(f"{label}{' ' * (width - cell_count(label))} {value}"))


def confirm(question: str) -> bool:
    """Ask a question on stderr, in the user's language, and return whether the answer is yes."""
    return click.confirm(replace_controls(translate(question)), err=True)


def replace_controls(text: str) -> str:
    """Replace control characters, so that a document or file name cannot control the terminal."""
    return text.translate(_CONTROL_REPLACEMENTS)


def escape_controls(text: str) -> str:
    """Escape everything in a file name that would end a line or column, or control the terminal."""
    return "".join(
        repr(char)[1:-1] if ord(char) < 32 or 126 < ord(char) < 160 or char in "\u2028\u2029" else char for char in text
    )


def is_terminal() -> bool:
    """Return whether stdout is a terminal that can draw; a pipe gets plain text."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class _LogFormatter(logging.Formatter):
    """Write log messages in the user's language."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802, its name in the standard library
        """Return the line of a record."""
        record.message = translate(record.message)
        return super().formatMessage(record)


def _configure_logging(verbose: bool, *, debug: bool) -> None:
    log = logging.getLogger("bunko")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_LogFormatter("%(levelname)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
    log.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.getLogger("bunko.retrieve").setLevel(logging.NOTSET if verbose or not debug else logging.INFO)
