"""The `bunko evaluate` command, which measures search quality, and `bunko init-test-db`, which keeps its library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from anyio.from_thread import start_blocking_portal

from bunko.errors import BunkoError
from bunko.evaluation import files, report
from bunko.evaluation.answers import answers_to_dict, bundled_questions, load_questions, measure_answers, measure_rows
from bunko.evaluation.baseline import check_gate, find_baseline, load_report
from bunko.evaluation.dataset import bundled_files, load_documents
from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library, with_settings
from bunko.evaluation.evaluate import AlternativeSettings, EvaluationPlan, ExistingTool, evaluate, usable_modes
from bunko.evaluation.overrides import chunk_size_overrides, parse_overrides
from bunko.evaluation.report import format_count
from bunko.interfaces.chat.answering import open_answerer
from bunko.interfaces.chat.setup import build_chat_server
from bunko.interfaces.cli.options import PATH, SharedOptions, complete_tool_names, gather_options, shared_options
from bunko.interfaces.cli.terminal.evaluation_output import print_table
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, replace_controls
from bunko.interfaces.cli.terminal.progress import show_evaluation_progress
from bunko.types import MODES

if TYPE_CHECKING:
    from bunko.evaluation.baseline import BaselineGate, BaselineVerdict
    from bunko.evaluation.dataset import JudgedSet
    from bunko.evaluation.evaluate import Evaluation, PreviousReport
    from bunko.library.library import Library
    from bunko.settings import Settings
    from bunko.types.answers import CheckedAnswer

_REQUIRED_OPTIONS = ("chunk_size", "chunk_overlap", "vector_weight")
_CORPUS_OPTIONS = ("corpus", "queries", "qrels")
_REGRESSION_EXIT_CODE = 1


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """What `bunko evaluate` was asked for."""

    chunk_size: int | None
    chunk_overlap: int | None
    vector_weight: float | None
    dataset: Path | None
    fixture: Path | None
    name: str | None
    answers: bool
    corpus: Path | None
    queries: Path | None
    qrels: Path | None
    modes: tuple[str, ...]
    n_results: int | None
    threshold: float | None
    half: Literal["first", "second"] | None
    pairs: tuple[str, ...]
    against: Path | None
    output_dir: Path | None
    run_file: Path | None
    persist_dir: Path | None
    baseline_file: Path | None
    save_baseline: bool
    fail_on_regression: bool
    regression_threshold: float


@click.command()
@click.option("--chunk-size", type=click.IntRange(1), metavar="N", help="Maximum characters per chunk.  [required]")
@click.option(
    "--chunk-overlap", type=click.IntRange(0), metavar="N", help="Characters shared by neighbouring chunks.  [required]"
)
@click.option(
    "--vector-weight", type=click.FloatRange(0, 1), metavar="A", help="Weight of the vectors, 0 to 1.  [required]"
)
@click.option(
    "--dataset",
    type=PATH,
    metavar="FILE",
    help="Judged questions. [tests/fixtures/rag_evaluation_dataset.json, or the built-in ones]",
)
@click.option(
    "--fixture",
    type=PATH,
    metavar="FILE",
    help="Documents. [tests/fixtures/rag_test_documents.json, or the built-in ones]",
)
@click.option(
    "--name", "-n", metavar="TOOL", help="Evaluate this tool of the library.", shell_complete=complete_tool_names
)
@click.option("--answers", is_flag=True, help="Measure the answers of bunko ask instead of searches.")
@click.option("--corpus", type=PATH, metavar="FILE", help="Documents as JSON lines: id, title, text.")
@click.option("--queries", type=PATH, metavar="FILE", help="Questions as JSON lines: id, text; with --corpus.")
@click.option("--qrels", type=PATH, metavar="FILE", help="Judgements: query, document, grade; with --corpus.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["bm25", "semantic", "hybrid", "all"]),
    help="Search mode; may be repeated. [hybrid; with --corpus, from the settings]",
)
@click.option("--n-results", type=click.IntRange(1, 1000), metavar="N", help="Results to score. [5; with --corpus, 10]")
@click.option("--threshold", type=click.FloatRange(0, 2), metavar="D", help="Maximum cosine distance of a vector hit.")
@click.option(
    "--half",
    type=click.Choice(["first", "second"]),
    help="Ask only half of the questions, chosen by a hash: tune on the first, report the second.",
)
@click.option("--with", "pairs", multiple=True, metavar="KEY=VALUE", help="Compare with this setting changed.")
@click.option("--against", type=PATH, metavar="FILE", help="Compare with an earlier report.json.")
@click.option("--output-dir", type=PATH, metavar="DIR", help="Folder for the reports. [.tmp/rag-evaluation]")
@click.option("--run-file", type=PATH, metavar="FILE", help="Also write the results as a TREC run.")
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Keep the library in this folder and reuse it.")
@click.option("--baseline-file", type=PATH, metavar="FILE", help="Baseline to compare with.")
@click.option("--save-baseline", is_flag=True, help="Save these scores as the baseline.")
@click.option("--fail-on-regression", is_flag=True, help="Exit with code 1 if F1 drops too far below the baseline.")
@click.option(
    "--regression-threshold", type=click.FloatRange(0, 1), default=0.1, metavar="X", help="Accepted drop of F1. [0.1]"
)
@gather_options(EvaluateOptions)
@shared_options
@click.pass_context
def command(context: click.Context, /, options: EvaluateOptions, shared: SharedOptions) -> None:
    """Measure search quality on questions with known answers.

    The documents are imported into a separate library; yours is not changed. The first three options are required
    unless --corpus, --name or --answers is given. --library and --docs-dir only select the settings, unless --name is
    given: then the questions are about the documents of that tool, which is searched with its existing index.

    With --answers, the questions have facts that a right answer contains, or no answer; --dataset and --fixture name
    your own.

    \b
    Example:
      bunko evaluate --chunk-size 200 --chunk-overlap 30 --vector-weight 0.3
      bunko evaluate --corpus corpus.jsonl --queries queries.jsonl --qrels qrels.tsv --mode all
      bunko evaluate --chunk-size 200 --chunk-overlap 30 --vector-weight 0.3 --with vector_weight=0.8
      bunko evaluate --dataset judged.json --name notes
      bunko evaluate --answers
    """
    if options.answers:
        check_answer_options(context, options)
    else:
        _check_options(context, options)
    shared.configure_logging()
    existing_tool = _existing_tool(shared, options.name)
    flags = _setting_flags(options, existing_tool)

    def load_settings(changes: dict[str, object]) -> Settings:
        return shared.load_settings(flags | changes).settings

    settings = load_settings({})
    if options.answers:
        evaluate_answers(options, settings, existing_tool, shared)
        return
    judged_set = _load_judged_set(options, settings, existing_tool)
    if options.half is not None:
        judged_set = judged_set.only_half(options.half)
    for notice in judged_set.notices:
        print_stderr(notice)
    plan = _evaluation_plan(options, flags, settings, existing_tool)
    output = options.output_dir or files.OUTPUT_DIR
    previous = _load_previous_report(options.against, judged_set, plan.n_results)
    gate = _find_baseline(options, output, judged_set, plan.n_results, settings)
    with show_evaluation_progress() as observer:
        evaluation = evaluate(
            judged_set, settings, plan, persist_dir=options.persist_dir, tool=existing_tool,
            alternative=_alternative_settings(options.pairs, load_settings), previous=previous,
            observer=observer,
        )  # fmt: skip
    verdict = check_gate(evaluation, gate, options.regression_threshold)
    failed = verdict is not None and verdict.has_regression and options.fail_on_regression
    paths = _save_files(evaluation, verdict, output, options, existing_tool, save_baseline=not failed)
    if shared.as_json:
        print_json(report.as_json(evaluation, verdict, include_queries=False))
    else:
        print_evaluation(evaluation, verdict)
    for path in paths:
        print_stderr(f"Wrote {path}")
    if failed:
        print_stderr("Regression: F1 dropped by more than --regression-threshold.")
        sys.exit(_REGRESSION_EXIT_CODE)


def _save_files(
    evaluation: Evaluation,
    verdict: BaselineVerdict | None,
    output: Path,
    options: EvaluateOptions,
    tool: ExistingTool | None,
    *,
    save_baseline: bool,
) -> list[Path]:
    """Write the reports, and the baseline if it is wanted; return the paths."""
    paths = files.save_reports(evaluation, verdict, output, options.run_file)
    if tool is not None:
        paths += files.keep_report(evaluation, verdict, tool.library.paths.folder)
    if options.save_baseline and save_baseline:
        paths += files.save_baseline(evaluation, output, options.baseline_file)
    return paths


def _check_options(context: click.Context, options: EvaluateOptions) -> None:
    """Reject options that cannot be combined, before anything is read."""
    if options.name is not None:
        for name in ("fixture", *_CORPUS_OPTIONS, "persist_dir", "chunk_size", "chunk_overlap"):
            if getattr(options, name) is not None:
                flag = name.replace("_", "-")
                raise click.UsageError(
                    f"--{flag} cannot be used with --name: the tool is searched with its existing index", context
                )
        if options.dataset is None:
            raise click.UsageError("--name requires --dataset; create one with: bunko judge", context)
        return
    corpus_options = [name for name in _CORPUS_OPTIONS if getattr(options, name) is not None]
    if corpus_options and len(corpus_options) < len(_CORPUS_OPTIONS):
        missing = next(name for name in _CORPUS_OPTIONS if getattr(options, name) is None)
        raise click.UsageError(f"--{corpus_options[0]} requires --{missing}", context)
    if corpus_options:
        for name in ("dataset", "fixture"):
            if getattr(options, name) is not None:
                raise click.UsageError(f"--{name} cannot be used with --corpus", context)
        return
    for name in _REQUIRED_OPTIONS:
        if getattr(options, name) is None:
            param = next(param for param in context.command.params if param.name == name)
            raise click.MissingParameter(ctx=context, param=param)


def _existing_tool(shared: SharedOptions, name: str | None) -> ExistingTool | None:
    if name is None:
        return None
    library = click.get_current_context().with_resource(shared.open(create=False))
    return ExistingTool(library, library.resolve_tool(name).name)


def _setting_flags(options: EvaluateOptions, existing_tool: ExistingTool | None) -> dict[str, object]:
    """Return the settings that the command line and the tool override."""
    flags = chunk_size_overrides(options.chunk_size, options.chunk_overlap)
    flags |= {"search.vector_weight": options.vector_weight, "search.similarity_threshold": options.threshold}
    if existing_tool is None:
        return flags
    # The tool's own settings override the library's, and the command line overrides both.
    return existing_tool.search_overrides() | {key: value for key, value in flags.items() if value is not None}


def _load_judged_set(options: EvaluateOptions, settings: Settings, existing_tool: ExistingTool | None) -> JudgedSet:
    if existing_tool is not None and options.dataset is not None:
        judged_set, missing = files.load_tool_queries(options.dataset, existing_tool.uris(), existing_tool.name)
        if missing:
            documents = format_count(missing, "judged document is", "judged documents are")
            print_stderr(f"{documents} no longer in {existing_tool.name} and ignored.")
        return judged_set
    if options.corpus is not None and options.queries is not None and options.qrels is not None:
        return files.load_public_set(options.corpus, options.queries, options.qrels)
    return files.find_judged_set(options.dataset, options.fixture, options.persist_dir, settings)


def _evaluation_plan(
    options: EvaluateOptions, flags: dict[str, object], settings: Settings, existing_tool: ExistingTool | None
) -> EvaluationPlan:
    is_public = options.corpus is not None
    tool_mode = [str(flags["search.mode"])] if "search.mode" in flags else []
    names: tuple[Any, ...] = tuple(dict.fromkeys(options.modes or tool_mode))
    defaults: tuple[Any, ...] = () if is_public or existing_tool is not None else ("hybrid",)
    modes = MODES if "all" in names else names or defaults
    n_results = options.n_results or (10 if is_public else 5)
    # Our own format retrieves as many chunks as it scores results; public sets judge whole documents.
    return EvaluationPlan(usable_modes(modes, settings), n_results, None if is_public else n_results)


def _load_previous_report(path: Path | None, judged_set: JudgedSet, n_results: int) -> PreviousReport | None:
    """Load the report given with --against, and print what cannot be compared with it."""
    if not path:
        return None
    report = load_report(path)
    if report.digest != judged_set.digest:
        print_stderr(f"{report.name} has other questions or judgements; only questions in both are compared.")
    if report.n_results not in (None, n_results):
        print_stderr(
            f"{report.name} scored {report.n_results} results and this run {n_results}:"
            " precision, recall and F1 are not comparable."
        )
    return report


def _find_baseline(
    options: EvaluateOptions, output: Path, judged_set: JudgedSet, n_results: int, settings: Settings
) -> BaselineGate:
    gate = find_baseline(
        options.baseline_file, output, judged_set, n_results, settings.search.similarity_threshold,
        will_save=options.save_baseline, fail_on_regression=options.fail_on_regression,
    )  # fmt: skip
    if gate.notice:
        print_stderr(gate.notice)
    return gate


def _alternative_settings(
    pairs: Sequence[str], load_settings: Callable[[dict[str, object]], Settings]
) -> AlternativeSettings | None:
    if not pairs:
        return None
    overrides = parse_overrides(pairs)
    settings = load_settings(overrides)
    return AlternativeSettings(" ".join(pairs), settings, settings.search.mode if "search.mode" in overrides else None)


def print_evaluation(evaluation: Evaluation, verdict: BaselineVerdict | None) -> None:
    """Print scores, comparisons and the baseline: tables on a terminal, Markdown in a pipe."""
    format_count, queries = report.format_count, evaluation.judged_set.queries
    unanswered = sum(not query.is_answerable for query in queries)
    print_table(
        f"{format_count(len(queries), 'question')}{f' ({unanswered} without an answer)' if unanswered else ''},"
        f" {format_count(evaluation.documents, 'document')}, {format_count(evaluation.chunks, 'chunk')}",
        ["measure", *(run.name for run in evaluation.runs)],
        report.score_rows(evaluation.runs),
    )
    for comparison in evaluation.comparisons:
        print_table(
            f"{comparison.second} compared with {comparison.first}",
            report.COMPARISON_HEADERS,
            report.comparison_rows(comparison),
        )
    if verdict is not None:
        print_table(f"Baseline {verdict.path}", report.BASELINE_HEADERS, report.baseline_rows(verdict))


# Options that say what is asked, and how the documents are imported and searched.
_ANSWER_OPTIONS = ("answers", "dataset", "fixture", "name", "chunk_size", "chunk_overlap", "vector_weight", "threshold")
_ATTEMPTS = 3  # a model that is away may take minutes to say nothing
_SHARED_OPTIONS = ("library", "database", "docs_dir", "data_dir", "config", "as_json", "verbose")


def check_answer_options(context: click.Context, options: EvaluateOptions) -> None:
    """Reject options that say nothing about answers."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _ANSWER_OPTIONS + _SHARED_OPTIONS and source is not None and source.name == "COMMANDLINE":
            parameter = next(param for param in context.command.params if param.name == name)
            raise click.UsageError(f"{parameter.opts[0]} cannot be used with --answers", context)
    if options.name is not None and options.dataset is None:
        raise click.UsageError("--name requires --dataset: a file of questions", context)


