"""`bunko evaluate`: judged questions in, scores, comparisons and reports out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.evaluation_output import print_table, show_evaluation_progress
from bunko.interfaces.cli.options import (
    PATH,
    complete_tool_names,
    pop_shared_options,
    print_json,
    print_stderr,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.evaluation.baseline import BaselineVerdict
    from bunko.evaluation.dataset import JudgedSet
    from bunko.evaluation.evaluate import AlternativeSettings, Evaluation, ExistingTool
    from bunko.interfaces.cli.options import SharedOptions
    from bunko.settings import Settings

_REQUIRED_OPTIONS = ("chunk_size", "chunk_overlap", "vector_weight")
_CORPUS_OPTIONS = ("corpus", "queries", "qrels")
_REGRESSION_EXIT_CODE = 1


@click.command()
@click.option("--chunk-size", type=click.IntRange(1), metavar="N", help="Most characters in a chunk.  [required]")
@click.option(
    "--chunk-overlap", type=click.IntRange(0), metavar="N", help="Characters that neighbours share.  [required]"
)
@click.option(
    "--vector-weight", type=click.FloatRange(0, 1), metavar="A", help="Weight of the vectors, 0 to 1.  [required]"
)
@click.option(
    "--dataset", type=PATH, metavar="FILE", help="The questions. [tests/fixtures/rag_evaluation_dataset.json, or ours]"
)
@click.option(
    "--fixture", type=PATH, metavar="FILE", help="The documents. [tests/fixtures/rag_test_documents.json, or ours]"
)
@click.option(
    "--name", "-n", metavar="TOOL", help="Ask this tool of the library as it is.", shell_complete=complete_tool_names
)
@click.option("--corpus", type=PATH, metavar="FILE", help="Documents in JSON lines: id, title, text.")
@click.option("--queries", type=PATH, metavar="FILE", help="Questions in JSON lines: id, text; with --corpus.")
@click.option("--qrels", type=PATH, metavar="FILE", help="Judgements: query, document, grade; with --corpus.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["bm25", "semantic", "hybrid", "all"]),
    help="How to search; may be repeated. [hybrid; with --corpus as the settings say]",
)
@click.option("--n-results", type=click.IntRange(1, 1000), metavar="N", help="Results to judge. [5; with --corpus 10]")
@click.option("--threshold", type=click.FloatRange(0, 2), metavar="D", help="Largest cosine distance of a vector hit.")
@click.option("--with", "pairs", multiple=True, metavar="KEY=VALUE", help="Compare with this setting changed.")
@click.option("--against", type=PATH, metavar="FILE", help="Compare with a former report.json.")
@click.option("--output-dir", type=PATH, metavar="DIR", help="Where reports go. [.tmp/rag-evaluation]")
@click.option("--run-file", type=PATH, metavar="FILE", help="Also write what was found, as TREC runs are written.")
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Keep the library there for the next time.")
@click.option("--baseline-file", type=PATH, metavar="FILE", help="The scores that must not be lost.")
@click.option("--save-baseline", is_flag=True, help="Let these scores be the baseline.")
@click.option("--fail-on-regression", is_flag=True, help="End with exit code 1 where F1 is lost.")
@click.option(
    "--regression-threshold", type=click.FloatRange(0, 1), default=0.1, metavar="X", help="Largest loss of F1. [0.1]"
)
@shared_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Measure how well questions with known answers are answered.

    Documents are imported into a library of their own; yours is not touched. The first three options are required
    unless --corpus or --name is given. --library and --docs-dir only say whose settings hold, unless --name is given:
    then the questions are about the documents of that tool, which is searched as it is.

    \b
    Example:
      bunko evaluate --chunk-size 200 --chunk-overlap 30 --vector-weight 0.3
      bunko evaluate --corpus corpus.jsonl --queries queries.jsonl --qrels qrels.tsv --mode all
      bunko evaluate --chunk-size 200 --chunk-overlap 30 --vector-weight 0.3 --with vector_weight=0.8
      bunko evaluate --dataset judged.json --name notes
    """
    _check_options(context, options)
    asked = pop_shared_options(options)
    asked.configure_logging()
    from bunko.evaluation import baseline, files
    from bunko.evaluation.evaluate import EvaluationPlan, evaluate, usable_modes
    from bunko.evaluation.overrides import chunk_size_overrides
    from bunko.evaluation.report import as_json
    from bunko.library.open import load_library_settings

    existing = _existing_tool(asked, options["name"])
    is_public = options["corpus"] is not None
    flags = chunk_size_overrides(options["chunk_size"], options["chunk_overlap"])
    flags |= {"search.vector_weight": options["vector_weight"], "search.similarity_threshold": options["threshold"]}
    if existing is not None:
        # What the tool says of itself wins over settings, and what the command line says over both.
        flags = existing.search_overrides() | {key: value for key, value in flags.items() if value is not None}

    def settings(more: dict[str, object]) -> Settings:
        loaded = load_library_settings(
            asked.library_paths(), environ=os.environ, flags=flags | more, config=asked.config
        )
        return loaded.settings

    mine = settings({})
    judged = _load_judged_set(options, mine, existing)
    own = [str(flags["search.mode"])] if "search.mode" in flags else []
    modes = _choose_modes(options["modes"] or own, default_to_settings=is_public or existing is not None)
    n_results = options["n_results"] or (10 if is_public else 5)
    # In the first form as many chunks are asked for as results are wanted; public sets judge whole documents.
    plan = EvaluationPlan(usable_modes(modes, mine), n_results, None if is_public else n_results)
    output = options["output_dir"] or files.OUTPUT_DIR
    former = baseline.load_report(options["against"]) if options["against"] else None
    if former is not None and former.digest != judged.digest:
        print_stderr(f"{former.name} is about other questions or judgements; those that both have are compared.")
    if former is not None and former.n_results not in (None, n_results):
        said = f"{former.name} judged {former.n_results} results and this {n_results}"
        print_stderr(f"{said}: precision, recall and F1 do not compare.")
    saving, failing = options["save_baseline"], options["fail_on_regression"]
    threshold = mine.search.similarity_threshold
    held = files.find_baseline(
        options["baseline_file"], output, judged, n_results, threshold, will_save=saving, fail_on_regression=failing
    )  # fmt: skip
    if held.notice:
        print_stderr(held.notice)
    with show_evaluation_progress() as watch:
        done = evaluate(
            judged, mine, plan, persist_dir=options["persist_dir"], tool=existing,
            alternative=_comparison_side(options["pairs"], settings), previous=former, report_progress=watch,
        )  # fmt: skip
    verdict = files.check_gate(done, held, options["regression_threshold"])
    written = files.save_reports(done, verdict, output, options["run_file"])
    failed = verdict is not None and verdict.has_regression and failing
    if saving and not failed:
        written += files.save_baseline(done, output, options["baseline_file"])
    if asked.as_json:
        print_json(as_json(done, verdict, include_queries=False))
    else:
        print_evaluation(done, verdict)
    for path in written:
        print_stderr(f"Wrote {path}")
    if failed:
        print_stderr("Regression: see the baseline above.")
        sys.exit(_REGRESSION_EXIT_CODE)


