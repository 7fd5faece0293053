"""`bunko judge`: queries and keys in, a dataset of judgements for `bunko evaluate` out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import PATH, chosen, print_json, say, shared, tool_names, visible

if TYPE_CHECKING:
    from bunko.evaluation.judge import Judgements
    from bunko.library.library import Library
    from bunko.types import Hit, Tool

_KEYS = "y yes · n no · 1 2 3 how well · s skip · u undo · q quit"
_LAST_KEYS = "u undo · q quit"
_LINES, _WIDEST = 6, 160
_ENDS = ("q", "\x03", "\x04", "")


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--name", "-n", metavar="TOOL", help="The tool. [the only one]", shell_complete=tool_names)
@click.option("--queries", "listed", type=PATH, metavar="FILE", help="Queries, one a line.")
@click.option("--output", type=PATH, metavar="FILE", help="Where judgements go. [judged/TOOL.json in the library]")
@click.option("--top-k", "-k", type=click.IntRange(1, 100), default=5, metavar="N", help="Results of each mode. [5]")
@click.option("--kept", is_flag=True, help="List the searches that were kept.")
@click.option("--clear-kept", is_flag=True, help="Forget the searches that were kept.")
@shared
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
    asked = chosen(options)
    if options["kept"] or options["clear_kept"]:
        if queries or listed or (options["kept"] and options["clear_kept"]):
            raise click.UsageError("--kept and --clear-kept stand alone.")
        with asked.open(create=False) as library:
            _forget(library, asked.as_json) if options["clear_kept"] else _list(library, asked.as_json)
        return
    with asked.open(create=False) as library:
        from bunko.evaluation.judge import Judgements, candidates, usual_file

        tool = library.only(options["name"])
        judged = Judgements(options["output"] or usual_file(library, tool), tool.name)
        wanted = [*queries, *(_read(listed) if listed else ())]
        if not wanted and not listed:
            wanted = candidates(library.kept(), tool, judged)
            if not wanted:
                raise click.UsageError("Which query is to be judged? No searches were kept that are not judged yet.")
        before = judged.counts()[1]
        _Judging(library, tool, judged, options["top_k"], quiet=asked.as_json).go(list(dict.fromkeys(wanted)))
        _told(library, tool, judged, judged.counts()[1] - before, as_json=asked.as_json)


class _Judging:
    """Shows results one by one and takes keys; goes back across queries where that is asked for."""

    def __init__(self, library: Library, tool: Tool, judged: Judgements, depth: int, *, quiet: bool) -> None:
        self._library, self._tool, self._judged, self._depth = library, tool, judged, depth
        self._err = quiet  # with --json only the summary is the answer

    def go(self, queries: Sequence[str]) -> None:
        """Ask about the results of each query until all are judged or somebody quits."""
        from bunko.evaluation.judge import GRADES

        waiting = self._questions(queries)
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
                self._show(*asked[at])
                key = self._key("Right?", _KEYS, (*GRADES, "s", "u"))
            else:
                key = self._key("That was the last.", _LAST_KEYS, ("u",))
            if key in _ENDS:
                return
            if key == "u":
                if at == 0:
                    self._print("There is nothing to undo.")
                    continue
                at -= 1
                self._write(*asked[at], None)
                continue
            if key != "s":
                self._write(*asked[at], GRADES[key])
            at += 1

    def _questions(self, queries: Sequence[str]) -> Iterator[tuple[str, Hit]]:
        from bunko.evaluation.judge import pool, unjudged
        from bunko.evaluation.report import counted

        for number, query in enumerate(queries, 1):
            hits = pool(self._library, self._tool, query, depth=self._depth, refresh=number == 1)
            left = unjudged(hits, query, self._judged)
            done = f", {len(hits) - len(left)} judged already" if len(left) < len(hits) else ""
            self._print(f"\nQuery {number} of {len(queries)}: {query} ({counted(len(hits), 'document')}{done})")
            yield from ((query, hit) for hit in left)

    def _show(self, query: str, hit: Hit) -> None:
        from bunko.interfaces.serialize import citation

        self._print(f"\n{hit.title or hit.uri}   for: {query}\n{citation(hit)}")
        if hit.chunk.heading_path:
            self._print(" > ".join(hit.chunk.heading_path))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_LINES]:
            self._print(f"    {line[:_WIDEST]}{'…' * (len(line) > _WIDEST)}")
        if len(lines) > _LINES:
            self._print(f"    … {len(lines) - _LINES} more lines")

    def _key(self, question: str, about: str, keys: Sequence[str]) -> str:
        """Return the next key that means something; the end of a pipe means to quit."""
        while True:
            click.echo(f"{question} [{about}] ", nl=False, err=self._err)
            if sys.stdin.isatty():
                key = click.getchar().lower()
                click.echo(visible(key) if key.isprintable() else "", err=self._err)
            else:
                line = sys.stdin.readline()
                key = line.strip().lower()
                click.echo(visible(key), err=self._err)
                if line and not key:
                    continue
            if key in (*keys, *_ENDS):
                return key

    def _write(self, query: str, hit: Hit, grade: float | None) -> None:
        from bunko.text.normalise import printable

        self._judged.say(query, printable(hit.uri), grade)

    def _print(self, text: str) -> None:
        click.echo(visible(text), err=self._err)


def _told(library: Library, tool: Tool, judged: Judgements, new: int, *, as_json: bool) -> None:
    from bunko.evaluation.report import counted

    queries, judgements = judged.counts()
    if as_json:
        facts = {"tool": tool.name, "file": str(judged.path), "new": new}
        print_json(facts | {"queries": queries, "judgements": judgements})
        return
    held = f"{counted(judgements, 'judgement')} about {counted(queries, 'query', 'queries')}"
    click.echo(visible(f"\n{held} in {judged.path}"))
    if judgements:
        place = library.home.arguments() if library.home.chosen else []
        line = ["bunko", "evaluate", "--dataset", str(judged.path), "--name", tool.name, *place]
        say(f"Measure with: {shlex.join(line)}")


def _read(path: Path) -> list[str]:
    from bunko.evaluation.dataset import text_of

    return [line.strip() for line in text_of(path).splitlines() if line.strip()]


def _list(library: Library, as_json: bool) -> None:
    kept = library.kept()
    if as_json:
        rows = [{"query": one.query, "tool": one.tool, "count": one.count, "last": one.last} for one in kept]
        print_json({"keeping": library.settings.log.keep_searches, "searches": rows})
        return
    for one in kept:
        click.echo(visible(f"{one.count}\t{one.last}\t{one.tool or '(all)'}\t{one.query}"))
    if not kept:
        click.echo("No searches are kept.")
    if not library.settings.log.keep_searches:
        say("Searches are not being kept: log.keep_searches is false.")


def _forget(library: Library, as_json: bool) -> None:
    number = library.clear_kept()
    if as_json:
        print_json({"forgotten": number})
    else:
        click.echo(f"Forgot {number} {'search' if number == 1 else 'searches'}.")