def evaluate_answers(
    options: EvaluateOptions, settings: Settings, existing_tool: ExistingTool | None, shared: SharedOptions
) -> None:
    """Ask the questions, and print the measures."""
    path = options.dataset or bundled_questions()
    questions = load_questions(path)
    with show_evaluation_progress() as observer:
        if existing_tool is not None:
            library = with_settings(existing_tool.library, settings)
            with _open_model(library, existing_tool.name, len(questions)) as ask:
                run = measure_answers(
                    library, questions, name=path.stem, tool=existing_tool.name, ask=ask, observer=observer
                )
        else:
            documents = load_documents(options.fixture or bundled_files()[1], [])
            with (
                judged_library(documents, settings, observer=observer.for_step("Importing")) as library,
                _open_model(library, JUDGED_TOOL, len(questions)) as ask,
            ):
                run = measure_answers(library, questions, name=path.stem, tool=JUDGED_TOOL, ask=ask, observer=observer)
    if run.model and run.quoted:
        print_stderr(f"{len(run.quoted)} of {len(questions)} questions: {run.quoted[-1].notices[-1]}")
    if shared.as_json:
        print_json(answers_to_dict(run))
        return
    answerable = sum(question.is_answerable for question in questions)
    writer = f"written by {run.model}" if run.model else "quoted from the documents"
    title = f"{len(questions)} questions ({len(questions) - answerable} without an answer), answers {writer}"
    print_table(title, ["measure", "mean", "values"], measure_rows(run))


