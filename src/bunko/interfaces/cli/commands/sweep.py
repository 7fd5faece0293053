"""The `bunko sweep` command: measure a grid of settings on judged questions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from bunko.evaluation import files
from bunko.evaluation.files import OUTPUT_DIR
from bunko.evaluation.overrides import chunk_size_overrides
from bunko.evaluation.report import format_count
from bunko.evaluation.sweep import report
from bunko.evaluation.sweep.files import keep_sweep, load_scores, save_sweep
from bunko.evaluation.sweep.grid import format_value, parse_grid
from bunko.evaluation.sweep.heatmap import build_heatmap, format_score
from bunko.evaluation.sweep.result import SweepPlan, check_measure, sweep_fingerprint
from bunko.evaluation.sweep.run import run_sweep
from bunko.interfaces.cli.options import PATH, SharedOptions, gather_options, shared_options
from bunko.interfaces.cli.terminal.evaluation_output import print_table
from bunko.interfaces.cli.terminal.printing import is_terminal, print_json, print_stderr, replace_controls
from bunko.interfaces.cli.terminal.progress import show_evaluation_progress
from bunko.library.opening.load_settings import paths_from_settings
from bunko.runtime.observer import Observer
from bunko.types.ranking import OPTIONS

if TYPE_CHECKING:
    from bunko.evaluation.dataset import JudgedSet
    from bunko.evaluation.sweep.grid import Grid
    from bunko.evaluation.sweep.heatmap import Heatmap
    from bunko.evaluation.sweep.result import PointScore, SweepResult
    from bunko.settings import Settings
    from bunko.types import Mode

    SettingsLoader = Callable[[Mapping[str, object]], Settings]

_CORPUS_OPTIONS = ("corpus", "queries", "qrels")
_LEXICAL_GRID = ("k1=0.4,0.8,1.2,1.6,2,2.5", "b=0.25,0.5,0.75,1")
_HYBRID_GRID = ("vector_weight=0:1:0.1", *_LEXICAL_GRID)
# Settings that only affect hybrid searches.
_HYBRID_KEYS = frozenset(
    f"search.{name}" for name, option in OPTIONS.items() if not {"bm25", "semantic"}.intersection(option.searches)
)
_MAX_BEST_POINTS = 5
_MAX_HEATMAP_COLUMNS = 16
_SECONDS_BETWEEN_LINES = 2.0


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What `bunko sweep` was asked for."""

    grids: tuple[str, ...]
    measure: str
    dataset: Path | None
    fixture: Path | None
    corpus: Path | None
    queries: Path | None
    qrels: Path | None
    mode: Mode | None
    n_results: int | None
    threshold: float | None
    chunk_size: int | None
    chunk_overlap: int | None
    vector_weight: float | None
    output_dir: Path | None
    persist_dir: Path | None
    max_points: int
    workers: int | None
    resume: bool


