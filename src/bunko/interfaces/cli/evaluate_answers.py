"""Measure answers for `bunko evaluate --answers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bunko.errors import BunkoError
from bunko.interfaces.cli.evaluation_output import print_table, show_evaluation_progress
from bunko.interfaces.cli.options import print_json, print_stderr

if TYPE_CHECKING:
    from bunko.evaluation.evaluate import ExistingTool
    from bunko.interfaces.cli.options import SharedOptions
    from bunko.library.library import Library
    from bunko.settings import Settings
    from bunko.types.answers import CheckedAnswer

# Options that say what is asked, and how the documents are imported and searched.
_USABLE = ("answers", "dataset", "fixture", "name", "chunk_size", "chunk_overlap", "vector_weight", "threshold")
_ATTEMPTS = 3  # a model that is away may take minutes to say nothing
_SHARED = ("library", "database", "docs_dir", "data_dir", "config", "as_json", "verbose")


def check_answer_options(context: click.Context, options: dict[str, Any]) -> None:
    """Reject options that say nothing about answers."""
    for name in options:
        source = context.get_parameter_source(name)
        if name not in _USABLE + _SHARED and source is not None and source.name == "COMMANDLINE":
            parameter = next(param for param in context.command.params if param.name == name)
            raise click.UsageError(f"{parameter.opts[0]} cannot be used with --answers", context)
    if options["name"] is not None and options["dataset"] is None:
        raise click.UsageError("--name requires --dataset: a file of questions", context)


def evaluate_answers(
    options: dict[str, Any], settings: Settings, existing_tool: ExistingTool | None, shared: SharedOptions
) -> None:
    """Ask the questions, and print the measures."""
    from bunko.evaluation.answers import (
        answers_to_dict,
        bundled_questions,
        load_questions,
        measure_answers,
        measure_rows,
    )
    from bunko.evaluation.dataset import bundled_files, load_documents
    from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library, with_settings

    path = options["dataset"] or bundled_questions()
    questions = load_questions(path)
    with show_evaluation_progress() as observer:
        if existing_tool is not None:
            library = with_settings(existing_tool.library, settings)
            with _open_model(library, existing_tool.name, len(questions)) as ask:
                run = measure_answers(
                    library, questions, name=path.stem, tool=existing_tool.name, ask=ask, observer=observer
                )
        else:
            documents = load_documents(options["fixture"] or bundled_files()[1], [])
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
    from bunko.interfaces.chat.setup import build_chat_server

    model = build_chat_server(library.settings)
    if model is None:
        yield None
        return
    from anyio.from_thread import start_blocking_portal

    from bunko.interfaces.chat.answering import open_answerer

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