@contextmanager
def _open_model(library: Library, tool: str, question_count: int) -> Iterator[Callable[[str], CheckedAnswer] | None]:
    """Yield how the chat model answers a question as `bunko ask` lets it, from one tool; None without a model.

    A model that answers none of the first questions is an error: quotes would be measured in its place.
    """
    model = build_chat_server(library.settings)
    if model is None:
        yield None
        return
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_answerer(library, model, names=[tool], refresh=False)) as answerer,
    ):
        has_answered, attempts = False, 0

        def ask(question: str) -> CheckedAnswer:
            nonlocal has_answered, attempts
            answerer.start_again()
            answer = portal.call(answerer.ask, question)
            has_answered, attempts = has_answered or bool(answer.model), attempts + 1
            if not has_answered and attempts >= min(_ATTEMPTS, question_count):
                hint = answer.notices[-1].removeprefix("The answer is quoted from the documents. ")
                raise BunkoError(f"{model.label} answered none of the first {attempts} questions", hint=hint)
            return answer

        yield ask


@click.command("init-test-db")
@click.option("--chunk-size", type=click.IntRange(1), required=True, metavar="N", help="Maximum characters per chunk.")
@click.option(
    "--chunk-overlap",
    type=click.IntRange(0),
    required=True,
    metavar="N",
    help="Characters shared by neighbouring chunks.",
)
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Folder of the library. [.tmp/test_chroma_db]")
@click.option(
    "--fixture",
    type=PATH,
    metavar="FILE",
    help="Test documents. [tests/fixtures/rag_test_documents.json, or the built-in ones]",
)
@shared_options
def init_test_db(
    chunk_size: int, chunk_overlap: int, persist_dir: Path | None, fixture: Path | None, shared: SharedOptions
) -> None:
    """Create a library of test documents for bunko evaluate.

    \b
    Example:
      bunko init-test-db --chunk-size 200 --chunk-overlap 30 --fixture documents.json
    """
    shared.configure_logging()
    notices: list[str] = []
    documents = files.find_documents(fixture, notices)
    flags = chunk_size_overrides(chunk_size, chunk_overlap)
    settings = shared.load_settings(flags).settings
    folder = persist_dir or files.PERSIST_DIR
    with (
        show_evaluation_progress() as observer,
        judged_library(
            documents,
            settings,
            persist_dir=folder,
            observer=observer.for_step("Importing"),
        ) as library,
    ):
        totals = library.status().tools[0].totals
    for notice in notices:
        print_stderr(notice)
    if shared.as_json:
        print_json({"library": str(folder), "documents": totals.documents, "chunks": totals.chunks})
    else:
        click.echo(replace_controls(f"Wrote {folder}: {totals.documents} documents, {totals.chunks} chunks."))
