"""Measuring answers: the questions that ship, what is measured, and a scripted model on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SourceError
from bunko.evaluation.answers import (
    JudgedQuestion,
    answer_measures,
    bundled_questions,
    load_questions,
    measure_answers,
)
from bunko.evaluation.dataset import JudgedDocument, bundled_files, load_documents
from bunko.evaluation.eval_library import judged_library
from bunko.settings import Settings
from bunko.text.language import detect_language
from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedCitation, CheckedSentence
from tests.chat.chat_service import ChatService, Reply, Request, chat_service
from tests.conftest import Run

DOCUMENTS = {
    "backups.md": "Backups are kept for 35 days in the Osaka region. Restoring one takes two hours.",
    "leave.md": "有給休暇は入社から六か月後に十日付与されます。",
}
QUESTIONS = [
    {"id": "kept", "question": "How long are backups kept?", "facts": ["35 days"], "sources": ["backups.md"]},
    {"id": "leave", "question": "有給休暇は何日ですか", "facts": ["十日", "10日"], "sources": ["leave.md"]},
    {"id": "none", "question": "Which backups does Bob like?"},
]


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    documents = [{"source_url": name, "title": "", "content": text} for name, text in DOCUMENTS.items()]
    (tmp_path / "documents.json").write_text(json.dumps({"documents": documents}), encoding="utf-8")
    (tmp_path / "questions.json").write_text(json.dumps({"questions": QUESTIONS}), encoding="utf-8")
    return tmp_path / "questions.json", tmp_path / "documents.json"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, run: Run) -> Iterator[ChatService]:
    with chat_service() as loopback:
        settings = {"PROVIDER": "lmstudio", "MODEL": "m", "BASE_URL": loopback.address}
        for name, value in {**settings, "INPUT_PRICE": "2", "OUTPUT_PRICE": "10"}.items():
            monkeypatch.setenv(f"BUNKO_CHAT_{name}", value)
        yield loopback


def numbered(results: str) -> dict[str, str]:
    """Return the number of each passage in the results of a search, by its text."""
    blocks = re.findall(r"<excerpt-\w+> \[(\d+)\][^\n]*\n(.*?)\n</excerpt", results, re.DOTALL)
    return {passage: number for number, passage in blocks}


def results_of(request: Request) -> str:
    return "".join(message["content"] for message in request["messages"] if message["role"] == "tool")


def question_of(request: Request) -> str:
    return str(next(message["content"] for message in request["messages"] if message["role"] == "user"))


def search(request: Request) -> Reply:
    return Reply(calls=[("search", json.dumps({"query": question_of(request)}))])


def test_the_bundled_questions_are_about_the_bundled_documents_and_have_their_facts() -> None:
    questions = load_questions(bundled_questions())
    documents = {document.id: document.text for document in load_documents(bundled_files()[1], [])}
    answerable = [question for question in questions if question.is_answerable]
    assert len(answerable) >= 60
    assert len(questions) - len(answerable) >= 30
    for language in ("ja", "en"):
        assert sum(detect_language(question.text) == language for question in answerable) >= 25
    for question in answerable:
        assert set(question.sources) <= set(documents)
        assert question.facts
        text = "".join(documents[source] for source in question.sources)
        assert any(fact in text for fact in question.facts), question.id


@pytest.mark.slow
def test_quoted_answers_are_right_and_refused_as_often_as_documented() -> None:
    documents = load_documents(bundled_files()[1], [])
    with judged_library(documents, Settings()) as library:
        run = measure_answers(library, load_questions(bundled_questions()), name="answers")
    assert run.model == ""
    assert run.measures["right"] >= 0.63
    assert run.measures["refusal"] >= 0.75
    assert run.measures["citation_recall"] >= 0.72
    assert run.measures["citation_precision"] >= 0.75
    assert run.measures["invented_citations"] == 0


def test_a_scripted_model_is_measured_by_its_citations_its_refusals_and_its_cost(
    run: Run, small: tuple[Path, Path], service: ChatService
) -> None:
    def reply(request: Request) -> Reply:
        results, question = results_of(request), question_of(request)
        if not results:
            return search(request)
        numbers = {name: numbered(results).get(text, "9") for name, text in DOCUMENTS.items()}
        if "How long" in question:
            return Reply(f"Backups are kept for 35 days [{numbers['backups.md']}].")
        if "Bob" in question:
            return Reply("The library does not say.")
        return Reply(f"有給休暇は十日です[{numbers['leave.md']}]。付与は三か月後です[9]。")

    service.script = reply
    questions, documents = small
    report: Any = run("evaluate", "--answers", "--dataset", questions, "--fixture", documents, "--json").json()
    assert report["model"] == "lmstudio:m"
    measures = report["measures"]
    assert (measures["answered"], measures["right"], measures["refusal"]) == (1, 1, 1)
    assert (measures["citation_recall"], measures["citation_precision"]) == (1, 1)
    assert measures["supported"] == 0.75  # of the second answer, one of two sentences
    assert measures["invented_citations"] == 0.25
    assert (measures["prompt_tokens"], measures["answer_tokens"]) == (200, 40), "as the model's server counts them"
    assert measures["cost"] == 0.0008
    assert len(service.requests) == 6
    assert all(len([m for m in request["messages"] if m["role"] == "user"]) == 1 for request in service.requests)


def test_a_model_that_answers_everything_wrongly_scores_nothing(
    run: Run, small: tuple[Path, Path], service: ChatService
) -> None:
    service.script = lambda request: (
        Reply("Bob keeps 99 backups in Paris [1].") if results_of(request) else search(request)
    )
    questions, documents = small
    out = run("evaluate", "--answers", "--dataset", questions, "--fixture", documents).out
    assert "3 questions (1 without an answer), answers written by lmstudio:m" in out
    assert "| answered | 0.000 |" in out
    assert "| supported | 0.000 |" in out
    assert "| refusal | 1.000 |" in out


def test_a_model_that_is_away_is_an_error_and_quotes_are_not_measured_in_its_place(
    run: Run, small: tuple[Path, Path], service: ChatService
) -> None:
    service.script = lambda request: Reply(status=401, error="wrong key")
    questions, documents = small
    ran = run("evaluate", "--answers", "--dataset", questions, "--fixture", documents)
    assert (ran.code != 0, ran.out) == (True, "")
    assert "lmstudio:m answered none of the first 3 questions" in ran.err
    assert "wrong key" in ran.err


def test_questions_that_a_model_leaves_to_quotes_are_counted_and_said(
    run: Run, small: tuple[Path, Path], service: ChatService
) -> None:
    service.script = lambda request: (
        Reply(status=400, error="too many questions")
        if "Bob" in question_of(request)
        else Reply("Bob [1].")
        if results_of(request)
        else search(request)
    )
    questions, documents = small
    ran = run("evaluate", "--answers", "--dataset", questions, "--fixture", documents, "--json")
    assert ran.json()["quoted"] == 1
    assert "1 of 3 questions: The answer is quoted from the documents." in ran.err
    assert "too many questions" in ran.err


def test_the_measures_of_one_answer() -> None:
    sources = [AnswerSource(number, "t", f"{number}.md", f"{number}.md:L1", "", "h") for number in (1, 2)]
    sentences = [
        CheckedSentence("It is 35 days.", "supported", (CheckedCitation("[1]", 1, "same", supports=True),)),
        CheckedSentence("Bob said so.", "unsupported", (CheckedCitation("[2]", 2, "same"),)),
        CheckedSentence("Hello.", "plain"),
    ]
    answer = CheckedAnswer("q", sentences, sources)
    values = answer_measures(JudgedQuestion("q", "q", ("35 days",), ("1.md",)), answer)
    assert (values["supported"], values["citation_support"]) == (0.5, 0.5)
    assert (values["citation_precision"], values["citation_recall"], values["right"]) == (0.5, 1.0, 1.0)
    assert "refusal" not in values
    assert answer_measures(JudgedQuestion("q", "q"), answer)["refusal"] == 0.0


def test_a_fact_in_a_sentence_that_is_not_supported_does_not_count_as_right() -> None:
    sentences = [
        CheckedSentence("It is 35 days.", "unsupported"),
        CheckedSentence("It is kept.", "supported", (CheckedCitation("[1]", 1, "same", supports=True),)),
    ]
    values = answer_measures(JudgedQuestion("q", "q", ("35 days",), ("1.md",)), CheckedAnswer("q", sentences, []))
    assert values["right"] == 0.0


def test_a_file_of_questions_with_mistakes_names_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(
        json.dumps({"questions": [{"id": "a", "question": "x", "facts": ["y"]}, {"id": "b", "questoin": "x"}]}),
        encoding="utf-8",
    )
    with pytest.raises(SourceError) as raised:
        load_questions(path)
    assert "has facts but no sources" in raised.value.message
    assert 'did you mean "question"' in raised.value.message


def test_a_tool_of_the_library_can_be_asked_own_questions(run: Run, tmp_path: Path, docs: Path) -> None:
    (docs / "backups.md").write_text(DOCUMENTS["backups.md"], encoding="utf-8")
    questions = tmp_path / "own.json"
    questions.write_text(json.dumps({"questions": QUESTIONS[:1]}), encoding="utf-8")
    place = ("--library", tmp_path / "library")
    run("add", docs, "--name", "ops", *place)
    report: Any = run("evaluate", "--answers", "--name", "ops", "--dataset", questions, "--json", *place).json()
    assert (report["name"], report["measures"]["right"]) == ("own", 1)
    assert run("evaluate", "--answers", "--name", "ops", *place).code == 2
    assert "cannot be used with --answers" in run("evaluate", "--answers", "--mode", "bm25").err


def test_the_questions_of_a_set_need_no_document_with_a_title() -> None:
    with judged_library([JudgedDocument("a", "", DOCUMENTS["backups.md"])], Settings()) as library:
        question = JudgedQuestion("kept", "How long are backups kept?", ("35 days",), ("a",))
        assert measure_answers(library, [question], name="small").measures["right"] == 1