@click.command()
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="KEY=VALUES",
    help="A setting and its values: 0.8,1.2 or from:to:step; may be repeated. [vector_weight, k1 and b]",
)
@click.option("--measure", default="ndcg@10", metavar="NAME", help="Metric to maximise. [ndcg@10]")
@click.option("--dataset", type=PATH, metavar="FILE", help="Judged questions, as for bunko evaluate. [built-in ones]")
@click.option("--fixture", type=PATH, metavar="FILE", help="Documents, as for bunko evaluate. [built-in ones]")
@click.option("--corpus", type=PATH, metavar="FILE", help="Documents as JSON lines: id, title, text.")
@click.option("--queries", type=PATH, metavar="FILE", help="Questions as JSON lines: id, text; with --corpus.")
@click.option("--qrels", type=PATH, metavar="FILE", help="Judgements: query, document, grade; with --corpus.")
@click.option(
    "--mode",
    type=click.Choice(["bm25", "semantic", "hybrid"]),
    help="Search mode. [hybrid; with --corpus, from the settings unless the grid has hybrid settings]",
)
@click.option(
    "--n-results", type=click.IntRange(1, 1000), metavar="N", help="Results to score. [k of the measure; else 5 or 10]"
)
@click.option("--threshold", type=click.FloatRange(0, 2), metavar="D", help="Maximum cosine distance of a vector hit.")
@click.option("--chunk-size", type=click.IntRange(1), metavar="N", help="Maximum characters per chunk.")
@click.option("--chunk-overlap", type=click.IntRange(0), metavar="N", help="Characters shared by neighbouring chunks.")
@click.option("--vector-weight", type=click.FloatRange(0, 1), metavar="A", help="Weight of the vectors, 0 to 1.")
@click.option("--output-dir", type=PATH, metavar="DIR", help="Folder for the results. [.tmp/rag-evaluation]")
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Keep the library in this folder and reuse it.")
@click.option("--max-points", type=click.IntRange(1), default=10_000, metavar="N", help="Maximum grid size. [10000]")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Number of processes. [one per core]")
@click.option("--resume", is_flag=True, help="Continue from the points in sweep.json.")
@gather_options(SweepOptions)
@shared_options
@click.pass_context
def command(context: click.Context, /, options: SweepOptions, shared: SharedOptions) -> None:
    """Find the settings that score best on known answers.

    One half of the questions chooses the best settings, the other half checks whether they are really better than the
    current ones. --library and --docs-dir only select the settings; that library keeps a copy of the results for its
    page and is not changed otherwise.

    \b
    Example:
      bunko sweep
      bunko sweep --grid vector_weight=0:1:0.1 --grid k1=0.8,1.2,1.6 --grid b=0.5,0.75
      bunko sweep --grid chunk_size=100,200,400 --grid chunk_overlap=0,30 --measure mrr@10
      bunko sweep --corpus corpus.jsonl --queries queries.jsonl --qrels qrels.tsv --mode bm25
    """
    # Reject options that cannot be combined, before anything is read.
    corpus_options = [name for name in _CORPUS_OPTIONS if getattr(options, name) is not None]
    if corpus_options and len(corpus_options) < len(_CORPUS_OPTIONS):
        missing = next(name for name in _CORPUS_OPTIONS if getattr(options, name) is None)
        raise click.UsageError(f"--{corpus_options[0]} requires --{missing}", context)
    for name in ("dataset", "fixture"):
        if corpus_options and getattr(options, name) is not None:
            raise click.UsageError(f"--{name} cannot be used with --corpus", context)
    shared.configure_logging()
    flags = chunk_size_overrides(options.chunk_size, options.chunk_overlap)
    flags |= {"search.vector_weight": options.vector_weight, "search.similarity_threshold": options.threshold}

    def load_settings(changes: Mapping[str, object]) -> Settings:
        return shared.load_settings(flags | dict(changes)).settings

    depth = check_measure(options.measure)
    settings = load_settings({})
    is_public = options.corpus is not None
    grid, mode = _choose_grid(options, settings, is_public)
    n_results = options.n_results or depth or (10 if is_public else 5)
    plan = SweepPlan(grid, options.measure, mode, n_results, is_public, options.workers)
    for values in _index_settings(plan.grid):
        load_settings(values)  # rejects impossible settings before anything is read
    if options.corpus is not None and options.queries is not None and options.qrels is not None:
        judged_set = files.load_public_set(options.corpus, options.queries, options.qrels)
    else:
        judged_set = files.find_judged_set(options.dataset, options.fixture, options.persist_dir, settings)
    output = options.output_dir or OUTPUT_DIR
    fingerprint = sweep_fingerprint(judged_set, settings, plan)
    previous_scores = load_scores(output / "sweep.json", fingerprint) if options.resume else None
    for notice in judged_set.notices:
        print_stderr(notice)
    print_stderr(
        f"{format_count(len(plan.grid), 'point')}, {format_count(len(judged_set.queries), 'question')},"
        f" {format_count(len(judged_set.documents), 'document')}."
    )
    sweep, paths = _run_sweep(judged_set, load_settings, plan, output, options.persist_dir, previous_scores)
    paths += _keep_in_library(shared, sweep, output)
    if shared.as_json:
        print_json(report.as_json(sweep, include_points=False))
    else:
        print_sweep(sweep)
    for path in paths:
        print_stderr(f"Wrote {path}")


def _choose_grid(options: SweepOptions, settings: Settings, is_public: bool) -> tuple[Grid, Any]:
    """Return the grid and the search mode from the options, or defaults that fit together."""
    mode = options.mode
    only_words = mode == "bm25" or settings.embedding.provider == "none"
    grid = parse_grid(options.grids or (_LEXICAL_GRID if only_words else _HYBRID_GRID), limit=options.max_points)
    if mode is None and "search.mode" not in grid.keys and (not is_public or grid.keys & _HYBRID_KEYS):
        mode = "bm25" if settings.embedding.provider == "none" and not grid.keys & _HYBRID_KEYS else "hybrid"
    return grid, mode


def _index_settings(grid: Grid) -> Iterator[dict[str, object]]:
    """Yield each distinct combination of settings in the grid that affects the index."""
    previous = set()
    for values in grid.points():
        flags = {key: value for key, value in grid.overrides(values).items() if not key.startswith("search.")}
        if flags and repr(flags) not in previous:
            previous.add(repr(flags))
            yield flags


