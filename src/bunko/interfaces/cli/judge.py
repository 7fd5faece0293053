"""`bunko judge`: queries and keys in, a dataset of judgements for `bunko evaluate` out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    PATH,
    complete_tool_names,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.evaluation.judge import Judgements
    from bunko.library.library import Library
    from bunko.types import Hit, Tool

_KEY_HELP = "y yes · n no · 1 2 3 how well · s skip · u undo · q quit"
_LAST_KEY_HELP = "u undo · q quit"
_MAX_LINES, _MAX_LINE_CHARS = 6, 160
_QUIT_KEYS = ("q", "\x03", "\x04", "")


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--name", "-n", metavar="TOOL", help="The tool. [the only one]", shell_complete=complete_tool_names)
@click.option("--queries", "listed", type=PATH, metavar="FILE", help="Queries, one a line.")
@click.option("--output", type=PATH, metavar="FILE", help="Where judgements go. [judged/TOOL.json in the library]")
@click.option("--top-k", "-k", type=click.IntRange(1, 100), default=5, metavar="N", help="Results of each mode. [5]")
@click.option("--kept", is_flag=True, help="List the searches that were kept.")
@click.option("--clear-kept", is_flag=True, help="Forget the searches that were kept.")
@shared_options
def command(queries: tuple[str, ...], listed: Path | None, **options: Any) -> None:
    """Say which results are right, one key each, for bunko evaluate.

    Results of all modes are shown together, each document once. Without a query those searches are offered that were
    kept (log.keep_searches) and not judged. Each key is written down at once; the next time goes on from there. In a
    pipe each line is a key.

    \b
    Example:
      bunko judge "環境構築の方法" --docs-dir ~/notes
      bunko judge -n notes --queries questions.txt --output judged.json
      bunko evaluate --dataset judged.json --name notes
    """
    asked = pop_shared_options(options)
    if options["kept"] or options["clear_kept"]:
        if queries or listed or (options["kept"] and options["clear_kept"]):
            raise click.UsageError("--kept and --clear-kept stand alone.")
        with asked.open(create=False) as library:
            _clear_logged_searches(library, asked.as_json) if options["clear_kept"] else _print_logged_searches(
                library, asked.as_json
            )
        return
    with asked.open(create=False) as library:
        from bunko.evaluation.judge import Judgements, default_file, unjudged_queries

        tool = library.resolve_tool(options["name"])
        judged = Judgements(options["output"] or default_file(library, tool), tool.name)
        wanted = [*queries, *(_read_queries(listed) if listed else ())]
        if not wanted and not listed:
            wanted = unjudged_queries(library.logged_searches(), tool, judged)
            if not wanted:
                raise click.UsageError("Which query is to be judged? No searches were kept that are not judged yet.")
        before = judged.counts()[1]
        _JudgingSession(library, tool, judged, options["top_k"], to_stderr=asked.as_json).run(
            list(dict.fromkeys(wanted))
        )
        _print_summary(library, tool, judged, judged.counts()[1] - before, as_json=asked.as_json)


class _JudgingSession:
    """Shows results one by one and takes keys; goes back across queries where that is asked for."""

    def __init__(self, library: Library, tool: Tool, judgements: Judgements, depth: int, *, to_stderr: bool) -> None:
        self._library, self._tool, self._judgements, self._depth = library, tool, judgements, depth
        self._to_stderr = to_stderr  # with --json only the summary is the answer

    def run(self, queries: Sequence[str]) -> None:
        """Ask about the results of each query until all are judged or somebody quits."""
        from bunko.evaluation.judge import GRADES

        waiting = self._unjudged_hits(queries)
        asked: list[tuple[str, Hit]] = []
        at = 0
        while True:
            if at == len(asked):
                following = next(waiting, None)
                if following is not None:
                    asked.append(following)
                elif not at:
                    return
            if at < len(asked):
                self._print_hit(*asked[at])
                key = self._read_key("Right?", _KEY_HELP, (*GRADES, "s", "u"))
            else:
                key = self._read_key("That was the last.", _LAST_KEY_HELP, ("u",))
            if key in _QUIT_KEYS:
                return
            if key == "u":
                if at == 0:
                    self._print("There is nothing to undo.")
                    continue
                at -= 1
                self._save_grade(*asked[at], None)
                continue
            if key != "s":
                self._save_grade(*asked[at], GRADES[key])
            at += 1

    def _unjudged_hits(self, queries: Sequence[str]) -> Iterator[tuple[str, Hit]]:
        from bunko.evaluation.judge import pool_hits, unjudged_hits
        from bunko.evaluation.report import format_count

        for number, query in enumerate(queries, 1):
            hits = pool_hits(self._library, self._tool, query, depth=self._depth, refresh=number == 1)
            left = unjudged_hits(hits, query, self._judgements)
            done = f", {len(hits) - len(left)} judged already" if len(left) < len(hits) else ""
            self._print(f"\nQuery {number} of {len(queries)}: {query} ({format_count(len(hits), 'document')}{done})")
            yield from ((query, hit) for hit in left)

    def _print_hit(self, query: str, hit: Hit) -> None:
        from bunko.interfaces.serialize import hit_citation

        self._print(f"\n{hit.title or hit.uri}   for: {query}\n{hit_citation(hit)}")
        if hit.chunk.heading_path:
            self._print(" > ".join(hit.chunk.heading_path))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_MAX_LINES]:
            self._print(f"    {line[:_MAX_LINE_CHARS]}{'…' * (len(line) > _MAX_LINE_CHARS)}")
        if len(lines) > _MAX_LINES:
            self._print(f"    … {len(lines) - _MAX_LINES} more lines")

    def _read_key(self, question: str, key_help: str, keys: Sequence[str]) -> str:
        """Return the next key that means something; the end of a pipe means to quit."""
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
        from bunko.text.normalise import escape_surrogates

        self._judgements.set_grade(query, escape_surrogates(hit.uri), grade)

    def _print(self, text: str) -> None:
        click.echo(replace_controls(text), err=self._to_stderr)


def _print_summary(library: Library, tool: Tool, judged: Judgements, new_judgements: int, *, as_json: bool) -> None:
    from bunko.evaluation.report import format_count

    queries, judgements = judged.counts()
    if as_json:
        facts = {"tool": tool.name, "file": str(judged.path), "new": new_judgements}
        print_json(facts | {"queries": queries, "judgements": judgements})
        return
    held = f"{format_count(judgements, 'judgement')} about {format_count(queries, 'query', 'queries')}"
    click.echo(replace_controls(f"\n{held} in {judged.path}"))
    if judgements:
        place = library.paths.cli_arguments() if library.paths.is_explicit else []
        line = ["bunko", "evaluate", "--dataset", str(judged.path), "--name", tool.name, *place]
        print_stderr(f"Measure with: {shlex.join(line)}")


def _read_queries(path: Path) -> list[str]:
    from bunko.evaluation.dataset import read_text_file

    return [line.strip() for line in read_text_file(path).splitlines() if line.strip()]


def _print_logged_searches(library: Library, as_json: bool) -> None:
    kept = library.logged_searches()
    if as_json:
        rows = [
            {"query": one.query, "tool": one.tool, "count": one.count, "last": one.last_searched_at} for one in kept
        ]
        print_json({"keeping": library.settings.log.keep_searches, "searches": rows})
        return
    for one in kept:
        click.echo(replace_controls(f"{one.count}\t{one.last_searched_at}\t{one.tool or '(all)'}\t{one.query}"))
    if not kept:
        click.echo("No searches are kept.")
    if not library.settings.log.keep_searches:
        print_stderr("Searches are not being kept: log.keep_searches is false.")


def _clear_logged_searches(library: Library, as_json: bool) -> None:
    number = library.clear_logged_searches()
    if as_json:
        print_json({"forgotten": number})
    else:
        click.echo(f"Forgot {number} {'search' if number == 1 else 'searches'}.")
