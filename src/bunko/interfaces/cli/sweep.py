"""`bunko sweep`: judged questions and a grid of settings in, the best of it and whether that is really better out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.evaluation_output import print_table
from bunko.interfaces.cli.evaluation_output import show_evaluation_progress as bars
from bunko.interfaces.cli.options import (
    PATH,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.evaluation.dataset import JudgedSet
    from bunko.evaluation.sweep.grid import Grid
    from bunko.evaluation.sweep.heatmap import Heatmap
    from bunko.evaluation.sweep.result import SweepResult
    from bunko.settings import Settings

_CORPUS_OPTIONS = ("corpus", "queries", "qrels")
_LEXICAL_GRID = ("k1=0.4,0.8,1.2,1.6,2,2.5", "b=0.25,0.5,0.75,1")
_HYBRID_GRID = ("vector_weight=0:1:0.1", *_LEXICAL_GRID)
# What takes part in a hybrid search only.
_HYBRID_KEYS = frozenset({"search.vector_weight", "search.fusion", "search.rrf_k", "search.min_combined_score"})
_MAX_BEST_POINTS = 5
_MAX_HEATMAP_COLUMNS = 16
_SECONDS_BETWEEN_LINES = 2.0


@click.command()
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="KEY=VALUES",
    help="A setting and its values: 0.8,1.2 or from:to:step; may be repeated. [vector_weight, k1 and b]",
)
@click.option("--measure", default="ndcg@10", metavar="NAME", help="What the best point has most of. [ndcg@10]")
@click.option("--dataset", type=PATH, metavar="FILE", help="The questions, as in bunko evaluate. [ours]")
@click.option("--fixture", type=PATH, metavar="FILE", help="The documents, as in bunko evaluate. [ours]")
@click.option("--corpus", type=PATH, metavar="FILE", help="Documents in JSON lines: id, title, text.")
@click.option("--queries", type=PATH, metavar="FILE", help="Questions in JSON lines: id, text; with --corpus.")
@click.option("--qrels", type=PATH, metavar="FILE", help="Judgements: query, document, grade; with --corpus.")
@click.option(
    "--mode",
    type=click.Choice(["bm25", "semantic", "hybrid"]),
    help="How to search. [hybrid; with --corpus as the settings say, unless the grid is about hybrid]",
)
@click.option(
    "--n-results", type=click.IntRange(1, 1000), metavar="N", help="Results to judge. [k of the measure; else 5 or 10]"
)
@click.option("--threshold", type=click.FloatRange(0, 2), metavar="D", help="Largest cosine distance of a vector hit.")
@click.option("--chunk-size", type=click.IntRange(1), metavar="N", help="Most characters in a chunk.")
@click.option("--chunk-overlap", type=click.IntRange(0), metavar="N", help="Characters that neighbours share.")
@click.option("--vector-weight", type=click.FloatRange(0, 1), metavar="A", help="Weight of the vectors, 0 to 1.")
@click.option("--output-dir", type=PATH, metavar="DIR", help="Where the results go. [.tmp/rag-evaluation]")
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Keep the library there for the next time.")
@click.option("--max-points", type=click.IntRange(1), default=10_000, metavar="N", help="Largest grid. [10000]")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes. [one for each core]")
@click.option("--resume", is_flag=True, help="Go on from what sweep.json holds.")
@shared_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Find the settings that answer questions with known answers best.

    One half of the questions chooses, the other half says whether the choice is really better than the settings in
    force. Your library is not touched; --library and --docs-dir only say whose settings hold.

    \b
    Example:
      bunko sweep
      bunko sweep --grid vector_weight=0:1:0.1 --grid k1=0.8,1.2,1.6 --grid b=0.5,0.75
      bunko sweep --grid chunk_size=100,200,400 --grid chunk_overlap=0,30 --measure mrr@10
      bunko sweep --corpus corpus.jsonl --queries queries.jsonl --qrels qrels.tsv --mode bm25
    """
    _check_options(context, options)
    asked = pop_shared_options(options)
    asked.configure_logging()
    from bunko.evaluation.files import OUTPUT_DIR
    from bunko.evaluation.overrides import chunk_size_overrides
    from bunko.evaluation.report import format_count
    from bunko.evaluation.sweep import files, report
    from bunko.evaluation.sweep.result import SweepPlan, check_measure, sweep_fingerprint
    from bunko.evaluation.sweep.run import run_sweep
    from bunko.library.open import load_library_settings

    flags = chunk_size_overrides(options["chunk_size"], options["chunk_overlap"])
    flags |= {"search.vector_weight": options["vector_weight"], "search.similarity_threshold": options["threshold"]}

    def settings(more: Mapping[str, object]) -> Settings:
        loaded = load_library_settings(
            asked.library_paths(), environ=os.environ, flags=flags | dict(more), config=asked.config
        )
        return loaded.settings

    depth = check_measure(options["measure"])
    mine = settings({})
    is_public = options["corpus"] is not None
    found, mode = _choose_grid(options, mine, is_public)
    for values in _index_settings(found):
        settings(values)  # says what is impossible before anything is read
    judged = _load_judged_set(options, mine)
    n_results = options["n_results"] or depth or (10 if is_public else 5)
    plan = SweepPlan(found, options["measure"], mode, n_results, is_public, options["workers"])
    output = options["output_dir"] or OUTPUT_DIR
    known = (
        files.load_scores(output / "sweep.json", sweep_fingerprint(judged, mine, plan)) if options["resume"] else None
    )
    print_stderr(
        f"{format_count(len(found), 'point')}, {format_count(len(judged.queries), 'question')},"
        f" {format_count(len(judged.documents), 'document')}."
    )
    written: list[Any] = []

    def save(done: SweepResult) -> None:
        written[:] = files.save_sweep(done, output)

    last = [0, len(found)]
    try:
        with _show_sweep_progress(last) as watch:
            done = run_sweep(
                judged,
                settings,
                plan,
                persist_dir=options["persist_dir"],
                previous_scores=known,
                save=save,
                report_progress=watch,
            )
    except KeyboardInterrupt:
        if written:
            print_stderr(
                f"Stopped after {last[0]:,} of {last[1]:,} points; {output / 'sweep.json'} keeps them for --resume."
            )
        raise
    if asked.as_json:
        print_json(report.as_json(done, include_points=False))
    else:
        print_sweep(done)
    for path in written:
        print_stderr(f"Wrote {path}")


