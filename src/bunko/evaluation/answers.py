"""Measure answers on questions with known answers: citations, support, refusals and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from bunko.evaluation.dataset import FileProblems, JsonRow, load_items
from bunko.evaluation.eval_library import JUDGED_TOOL
from bunko.evaluation.run import averages
from bunko.library.library import Library
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import SearchRequest
from bunko.text.normalise import normalise
from bunko.types.answers import CheckedAnswer

_QUESTION_KEYS = ("id", "question", "facts", "sources")


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question with what its answer must say; without sources, the documents do not answer it."""

    id: str
    text: str
    facts: tuple[str, ...] = ()  # an answer that says one of these is right; empty: only the sources count
    sources: tuple[str, ...] = ()  # documents that answer it, each of them alone

    @property
    def is_answerable(self) -> bool:
        """Whether the documents answer the question."""
        return bool(self.sources)


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """An answer with the measures that apply to it."""

    question: JudgedQuestion
    answer: CheckedAnswer
    measures: dict[str, float]


@dataclass(frozen=True)
class AnswerRun:
    """The answers to all questions."""

    name: str  # of the questions
    results: tuple[AnswerResult, ...]

    @property
    def model(self) -> str:
        """The model that wrote the answers; empty if they are quoted."""
        return next((result.answer.model for result in self.results if result.answer.model), "")

    @property
    def quoted(self) -> list[CheckedAnswer]:
        """The answers that no model wrote."""
        return [result.answer for result in self.results if not result.answer.model]

    @cached_property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the questions that it applies to."""
        return averages(result.measures for result in self.results)


def bundled_questions() -> Path:
    """Return the path of the questions that are bundled with bunko; they are about the bundled documents."""
    return Path(str(files("bunko.evaluation"))) / "judged" / "answers.json"


def load_questions(path: Path) -> tuple[JudgedQuestion, ...]:
    """Load questions from a JSON file."""
    problems = FileProblems(path)
    questions: dict[str, JudgedQuestion] = {}
    for line, value in load_items(path, "questions"):
        row = JsonRow(value, line, problems, known_keys=_QUESTION_KEYS)
        question = JudgedQuestion(
            row.text("id", required=True), row.text("question", required=True), row.texts("facts"), row.texts("sources")
        )
        if question.facts and not question.sources:
            row.add_problem(f"question {question.id!r} has facts but no sources")
        if question.id in questions:
            row.add_problem(f"there are two questions {question.id!r}")
        if row.is_valid:
            questions[question.id] = question
    problems.raise_if_any()
    problems.raise_if_empty(questions, "questions")
    return tuple(questions.values())


def measure_answers(
    library: Library,
    questions: Sequence[JudgedQuestion],
    *,
    name: str,
    tool: str = JUDGED_TOOL,
    ask: Callable[[str], CheckedAnswer] | None = None,
    observer: Observer = NO_OBSERVER,
) -> AnswerRun:
    """Ask every question, with `ask` or the library itself, and measure the answers."""
    results = []
    for position, question in enumerate(questions, 1):
        request = SearchRequest(question.text, tool, refresh=False)
        answer = ask(question.text) if ask is not None else library.answers.ask(request)
        results.append(AnswerResult(question, answer, answer_measures(question, answer)))
        observer.on_step("Answering", position, len(questions))
    return AnswerRun(name, tuple(results))


def answer_measures(question: JudgedQuestion, answer: CheckedAnswer) -> dict[str, float]:
    """Return the measures that apply to an answer."""
    values = {"prompt_tokens": float(answer.prompt_tokens), "answer_tokens": float(answer.answer_tokens)}
    values |= {"cost": answer.cost} if answer.cost else {}
    checked = [sentence for sentence in answer.sentences if sentence.status != "plain"]
    citations = [citation for sentence in checked for citation in sentence.citations if not citation.added]
    if checked:
        values["supported"] = sum(sentence.status == "supported" for sentence in checked) / len(checked)
    if citations:
        values["citation_support"] = sum(citation.supports for citation in citations) / len(citations)
        values["invented_citations"] = sum(not citation.number for citation in citations) / len(citations)
    if not question.is_answerable:
        values["refusal"] = float(not answer.is_found)
        return values
    cited = {source.uri for source in answer.cited_sources}
    values["answered"] = float(answer.is_found)
    values["citation_recall"] = float(not cited.isdisjoint(question.sources))
    if cited:
        values["citation_precision"] = len(cited.intersection(question.sources)) / len(cited)
    if question.facts:
        text = _fold(" ".join(sentence.text for sentence in answer.sentences if sentence.holds))
        values["right"] = float(answer.is_found and any(_fold(fact) in text for fact in question.facts))
    return values


def answers_to_dict(run: AnswerRun) -> dict[str, Any]:
    """Return a run as JSON data."""
    return {
        "questions": len(run.results),
        "answerable": sum(result.question.is_answerable for result in run.results),
        "name": run.name,
        "model": run.model,
        "quoted": len(run.quoted),
        "measures": {name: round(value, 6 if name == "cost" else 4) for name, value in run.measures.items()},
        "results": [
            {
                "id": result.question.id,
                "question": result.question.text,
                "answer": " ".join(sentence.text for sentence in result.answer.sentences),
                "statuses": [sentence.status for sentence in result.answer.sentences],
                "cited": [source.citation for source in result.answer.cited_sources],
                "measures": {name: round(value, 6 if name == "cost" else 4) for name, value in result.measures.items()},
            }
            for result in run.results
        ],
    }


# In the order of the report, with what each one is the mean of.
MEASURE_LABELS = {
    "answered": "answerable questions that got an answer",
    "right": "answerable questions whose answer has the right fact",
    "citation_recall": "answerable questions that cite a document with the answer",
    "citation_precision": "cited documents that have the answer",
    "supported": "sentences that their sources support",
    "citation_support": "citations whose passage says what the sentence says",
    "invented_citations": "citations of sources that were not shown",
    "refusal": "unanswerable questions that got no answer",
    "prompt_tokens": "tokens that the model read per question",
    "answer_tokens": "tokens that the model wrote per question",
    "cost": "cost per question, by chat.input_price and chat.output_price",
}


def measure_rows(run: AnswerRun) -> list[tuple[str, str, str]]:
    """Return the measures as rows of a table: name, value, meaning."""
    rows = []
    for name, label in MEASURE_LABELS.items():
        if name in run.measures and not (name.endswith("_tokens") and not run.model):
            value = run.measures[name]
            digits = {"prompt_tokens": 0, "answer_tokens": 0, "cost": 6}.get(name, 3)
            rows.append((name, f"{value:,.{digits}f}", label))
    return rows


def _fold(text: str) -> str:
    return "".join(normalise(text).casefold().split())
