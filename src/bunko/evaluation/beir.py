"""Load judged sets in the BEIR format: corpus and queries as JSON lines, judgements as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bunko.evaluation.dataset import (
    DUPLICATE_DOCUMENT,
    DUPLICATE_QUERY,
    EMPTY_DOCUMENT,
    EMPTY_QUERY,
    NO_ANSWER_LEFT,
    UNKNOWN_DOCUMENT,
    FileProblems,
    JsonRow,
    JudgedDocument,
    JudgedQuery,
    JudgedSet,
    read_text_file,
    with_language_and_kind,
)

_UNJUDGED_QUERY = "query without judgements", "queries without judgements"
_UNKNOWN_QUERY = "judgement of an unknown query", "judgements of unknown queries"
_DUPLICATE_JUDGEMENT = "repeated judgement", "repeated judgements"
_DOCUMENT_KEYS = ("id", "_id", "title", "text")
_QUERY_KEYS = ("id", "_id", "text", "query", "also", "passage", "language", "kind", "type")


def load_beir(corpus: Path, queries: Path, qrels: Path, *, name: str = "") -> JudgedSet:
    """Load a judged set; what real sets have and a search cannot be measured by is left out, with a notice.

    That is: empty documents and queries, repeated ids, judgements of unknown documents and queries, and queries
    without judgements.
    """
    notices: list[str] = []
    documents = load_corpus(corpus, notices)
    problems = FileProblems(queries)
    queries_by_id = _load_queries(problems)
    judgements = _load_grades(qrels, {document.id for document in documents}, queries_by_id.keys(), notices)
    judged_queries: list[JudgedQuery] = []
    for query_id, query in queries_by_id.items():
        grades = judgements.grades.get(query_id)
        if grades:
            judged_queries.append(with_language_and_kind(replace(query, grades=grades)))
        elif query_id in judgements.unanswered:
            problems.leave_out(NO_ANSWER_LEFT, query_id)
        elif grades is None:
            problems.leave_out(_UNJUDGED_QUERY, query_id)
        else:  # judged, and no document answers it
            judged_queries.append(with_language_and_kind(query))
    problems.raise_if_empty(judged_queries, "queries")
    notices += problems.notices()
    return JudgedSet(name or corpus.resolve().parent.name, documents, tuple(judged_queries), tuple(notices))


def load_corpus(path: Path, notices: list[str]) -> tuple[JudgedDocument, ...]:
    """Load documents from JSON lines with `id` (or `_id`), `title` and `text`; add what is left out to `notices`."""
    problems = FileProblems(path)
    documents: dict[str, JudgedDocument] = {}
    for row in _read_rows(path, problems, _DOCUMENT_KEYS):
        document = JudgedDocument(
            row.text("id", "_id", required=True, or_number=True), row.text("title"), row.text("text")
        )
        if not row.is_valid:
            continue
        if not (document.title.strip() or document.text.strip()):
            problems.leave_out(EMPTY_DOCUMENT, document.id)
        elif document.id in documents:
            problems.leave_out(DUPLICATE_DOCUMENT, document.id)
        else:
            documents[document.id] = document
    problems.raise_if_empty(documents, "documents")
    notices += problems.notices()
    return tuple(documents.values())


def _load_queries(problems: FileProblems) -> dict[str, JudgedQuery]:
    queries: dict[str, JudgedQuery] = {}
    for row in _read_rows(problems.path, problems, _QUERY_KEYS):
        query = JudgedQuery(
            row.text("id", "_id", required=True, or_number=True),
            row.text("text", "query", required=True, or_blank=True),
            {},
            language=row.text("language"),
            kind=row.text("kind", "type"),
            also=row.texts("also"),
            passage=row.text("passage"),
        )
        if not row.is_valid:
            continue
        if not query.text.strip():
            problems.leave_out(EMPTY_QUERY, query.id)
        elif query.id in queries:
            problems.leave_out(DUPLICATE_QUERY, query.id)
        else:
            queries[query.id] = query
    problems.raise_if_empty(queries, "queries")
    return queries


def _read_rows(path: Path, problems: FileProblems, known_keys: Sequence[str]) -> Iterator[JsonRow]:
    for line, text in _read_lines(path):
        try:
            value = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deeply")
            problems.add(line, f"invalid JSON: {reason}")
            continue
        yield JsonRow(value, line, problems, known_keys=known_keys)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers; files that were joined have byte order marks inside."""
    for line, text in enumerate(read_text_file(path).split("\n"), 1):
        if text.strip("\ufeff \t\r"):
            yield line, text.removeprefix("\ufeff").strip("\r")


class _Judgements(NamedTuple):
    """The grades above 0 by query and document, and the queries whose answers are all unknown documents."""

    grades: dict[str, dict[str, float]]
    unanswered: set[str]


def _load_grades(path: Path, documents: Set[str], queries: Set[str], notices: list[str]) -> _Judgements:
    """Load query, document and grade from each line; a header line and TREC's second column are allowed."""
    problems = FileProblems(path)
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    unknown_answers: set[str] = set()
    for line, text in _read_lines(path):
        cells = text.split("\t") if "\t" in text else text.split()
        if len(cells) == 4:
            del cells[1]
        if len(cells) != 3:
            problems.add(line, f"expected query, document and grade, found {len(cells)} columns")
            continue
        query, document, grade_text = (cell.strip() for cell in cells)
        grade = _parse_grade(grade_text)
        if grade is None:
            if line > 1 or query in queries:
                problems.add(line, f"{grade_text!r} is not a grade")
            continue
        if query not in queries:
            problems.leave_out(_UNKNOWN_QUERY, query)
        elif document not in documents:
            problems.leave_out(UNKNOWN_DOCUMENT, document)
            if grade > 0:
                unknown_answers.add(query)
        elif document in grades[query]:
            problems.leave_out(_DUPLICATE_JUDGEMENT, f"{query} {document}")
        else:
            grades[query][document] = grade
    problems.raise_if_empty(grades, "judgements")
    notices += problems.notices()
    answers = {
        query: {document: grade for document, grade in by_document.items() if grade > 0}
        for query, by_document in grades.items()
    }
    return _Judgements(answers, {query for query in unknown_answers if not answers.get(query)})


def _parse_grade(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number and abs(number) != float("inf") else None