def _check_options(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that do not go together, before anything is read."""
    if options["name"] is not None:
        for name in ("fixture", *_CORPUS_OPTIONS, "persist_dir", "chunk_size", "chunk_overlap"):
            if options[name] is not None:
                told = name.replace("_", "-")
                raise click.UsageError(f"--{told} does not go with --name: the tool is asked as it is.", context)
        if options["dataset"] is None:
            raise click.UsageError("--name goes with --dataset, which is missing; make one with: bunko judge", context)
        return
    public = [name for name in _CORPUS_OPTIONS if options[name] is not None]
    if public and len(public) < len(_CORPUS_OPTIONS):
        missing = next(name for name in _CORPUS_OPTIONS if options[name] is None)
        raise click.UsageError(f"--{public[0]} goes with --{missing}, which is missing.", context)
    if public:
        for name in ("dataset", "fixture"):
            if options[name] is not None:
                raise click.UsageError(f"--{name} does not go with --corpus.", context)
        return
    for name in _REQUIRED_OPTIONS:
        if options[name] is None:
            param = next(param for param in context.command.params if param.name == name)
            raise click.MissingParameter(ctx=context, param=param)


def _existing_tool(shared: SharedOptions, name: str | None) -> ExistingTool | None:
    from bunko.evaluation.evaluate import ExistingTool

    if name is None:
        return None
    library = click.get_current_context().with_resource(shared.open(create=False))
    return ExistingTool(library, library.resolve_tool(name).name)


def _load_judged_set(options: dict[str, Any], settings: Settings, existing_tool: ExistingTool | None) -> JudgedSet:
    from bunko.evaluation import files
    from bunko.evaluation.report import format_count

    if existing_tool is not None:
        found, gone = files.load_tool_queries(options["dataset"], existing_tool.uris(), existing_tool.name)
        if gone:
            left = format_count(gone, "judged document is", "judged documents are")
            print_stderr(f"{left} not in {existing_tool.name} any more and left out.")
        return found
    if options["corpus"] is not None:
        return files.load_public_set(options["corpus"], options["queries"], options["qrels"])
    return files.find_judged_set(options["dataset"], options["fixture"], options["persist_dir"], settings)


def _choose_modes(mode_names: Sequence[str], *, default_to_settings: bool) -> tuple[Any, ...]:
    from bunko.types import MODES

    if "all" in mode_names:
        return MODES
    return tuple(dict.fromkeys(mode_names)) or (() if default_to_settings else ("hybrid",))


def _comparison_side(
    pairs: Sequence[str], load_settings: Callable[[dict[str, object]], Settings]
) -> AlternativeSettings | None:
    from bunko.evaluation.evaluate import AlternativeSettings
    from bunko.evaluation.overrides import parse_overrides

    if not pairs:
        return None
    changed = parse_overrides(pairs)
    made = load_settings(changed)
    return AlternativeSettings(" ".join(pairs), made, made.search.mode if "search.mode" in changed else None)


def print_evaluation(evaluation: Evaluation, verdict: BaselineVerdict | None) -> None:
    """Print scores, comparisons and the baseline: tables on a terminal, Markdown in a pipe."""
    from bunko.evaluation import report

    counted, queries = report.format_count, evaluation.judged_set.queries
    unanswered = sum(not query.is_answerable for query in queries)
    print_table(
        f"{counted(len(queries), 'question')}{f' ({unanswered} without an answer)' if unanswered else ''},"
        f" {counted(evaluation.documents, 'document')}, {counted(evaluation.chunks, 'chunk')}",
        ["measure", *(run.name for run in evaluation.runs)],
        report.score_rows(evaluation.runs),
    )
    for one in evaluation.comparisons:
        print_table(f"{one.second} compared with {one.first}", report.COMPARISON_HEADERS, report.comparison_rows(one))
    if verdict is not None:
        print_table(f"Baseline {verdict.path}", report.BASELINE_HEADERS, report.baseline_rows(verdict))