def _check_options(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that do not go together, before anything is read."""
    public = [name for name in _CORPUS_OPTIONS if options[name] is not None]
    if public and len(public) < len(_CORPUS_OPTIONS):
        missing = next(name for name in _CORPUS_OPTIONS if options[name] is None)
        raise click.UsageError(f"--{public[0]} goes with --{missing}, which is missing.", context)
    for name in ("dataset", "fixture"):
        if public and options[name] is not None:
            raise click.UsageError(f"--{name} does not go with --corpus.", context)


def _choose_grid(options: dict[str, Any], settings: Settings, is_public: bool) -> tuple[Grid, Any]:
    """Return the grid and the mode: the given ones, or what makes sense together."""
    from bunko.evaluation.sweep.grid import parse_grid

    mode = options["mode"]
    only_words = mode == "bm25" or settings.embedding.provider == "none"
    found = parse_grid(options["grids"] or (_LEXICAL_GRID if only_words else _HYBRID_GRID), limit=options["max_points"])
    if mode is None and "search.mode" not in found.keys and (not is_public or found.keys & _HYBRID_KEYS):
        mode = "bm25" if settings.embedding.provider == "none" and not found.keys & _HYBRID_KEYS else "hybrid"
    return found, mode


def _index_settings(grid: Grid) -> Iterator[dict[str, object]]:
    seen = set()
    for values in grid.points():
        flags = {key: value for key, value in grid.overrides(values).items() if not key.startswith("search.")}
        if flags and repr(flags) not in seen:
            seen.add(repr(flags))
            yield flags


def _load_judged_set(options: dict[str, Any], settings: Settings) -> JudgedSet:
    from bunko.evaluation import files

    if options["corpus"] is not None:
        return files.load_public_set(options["corpus"], options["queries"], options["qrels"])
    return files.find_judged_set(options["dataset"], options["fixture"], options["persist_dir"], settings)


@contextmanager
def _show_sweep_progress(point_counts: list[int]) -> Iterator[Callable[[str, int, int], None]]:
    """Draw bars on a terminal, write a line now and then into a pipe; remember how many points are done."""
    with bars() as draw:
        told = time.monotonic()

        def watch(what: str, done: int, total: int) -> None:
            nonlocal told
            if what == "Measuring":
                point_counts[:] = [done, total]
            draw(what, done, total)
            if not sys.stderr.isatty() and time.monotonic() - told > _SECONDS_BETWEEN_LINES:
                told = time.monotonic()
                print_stderr(f"{what}: {done:,} of {total:,}")

        yield watch


def print_sweep(sweep: SweepResult) -> None:
    """Print the best point, what questions held back say about it, and the lines for a settings file."""
    from bunko.evaluation.report import format_count
    from bunko.evaluation.sweep import heatmap, report

    title = f"{sweep.measure}: {format_count(len(sweep.tuning_ids), 'question')} to choose by, {len(sweep.held_out_ids)} held back"  # noqa: E501
    print_table(title, report.POINT_HEADERS, report.point_rows(sweep))
    print_table("Best points", *report.best_points(sweep, _MAX_BEST_POINTS))
    print_table("What matters", report.INFLUENCE_HEADERS, report.influence_rows(sweep))
    found = heatmap.build_heatmap(sweep)
    if (
        is_terminal()
        and found is not None
        and found.y_dimension is not None
        and len(found.x_dimension.values) <= _MAX_HEATMAP_COLUMNS
    ):
        _print_heatmap(found, sweep.measure)
    for notice in sweep.notices:
        print_stderr(notice)
    click.echo(replace_controls(report.conclusion(sweep)))
    if sweep.toml:
        click.echo(f"\n# bunko.toml{'' if sweep.verdict == 'better' else ': not proven to be better'}")
        click.echo(replace_controls(sweep.toml))


def _print_heatmap(heatmap: Heatmap, measure: str) -> None:
    from rich.console import Console
    from rich.style import Style
    from rich.table import Table
    from rich.text import Text

    from bunko.evaluation.sweep.grid import format_value
    from bunko.evaluation.sweep.heatmap import format_score

    assert heatmap.y_dimension is not None
    title = f"{measure} by {heatmap.x_dimension.name} (across) and {heatmap.y_dimension.name} (down); the best is underlined"  # noqa: E501
    drawn = Table(title=Text(replace_controls(title)), title_justify="left", box=None, padding=(0, 0), show_edge=False)
    drawn.add_column(Text(""))
    for value in heatmap.x_dimension.values:
        drawn.add_column(Text(replace_controls(format_value(value))), justify="center", min_width=6)
    for line in heatmap.y_values:
        cells = [Text(replace_controls(f"{format_value(line)} "))]
        for value in heatmap.x_dimension.values:
            score = heatmap.cells.get((value, line))
            strength = 0.0 if score is None else heatmap.relative_score(score) ** 2
            colour = [round(low + (high - low) * strength) for low, high in ((38, 47), (42, 140), (50, 230))]
            ink = "white" if strength < 0.6 else "black"
            style = Style(
                color=ink, bgcolor=f"rgb({','.join(map(str, colour))})", underline=(value, line) == heatmap.best
            )
            cells.append(Text(f" {format_score(score)} " if score is not None else "", style=style))
        drawn.add_row(*cells)
    Console(highlight=False).print(drawn)
