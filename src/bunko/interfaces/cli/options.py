"""The options that commands share: which library, which settings, how to print."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.paths import LibraryPaths

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
_CONTROL_REPLACEMENTS = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160)), "\ufffd"
)  # all controls but tab and newline


@dataclass(slots=True)
class SharedOptions:
    """What the shared options say."""

    library: Path | None
    database: Path | None
    docs_dir: Path | None
    data_dir: Path | None
    config: Path | None
    as_json: bool
    verbose: bool

    def library_paths(self) -> LibraryPaths:
        """Return the library that is meant."""
        from bunko.library.paths import locate_library

        return locate_library(
            library=self.library,
            database=self.database,
            docs_dir=self.docs_dir,
            data_dir=self.data_dir,
            environ=os.environ,
        )

    def configure_logging(self) -> None:
        """Show what takes how long, if that was asked for; `open` does so by itself."""
        _configure_logging(self.verbose, debug=False)

    def open(self, *, create: bool = True, read_only: bool = False) -> Library:
        """Open the library that is meant; what the settings have to say goes to stderr."""
        from bunko.library.open import open_library

        _configure_logging(self.verbose, debug=False)
        library = open_library(
            self.library_paths(), environ=os.environ, config=self.config, create=create, read_only=read_only
        )
        _configure_logging(self.verbose, debug=library.settings.log.debug)
        for notice in library.notices:
            print_stderr(notice)
        return library

    def library_flags(self, library: Library) -> str:
        """Return what the next command has to be told to mean the same library, after a space; often nothing."""
        config = f" --config {shlex.quote(str(self.config))}" if self.config is not None else ""
        return library.paths.cli_flags() + config


def shared_options(command: F) -> F:
    """Give a command the shared options; it receives them as `chosen`."""
    for option in reversed(
        (
            click.option("--docs-dir", type=PATH, metavar="DIR", help="A folder of documents, with its own index."),
            click.option(
                "--data-dir",
                type=PATH,
                metavar="DIR",
                help="Where the index of --docs-dir lies. [DIR/.rag-index]",
            ),
            click.option(
                "--library", type=PATH, metavar="DIR", help="A library. [$BUNKO_LIBRARY, or your data folder]"
            ),
            click.option("--database", type=PATH, metavar="FILE", help="A library in one file."),
            click.option(
                "--config",
                type=PATH,
                metavar="FILE",
                help="A settings file: bunko.toml, config.yaml, config.toml.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
            click.option("--verbose", "-v", is_flag=True, help="Show what takes how long, on stderr."),
        )
    ):
        command = option(command)
    return command


def chunking_options(command: F) -> F:
    """Give a command the options that say how a tool's documents are cut."""
    for option in reversed(
        (
            click.option(
                "--chunker",
                type=click.Choice(["auto", "headings", "paragraphs", "prose", "tables", "tokens"]),
                help="How to cut its documents. [as the settings say: auto]",
            ),
            click.option(
                "--chunk-size",
                type=click.IntRange(512, 4096),
                metavar="N",
                help="Tokens in a chunk; chooses the chunker tokens. [1024]",
            ),
            click.option(
                "--chunk-overlap",
                type=click.IntRange(0, 4095),
                metavar="N",
                help="Tokens that neighbouring chunks share; chooses the chunker tokens. [64]",
            ),
        )
    ):
        command = option(command)
    return command


def pop_shared_options(options: dict[str, Any]) -> SharedOptions:
    """Take the shared options out of a command's arguments."""
    return SharedOptions(**{name: options.pop(name) for name in SharedOptions.__dataclass_fields__})


def complete_tool_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the tools that a shell may complete to; where there is no library, none, and without a word."""
    from bunko.library.open import tool_names as names

    place = {name: ctx.params.get(name) for name in ("library", "database", "docs_dir", "data_dir", "config")}
    try:
        home = SharedOptions(**place, as_json=False, verbose=False).library_paths()
        found = names(home, environ=os.environ, config=place["config"])
    except Exception:  # whatever is the matter, a command line in the making is no place to tell
        return []
    return [name for name in found if name.startswith(incomplete)]


def print_json(value: Any) -> None:
    """Print JSON that people can read too."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_stderr(message: str) -> None:
    """Tell the user something that is not the answer."""
    click.echo(replace_controls(message), err=True)


def replace_controls(text: str) -> str:
    """Return a text with marks for what a terminal would obey: a document or file name must not steer it."""
    return text.translate(_CONTROL_REPLACEMENTS)


def escape_controls(text: str) -> str:
    """Return a text with everything escaped that would end a line or a column, or steer a terminal: a file's name."""
    return "".join(repr(c)[1:-1] if ord(c) < 32 or 126 < ord(c) < 160 or c in "\u2028\u2029" else c for c in text)


def format_count(number: int, noun: str, plural: str = "", *, number_format: str = "") -> str:
    """Return how many there are of something, in words: 1 file, 2 files; `form` may ask for commas."""
    return f"{number:{number_format}} {noun if number == 1 else plural or f'{noun}s'}"


def is_terminal() -> bool:
    """Say whether a person is looking; a pipe gets plain text."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _configure_logging(verbose: bool, *, debug: bool) -> None:
    log = logging.getLogger("bunko")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
    log.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.getLogger("bunko.retrieve").setLevel(logging.NOTSET if verbose or not debug else logging.INFO)
