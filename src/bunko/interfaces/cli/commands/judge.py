"""The `bunko judge` command: judge search results for `bunko evaluate`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.evaluation.dataset import read_text_file
from bunko.evaluation.judge import (
    GRADES,
    Judgements,
    default_file,
    hold_judgements,
    pool_hits,
    unjudged_hits,
    unjudged_queries,
)
from bunko.evaluation.report import format_count
from bunko.interfaces.cli.options import PATH, SharedOptions, complete_tool_names, gather_options, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, replace_controls
from bunko.search.passages import split_author
from bunko.text.normalise import escape_surrogates

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.types import Hit, Tool

_KEY_HELP = "y yes · n no · 1 2 3 grade · s skip · u undo · q quit"
_LAST_KEY_HELP = "u undo · q quit"
_MAX_LINES, _MAX_LINE_CHARS = 6, 160
_QUIT_KEYS = ("q", "\x03", "\x04", "")


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """What `bunko judge` was asked for, beside the queries."""

    name: str | None
    output: Path | None
    top_k: int
    kept: bool
    clear_kept: bool


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--name", "-n", metavar="TOOL", help="Tool name. [the only tool]", shell_complete=complete_tool_names)
@click.option("--queries", "listed", type=PATH, metavar="FILE", help="File of queries, one per line.")
@click.option("--output", type=PATH, metavar="FILE", help="Judgements file. [judged/TOOL.json in the library]")
@click.option("--top-k", "-k", type=click.IntRange(1, 100), default=5, metavar="N", help="Results per search mode. [5]")
@click.option("--kept", is_flag=True, help="List the recorded searches.")
@click.option("--clear-kept", is_flag=True, help="Delete the recorded searches.")
@gather_options(JudgeOptions)
@shared_options
def command(queries: tuple[str, ...], listed: Path | None, options: JudgeOptions, shared: SharedOptions) -> None:
    """Judge search results with single keys, for bunko evaluate.

    The results of all search modes are combined, and each document is shown once. Without a query, you judge recorded
    searches (log.keep_searches) that have no judgements yet. Each judgement is saved at once, so you can quit at any
    time and continue later. In a pipe, each line is a key.

    \b
    Example:
      bunko judge "環境構築の方法" --docs-dir ~/notes
      bunko judge -n notes --queries questions.txt --output judged.json
      bunko evaluate --dataset judged.json --name notes
    """
    if options.kept or options.clear_kept:
        if queries or listed or (options.kept and options.clear_kept):
            raise click.UsageError("--kept and --clear-kept cannot be combined with queries or each other")
        with shared.open(create=False) as library:
            if options.clear_kept:
                count = library.searches.log.clear()
                if shared.as_json:
                    print_json({"forgotten": count})
                else:
                    click.echo(f"Deleted {count} recorded {'search' if count == 1 else 'searches'}.")
            else:
                _print_logged_searches(library, shared.as_json)
        return
    with shared.open(create=False) as library:
        tool = library.resolve_tool(options.name)
        judgements = Judgements(options.output or default_file(library, tool), tool.name)
        selected = [
            *queries,
            *([line.strip() for line in read_text_file(listed).splitlines() if line.strip()] if listed else ()),
        ]
        if not selected and not listed:
            selected = unjudged_queries(library.searches.log.all(), tool, judgements)
            if not selected:
                raise click.UsageError("No query given, and there are no recorded searches to judge")
        count_before = judgements.counts()[1]
        session = _JudgingSession(library, tool, judgements, options.top_k, to_stderr=shared.as_json)
        session.run(list(dict.fromkeys(selected)))
        new_judgements = judgements.counts()[1] - count_before
        _print_summary(library, tool, judgements, new_judgements, as_json=shared.as_json)


class _JudgingSession:
    """Shows results one by one and reads a key for each; undo goes back across queries."""

    def __init__(self, library: Library, tool: Tool, judgements: Judgements, depth: int, *, to_stderr: bool) -> None:
        self._library, self._tool, self._judgements, self._depth = library, tool, judgements, depth
        self._to_stderr = to_stderr  # with --json, stdout is for the summary only

    def run(self, queries: Sequence[str]) -> None:
        """Ask about the results of each query until all are judged or the user quits."""
        unjudged = self._unjudged_hits(queries)
        history: list[tuple[str, Hit]] = []
        position = 0
        while True:
            if position == len(history):
                following = next(unjudged, None)
                if following is not None:
                    history.append(following)
                elif not position:
                    return
            if position < len(history):
                self._print_hit(*history[position])
                key = self._read_key("Relevant?", _KEY_HELP, (*GRADES, "s", "u"))
            else:
                key = self._read_key("No more results.", _LAST_KEY_HELP, ("u",))
            if key in _QUIT_KEYS:
                return
            if key == "u":
                if position == 0:
                    self._print("Nothing to undo.")
                    continue
                position -= 1
                self._save_grade(*history[position], None)
                continue
            if key != "s":
                self._save_grade(*history[position], GRADES[key])
            position += 1

    def _unjudged_hits(self, queries: Sequence[str]) -> Iterator[tuple[str, Hit]]:
        for number, query in enumerate(queries, 1):
            hits = pool_hits(self._library, self._tool, query, depth=self._depth, refresh=number == 1)
            remaining = unjudged_hits(hits, query, self._judgements)
            judged = f", {len(hits) - len(remaining)} already judged" if len(remaining) < len(hits) else ""
            self._print(f"\nQuery {number} of {len(queries)}: {query} ({format_count(len(hits), 'document')}{judged})")
            yield from ((query, hit) for hit in remaining)

    def _print_hit(self, query: str, hit: Hit) -> None:
        self._print(f"\n{hit.title or hit.uri}   for: {query}\n{hit.citation}")
        if headings := split_author(hit)[1]:
            self._print(" > ".join(headings))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_MAX_LINES]:
            self._print(f"    {line[:_MAX_LINE_CHARS]}{'…' * (len(line) > _MAX_LINE_CHARS)}")
        if len(lines) > _MAX_LINES:
            self._print(f"    … {len(lines) - _MAX_LINES} more lines")

    def _read_key(self, question: str, key_help: str, keys: Sequence[str]) -> str:
        """Return the next valid key; the end of a pipe quits."""
        while True:
            click.echo(f"{question} [{key_help}] ", nl=False, err=self._to_stderr)
            if sys.stdin.isatty():
                key = click.getchar().lower()
                click.echo(replace_controls(key) if key.isprintable() else "", err=self._to_stderr)
            else:
                line = sys.stdin.readline()
                key = line.strip().lower()
                click.echo(replace_controls(key), err=self._to_stderr)
                if line and not key:
                    continue
            if key in (*keys, *_QUIT_KEYS):
                return key

    def _save_grade(self, query: str, hit: Hit, grade: float | None) -> None:
        with hold_judgements(self._library):
            self._judgements.set_grade(query, escape_surrogates(hit.uri), grade)

    def _print(self, text: str) -> None:
        click.echo(replace_controls(text), err=self._to_stderr)


def _print_summary(library: Library, tool: Tool, judgements: Judgements, new_judgements: int, *, as_json: bool) -> None:
    query_count, judgement_count = judgements.counts()
    if as_json:
        fields = {"tool": tool.name, "file": str(judgements.path), "new": new_judgements}
        print_json(fields | {"queries": query_count, "judgements": judgement_count})
        return
    counts = f"{format_count(judgement_count, 'judgement')} for {format_count(query_count, 'query', 'queries')}"
    click.echo(replace_controls(f"\n{counts} in {judgements.path}"))
    if judgement_count:
        location = library.paths.cli_arguments() if library.paths.is_explicit else []
        evaluate = ["bunko", "evaluate", "--dataset", str(judgements.path), "--name", tool.name, *location]
        print_stderr(f"Evaluate with: {shlex.join(evaluate)}")


def _print_logged_searches(library: Library, as_json: bool) -> None:
    searches = library.searches.log.all()
    if as_json:
        rows = [
            {"query": search.query, "tool": search.tool, "count": search.count, "last": search.last_searched_at}
            for search in searches
        ]
        print_json({"keeping": library.settings.log.keep_searches, "searches": rows})
        return
    for search in searches:
        columns = (str(search.count), search.last_searched_at, search.tool or "(all)", search.query)
        click.echo(replace_controls("\t".join(columns)))
    if not searches:
        click.echo("No recorded searches.")
    if not library.settings.log.keep_searches:
        print_stderr("Searches are not recorded: log.keep_searches is false.")
