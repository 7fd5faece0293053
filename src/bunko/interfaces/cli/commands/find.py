"""The `bunko find` command: search as you type, and open what you find."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from logging.handlers import MemoryHandler
from typing import TYPE_CHECKING

import click

from bunko.errors import BunkoError
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.commands.search import RESULTS_PER_DOCUMENT
from bunko.interfaces.cli.options import SharedOptions, names_option, shared_options
from bunko.interfaces.cli.terminal.printing import replace_controls
from bunko.interfaces.programs import open_command, run_program
from bunko.messages import translate
from bunko.readers.outline import unify_line_ends
from bunko.search.citations import Citation
from bunko.search.passages import snippet_terms
from bunko.text.snippets import highlight_ranges

if TYPE_CHECKING:
    from bunko.interfaces.cli.terminal.finder import Fragments
    from bunko.library.library import Library
    from bunko.types import Answer, Hit

_MAX_HITS = 50
# Lines above the hit, to see where it stands, and as many below as a tall terminal shows.
_LINES_ABOVE, _LINES_BELOW = 2, 100
_MAX_LINE_CHARS = 2000
# A pause in typing after which a search starts; a service counts every search, so that there the pause is longer.
_TYPING_SECONDS, _REMOTE_TYPING_SECONDS = 0.08, 0.5


@click.command()
@click.argument("query", nargs=-1, metavar="[QUERY]...")
@names_option("Search only this tool")
@shared_options
def command(query: tuple[str, ...], names: tuple[str, ...], shared: SharedOptions) -> None:
    """Search as you type, and open what you find.

    Up and Down choose a hit, Enter opens it as `bunko open` does, Ctrl-Y prints its citation and leaves, Esc leaves.

    \b
    Example:
      bunko find
      bunko find 環境構築 --docs-dir ~/notes
      bunko get "$(bunko find)"
    """
    if shared.as_json:
        raise click.UsageError("bunko find has no JSON output; use bunko search --json")
    # Stdout may be a pipe that gets the citation.
    can_draw = (sys.stdout.isatty() or sys.stderr.isatty()) and os.environ.get("TERM") != "dumb"
    if not (can_draw and sys.stdin.isatty()):
        raise BunkoError("bunko find needs a terminal", hint="Use bunko search QUERY in a pipe or a script.")
    with shared.open(create=shared.docs_dir is not None) as library:
        tool = names[0] if len(names) == 1 else names or None
        session = Session(library, tool, shared.library_flags(library))
        embedder = library.embedder()
        is_remote = embedder is not None and embedder.is_remote
        finder = terminal.finder.Finder(
            session.search,
            session.preview,
            session.open,
            query=" ".join(query),
            delay=_REMOTE_TYPING_SECONDS if is_remote else _TYPING_SECONDS,
        )
        with _hold_log_messages():
            hit = finder.run()
        if hit is not None:
            library.log_search(finder.query, tool)
            click.echo(replace_controls(hit.citation))


@contextmanager
def _hold_log_messages() -> Iterator[None]:
    """Print log messages at the end: they would be drawn across the screen."""
    log = logging.getLogger("bunko")
    handlers = list(log.handlers)
    held = [MemoryHandler(10_000, flushLevel=logging.CRITICAL + 1, target=handler) for handler in handlers]
    log.handlers[:] = held
    try:
        yield
    finally:
        log.handlers[:] = handlers
        for handler in held:
            handler.close()


class Session:
    """What the screen needs of a library: search it, show a hit in its document, and open that."""

    def __init__(self, library: Library, tool: str | tuple[str, ...] | None, library_flags: str) -> None:
        self._library, self._tool, self._library_flags = library, tool, library_flags

    def search(self, query: str) -> Answer:
        """Return the best hits; a reranker is too slow for every key."""
        return self._library.search(
            query, tool=self._tool, top_k=_MAX_HITS, per_document=RESULTS_PER_DOCUMENT, fill_up=True, rerank=False
        )

    def open(self, hit: Hit, query: str) -> None:
        """Open the document of a hit at its first line."""
        target = self._library.documents.find(hit.uri, tool=hit.tool)
        target = replace(target, citation=Citation(hit.uri, *hit.lines))
        self._library.log_search(query, self._tool)
        arguments = open_command(target, os.environ, library_flags=self._library_flags)
        run_program(arguments, is_browser=bool(target.url))

    def preview(self, hit: Hit, query: str) -> Fragments:
        """Return the lines around a hit, with the words of the query marked."""
        labels = [hit.date[:10], *(f"#{tag}" for tag in hit.tags)]
        fragments: Fragments = [
            ("class:title", f"{_one_line(hit.title or hit.uri)}\n"),
            ("class:detail", f"{_one_line('  '.join(filter(None, labels)))}\n" if any(labels) else ""),
        ]
        document = self._library.document_of(hit)
        if document is None:
            return [*fragments, ("class:error", translate("This document is no longer in the library."))]
        lines = unify_line_ends(document.text).split("\n")
        is_single_line = document.lines.is_single_line
        first, last = (0, len(lines)) if is_single_line else (line - document.lines.first for line in hit.lines)
        begin, end = max(0, first - _LINES_ABOVE), min(len(lines), first + _LINES_BELOW)
        width = len(str(document.lines.first + end))
        terms = snippet_terms(query)
        for index in range(begin, end):
            number = "" if is_single_line else str(document.lines.first + index)
            style = "class:hit" if first <= index <= last else "class:context"
            line = replace_controls(lines[index][:_MAX_LINE_CHARS]).replace("\t", "    ")
            position = 0
            fragments.append(("class:number", f"{number:>{width}} "))
            for match_start, match_end in highlight_ranges(line, terms):
                fragments += [
                    (style, line[position:match_start]),
                    (f"{style} class:match", line[match_start:match_end]),
                ]
                position = match_end
            fragments.append((style, f"{line[position:]}\n"))
        return fragments


def _one_line(text: str) -> str:
    return " ".join(replace_controls(text).split())
