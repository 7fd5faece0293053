"""A corpus and queries in JSON lines and judgements in a table in, a judged set out: the form public sets have."""

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
    """Read a judged set; queries that nobody judged are left out, as every evaluation does."""
    documents = load_corpus(corpus)
    asked = _load_queries(queries)
    grades = _load_grades(qrels, {one.id for one in documents}, set(asked))
    judged = tuple(with_language_and_kind(replace(asked[one], grades=grades[one])) for one in asked if one in grades)
    return JudgedSet(name or corpus.resolve().parent.name, documents, judged)


def load_corpus(path: Path) -> tuple[JudgedDocument, ...]:
    """Read documents: id (or _id), title and text in each line."""
    problems = FileProblems(path)
    found: dict[str, JudgedDocument] = {}
    for row, line in _read_rows(path, problems, _DOCUMENT_KEYS):
        made = JudgedDocument(row.text("id", "_id", required=True), row.text("title"), row.text("text"))
        if row.is_valid and not (made.title.strip() or made.text.strip()):
            row.add_problem(f"document {made.id!r} is empty")
        if made.id in found:
            problems.add(line, f"there is a document {made.id!r} already")
        elif row.is_valid:
            found[made.id] = made
    if not found and not problems.messages:
        problems.add(1, "there are no documents")
    problems.raise_if_any()
    return tuple(found.values())


def _load_queries(path: Path) -> dict[str, JudgedQuery]:
    problems = FileProblems(path)
    found: dict[str, JudgedQuery] = {}
    for row, line in _read_rows(path, problems, _QUERY_KEYS):
        made = JudgedQuery(
            row.text("id", "_id", required=True),
            row.text("text", "query", required=True),
            {},
            language=row.text("language"),
            kind=row.text("kind", "type"),
        )
        if made.id in found:
            problems.add(line, f"there is a query {made.id!r} already")
        elif row.is_valid:
            found[made.id] = made
    if not found and not problems.messages:
        problems.add(1, "there are no queries")
    problems.raise_if_any()
    return found


def _read_rows(path: Path, problems: FileProblems, known_keys: Sequence[str]) -> Iterator[tuple[JsonRow, int]]:
    for line, text in enumerate(read_text_file(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deep")
            problems.add(line, f"this is not JSON: {reason}")
            continue
        yield JsonRow(value, line, problems, known_keys=known_keys), line


def _load_grades(path: Path, documents: set[str], queries: set[str]) -> dict[str, dict[str, float]]:
    """Read query, document and grade of each line; a line of names may come first, and TREC's second column is fine."""
    problems = FileProblems(path)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line, text in enumerate(read_text_file(path).split("\n"), 1):
        cells = text.strip("\r").split("\t") if "\t" in text else text.split()
        if not text.strip():
            continue
        if len(cells) == 4:
            del cells[1]
        if len(cells) != 3:
            problems.add(line, f"expected query, document and grade, found {len(cells)} columns")
            continue
        query, document, written = (cell.strip() for cell in cells)
        grade = _parse_grade(written)
        if grade is None:
            if line > 1 or query in queries:
                problems.add(line, f"{written!r} is not a grade")
            continue
        if query not in queries:
            problems.add(line, f"there is no query {query!r}")
        elif document not in documents:
            problems.add(line, f"there is no document {document!r}")
        elif document in found[query]:
            problems.add(line, f"{document!r} is judged twice for query {query!r}")
        else:
            found[query][document] = grade
    if not found and not problems.messages:
        problems.add(1, "there are no judgements")
    problems.raise_if_any()
    return {query: {one: grade for one, grade in judged.items() if grade > 0} for query, judged in found.items()}


def _parse_grade(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number and abs(number) != float("inf") else None
