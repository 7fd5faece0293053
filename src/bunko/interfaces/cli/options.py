"""The options that all commands share."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bunko.errors import QueryError, SourceError
from bunko.interfaces.cli.terminal.printing import escape_controls, print_stderr
from bunko.messages import set_language, translate
from bunko.readers.encoding import decode
from bunko.text.tags import normalise_tag
from bunko.types.records import Filter

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.opening.paths import LibraryPaths
    from bunko.settings import LoadedSettings

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class SharedOptions:
    """The values of the options that all commands share."""

    library: Path | None = None
    database: Path | None = None
    docs_dir: Path | None = None
    data_dir: Path | None = None
    config: Path | None = None
    as_json: bool = False
    verbose: bool = False
    _printed: set[str] = field(default_factory=set, init=False)  # notices about the current folder

    def names_library(self) -> bool:
        """Return whether an option names the library or folder to use."""
        return any(path is not None for path in (self.library, self.database, self.docs_dir, self.data_dir))

    def library_paths(self) -> LibraryPaths:
        """Return the paths of the selected library."""
        from bunko.library.opening.paths import locate_library

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
        from bunko.library.opening.load_settings import load_library_settings

        loaded = load_library_settings(
            self.library_paths(),
            environ=os.environ,
            flags=flags,
            config=self.config,
            current_folder=current_folder(),
            all_providers=all_providers,
        )
        set_language(loaded.settings.display.language)
        self._print_once(loaded.current_folder_notices)
        return loaded

    def load_all_settings(self) -> LoadedSettings:
        """Load the settings of the selected library with those of all providers, and print the notices about them."""
        loaded = self.load_settings(all_providers=True)
        for notice in loaded.notices:
            print_stderr(notice)
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
            current_folder=current_folder(),
            create=create,
            read_only=read_only,
            allow_moved=allow_moved,
        )
        _configure_logging(self.verbose, debug=library.settings.log.debug)
        set_language(library.settings.display.language)
        self._print_once(library.current_folder_notices)
        for notice in library.notices:
            print_stderr(notice)
        return library

    def _print_once(self, notices: Sequence[str]) -> None:
        for notice in notices:
            if notice not in self._printed:
                self._printed.add(notice)
                print_stderr(notice)

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


class _LibraryOption(click.Option):
    """An option with a second name from another program, which help does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the first name and the help."""
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


PATH = _PathType(path_type=Path)
TEXT_PATH = _PathType()


def gather_options(options_class: Callable[..., object], name: str = "options") -> Callable[[F], F]:
    """Let a command take the options that a dataclass has as fields as one argument of that type."""
    names = tuple(inspect.signature(options_class).parameters)

    def gather(values: dict[str, Any]) -> None:
        values[name] = options_class(**{field: values.pop(field) for field in names if field in values})

    return lambda command: _gather_first(command, gather)


def _gather_first(command: F, gather: Callable[[dict[str, Any]], None]) -> F:
    """Let a command gather some of its values into one before it runs, and before what it gathers already."""
    gatherers: list[Callable[[dict[str, Any]], None]] = getattr(command, "gatherers", [])
    gatherers.insert(0, gather)
    if len(gatherers) > 1:
        return command

    @functools.wraps(command)
    def run(*arguments: Any, **values: Any) -> Any:
        for each in gatherers:
            each(values)
        return command(*arguments, **values)

    run.gatherers = gatherers  # type: ignore[attr-defined]
    return cast("F", run)


def shared_options(command: F) -> F:
    """Add the shared options to a command, which takes them as `shared`."""
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
    command = gather_options(SharedOptions, "shared")(command)
    for option in reversed(
        (
            click.option(
                "--library",
                "--index-dir",
                cls=_LibraryOption,
                type=PATH,
                metavar="DIR",
                help="Library folder. [$BUNKO_LIBRARY, or your data folder]",
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


def filter_options(command: F) -> F:
    """Add the options that choose documents by tag and date; the command takes a filter of them as `where`."""

    def gather(values: dict[str, Any]) -> None:
        tags = tuple(map(normalise_tag, values.pop("tags")))
        values["where"] = Filter(tags=tags, since=values.pop("since") or "", until=values.pop("until") or "")

    filtered = _gather_first(command, gather)
    for option in reversed(
        (
            click.option(
                "--tag",
                "tags",
                multiple=True,
                metavar="TAG",
                help="Only documents with this tag; may be repeated.",
            ),
            click.option(
                "--since",
                metavar="DATE",
                help="Only documents from this date on: 2024-01-15, 2024-01, yesterday, last month, or 2w for two"
                " weeks ago.",
            ),
            click.option("--until", metavar="DATE", help="Only documents up to this date."),
        )
    ):
        filtered = option(filtered)
    return filtered


def current_folder() -> Path | None:
    """Return the current folder, or None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def read_words(words: Sequence[str]) -> str:
    """Return the words of a query as one text; a single - stands for standard input."""
    if tuple(words) != ("-",):
        return " ".join(words)
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
    get = ctx.params.get
    shared = SharedOptions(get("library"), get("database"), get("docs_dir"), get("data_dir"), get("config"))
    return [name for name in find_tool_names(shared) if name.startswith(incomplete)]


def find_tool_names(shared: SharedOptions) -> list[str]:
    """Return the names of a library's tools; none, without an error, if there is no library. Nothing is created."""
    from bunko.library.tools.names import tool_names

    try:
        return tool_names(shared.library_paths(), environ=os.environ, config=shared.config)
    except Exception:  # an error message would garble the command line that is being typed
        return []


class _LogFormatter(logging.Formatter):
    """Write log messages in the user's language."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802, its name in the standard library
        """Return the line of a record."""
        record.message = escape_controls(translate(record.message))
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
