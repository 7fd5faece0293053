"""Load judged sets in the BEIR format: corpus and queries as JSON lines, judgements as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bunko.evaluation.dataset import (
    FileProblems,
    JsonRow,
    JudgedDocument,
    JudgedQuery,
    JudgedSet,
    read_text_file,
    with_language_and_kind,
)

_DOCUMENT_KEYS = ("id", "_id", "title", "text")
_QUERY_KEYS = ("id", "_id", "text", "query", "language", "kind", "type")


def load_beir(corpus: Path, queries: Path, qrels: Path, *, name: str = "") -> JudgedSet:
    """Load a judged set; queries without judgements are skipped, as is usual."""
    documents = load_corpus(corpus)
    queries_by_id = _load_queries(queries)
    grades = _load_grades(qrels, {document.id for document in documents}, set(queries_by_id))
    judged_queries = tuple(
        with_language_and_kind(replace(query, grades=grades[query_id]))
        for query_id, query in queries_by_id.items()
        if query_id in grades
    )
    return JudgedSet(name or corpus.resolve().parent.name, documents, judged_queries)


def load_corpus(path: Path) -> tuple[JudgedDocument, ...]:
    """Load documents from JSON lines with `id` (or `_id`), `title` and `text`."""
    problems = FileProblems(path)
    documents: dict[str, JudgedDocument] = {}
    for row, line in _read_rows(path, problems, _DOCUMENT_KEYS):
        document = JudgedDocument(row.text("id", "_id", required=True), row.text("title"), row.text("text"))
        if row.is_valid and not (document.title.strip() or document.text.strip()):
            row.add_problem(f"document {document.id!r} is empty")
        if document.id in documents:
            problems.add(line, f"duplicate document {document.id!r}")
        elif row.is_valid:
            documents[document.id] = document
    if not documents and not problems.messages:
        problems.add(1, "there are no documents")
    problems.raise_if_any()
    return tuple(documents.values())


def _load_queries(path: Path) -> dict[str, JudgedQuery]:
    problems = FileProblems(path)
    queries: dict[str, JudgedQuery] = {}
    for row, line in _read_rows(path, problems, _QUERY_KEYS):
        query = JudgedQuery(
            row.text("id", "_id", required=True),
            row.text("text", "query", required=True),
            {},
            language=row.text("language"),
            kind=row.text("kind", "type"),
        )
        if query.id in queries:
            problems.add(line, f"duplicate query {query.id!r}")
        elif row.is_valid:
            queries[query.id] = query
    if not queries and not problems.messages:
        problems.add(1, "there are no queries")
    problems.raise_if_any()
    return queries


def _read_rows(path: Path, problems: FileProblems, known_keys: Sequence[str]) -> Iterator[tuple[JsonRow, int]]:
    for line, text in enumerate(read_text_file(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deeply")
            problems.add(line, f"invalid JSON: {reason}")
            continue
        yield JsonRow(value, line, problems, known_keys=known_keys), line


def _load_grades(path: Path, documents: set[str], queries: set[str]) -> dict[str, dict[str, float]]:
    """Load query, document and grade from each line; a header line and TREC's second column are allowed."""
    problems = FileProblems(path)
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for line, text in enumerate(read_text_file(path).split("\n"), 1):
        cells = text.strip("\r").split("\t") if "\t" in text else text.split()
        if not text.strip():
            continue
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
            problems.add(line, f"there is no query {query!r}")
        elif document not in documents:
            problems.add(line, f"there is no document {document!r}")
        elif document in grades[query]:
            problems.add(line, f"{document!r} is judged twice for query {query!r}")
        else:
            grades[query][document] = grade
    if not grades and not problems.messages:
        problems.add(1, "there are no judgements")
    problems.raise_if_any()
    return {
        query: {document: grade for document, grade in by_document.items() if grade > 0}
        for query, by_document in grades.items()
    }


def _parse_grade(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number and abs(number) != float("inf") else None