def _run_sweep(
    judged_set: JudgedSet,
    load_settings: SettingsLoader,
    plan: SweepPlan,
    output: Path,
    persist_dir: Path | None,
    previous_scores: dict[str, PointScore] | None,
) -> tuple[SweepResult, list[Path]]:
    """Run the sweep and return its result and files; on Ctrl-C, say how to continue."""
    paths: list[Path] = []
    point_counts = [0, len(plan.grid)]

    def save(sweep: SweepResult) -> None:
        paths[:] = save_sweep(sweep, output)

    try:
        with _show_sweep_progress(point_counts) as observer:
            sweep = run_sweep(
                judged_set,
                load_settings,
                plan,
                persist_dir=persist_dir,
                previous_scores=previous_scores,
                save=save,
                observer=observer,
            )
    except KeyboardInterrupt:
        if paths:
            done, total = point_counts
            print_stderr(
                f"Stopped after {done:,} of {total:,} points. They are saved in {output / 'sweep.json'};"
                " continue with --resume."
            )
        raise
    return sweep, paths


def _keep_in_library(shared: SharedOptions, sweep: SweepResult, output: Path) -> list[Path]:
    """Keep the sweep in the library that the settings are from, if there is one; return the path."""
    loaded = shared.load_settings()
    paths = paths_from_settings(shared.library_paths(), loaded)
    is_in_file = loaded.settings.storage.kind == "sqlite"
    if not (paths.database.is_file() if is_in_file else paths.folder.is_dir()):
        return []
    return keep_sweep(sweep, paths.folder, output)


@contextmanager
def _show_sweep_progress(point_counts: list[int]) -> Iterator[Observer]:
    """Draw bars on a terminal, print a line every few seconds in a pipe; update the number of finished points."""
    with show_evaluation_progress() as progress_bars:
        last_print = time.monotonic()

        def report_progress(step: str, done: int, total: int) -> None:
            nonlocal last_print
            if step == "Measuring":
                point_counts[:] = [done, total]
            progress_bars.on_step(step, done, total)
            if not sys.stderr.isatty() and time.monotonic() - last_print > _SECONDS_BETWEEN_LINES:
                last_print = time.monotonic()
                print_stderr(f"{step}: {done:,} of {total:,}")

        yield Observer(on_step=report_progress)


def print_sweep(sweep: SweepResult) -> None:
    """Print the best point, its score on the held-out questions, and the lines for a settings file."""
    questions = format_count(len(sweep.tuning_ids), "question")
    title = f"{sweep.measure}: {questions} for choosing, {len(sweep.held_out_ids)} held out"
    print_table(title, report.POINT_HEADERS, report.point_rows(sweep))
    print_table("Best points", *report.best_points(sweep, _MAX_BEST_POINTS))
    print_table("What matters", report.INFLUENCE_HEADERS, report.influence_rows(sweep))
    heatmap = build_heatmap(sweep)
    if (
        is_terminal()
        and heatmap is not None
        and heatmap.y_dimension is not None
        and len(heatmap.x_dimension.values) <= _MAX_HEATMAP_COLUMNS
    ):
        _print_heatmap(heatmap, sweep.measure)
    for notice in sweep.notices:
        print_stderr(notice)
    click.echo(replace_controls(report.conclusion(sweep)))
    if sweep.toml:
        click.echo(f"\n# bunko.toml{'' if sweep.verdict == 'better' else ': not proven to be better'}")
        click.echo(replace_controls(sweep.toml))


def _print_heatmap(heatmap: Heatmap, measure: str) -> None:
    assert heatmap.y_dimension is not None
    axes = f"{heatmap.x_dimension.name} (across) and {heatmap.y_dimension.name} (down)"
    title = Text(replace_controls(f"{measure} by {axes}; the best is underlined"))
    table = Table(title=title, title_justify="left", box=None, padding=(0, 0), show_edge=False)
    table.add_column(Text(""))
    for x_value in heatmap.x_dimension.values:
        table.add_column(Text(replace_controls(format_value(x_value))), justify="center", min_width=6)
    for y_value in heatmap.y_values:
        cells = [_heatmap_cell(heatmap, x_value, y_value) for x_value in heatmap.x_dimension.values]
        table.add_row(Text(replace_controls(f"{format_value(y_value)} ")), *cells)
    Console(highlight=False).print(table)


def _heatmap_cell(heatmap: Heatmap, x_value: Any, y_value: Any) -> Text:
    score = heatmap.cells.get((x_value, y_value))
    strength = 0.0 if score is None else heatmap.relative_score(score) ** 2
    channels = [round(low + (high - low) * strength) for low, high in ((38, 47), (42, 140), (50, 230))]
    style = Style(
        color="white" if strength < 0.6 else "black",
        bgcolor=f"rgb({','.join(map(str, channels))})",
        underline=(x_value, y_value) == heatmap.best,
    )
    return Text(f" {format_score(score)} " if score is not None else "", style=style)
