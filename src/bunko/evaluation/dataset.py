"""A file of questions and a file of documents in, a judged set out, or an error that names file and line."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bunko.errors import SourceError
from bunko.evaluation.json_positions import JsonListError, list_items
from bunko.text.language import detect_language
from bunko.text.normalise import escape_surrogates

_MAX_PROBLEMS = 10
# A key that is as like as that to one we know is a slip; others are the file's own business.
_TYPO_SIMILARITY = 0.85
_DOCUMENT_KEYS = ("source_url", "title", "content")
_QUERY_KEYS = (
    "id", "query", "expected_sources", "grades", "negative_sources", "expected_keywords", "language", "kind", "notes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """A document as a judged set has it."""

    id: str  # its address or name, which judgements use
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A question with what is known about its answer."""

    id: str
    text: str
    grades: Mapping[str, float]  # document → how well it answers; empty if none does
    expected_sources: tuple[str, ...] = ()  # the documents that must come back; not given: all that have a grade
    negatives: tuple[str, ...] = ()  # documents that must not come back
    keywords: tuple[str, ...] = ()  # what the texts that come back should hold
    language: str = ""
    kind: str = ""
    notes: str = ""

    @property
    def relevant_uris(self) -> frozenset[str]:
        """Return the documents that count as right; others with a grade help the ranking's gain alone."""
        return frozenset(self.expected_sources or self.grades)

    @property
    def is_answerable(self) -> bool:
        """Say whether any document answers it."""
        return bool(self.grades)


@dataclass(frozen=True)
class JudgedSet:
    """A judged set: documents, and questions about them."""

    name: str
    documents: tuple[JudgedDocument, ...]
    queries: tuple[JudgedQuery, ...]

    @cached_property
    def digest(self) -> str:
        """Return a name for exactly these questions and judgements: scores compare within it only."""
        made = hashlib.sha256()
        for query in sorted(self.queries, key=lambda one: one.id):
            made.update(
                repr(
                    (query.id, query.text, sorted(query.grades.items()), sorted(query.relevant_uris), query.negatives)
                ).encode()
            )
        return made.hexdigest()[:16]


@dataclass
class FileProblems:
    """What is wrong with a file, collected, so that one run shows it all."""

    path: Path
    messages: list[str] = field(default_factory=list)

    def add(self, line: int, reason: str) -> None:
        """Note what is wrong on a line."""
        self.messages.append(f"{self.path}:{line}: {reason}")

    def raise_if_any(self) -> None:
        """Raise what was found, if anything was."""
        if self.messages:
            more = len(self.messages) - _MAX_PROBLEMS
            rest = f"\n… and {more} more" if more > 0 else ""
            raise SourceError(
                "\n".join(self.messages[:_MAX_PROBLEMS]) + rest,
                hint="Nothing was measured. Mend the file, then try again.",
            )


def load_judged_set(queries: Path, documents: Path, *, name: str = "") -> JudgedSet:
    """Read a judged set in two JSON files: `queries` of one, `documents` of the other."""
    held = load_documents(documents)
    asked = load_queries(queries, {one.id for one in held}, corpus_name=str(documents))
    return JudgedSet(name or queries.stem, held, asked)


def bundled_files() -> tuple[Path, Path]:
    """Return the questions and the documents that come with bunko."""
    folder = Path(str(files("bunko.evaluation"))) / "judged"
    return folder / "queries.json", folder / "documents.json"


def load_documents(path: Path) -> tuple[JudgedDocument, ...]:
    """Read the documents of a fixture: source_url, title and content of each."""
    problems = FileProblems(path)
    found: dict[str, JudgedDocument] = {}
    for line, value in _load_items(path, "documents"):
        row = JsonRow(value, line, problems, known_keys=_DOCUMENT_KEYS)
        made = JudgedDocument(
            row.text("source_url", required=True), row.text("title"), row.text("content", required=True)
        )
        if made.id in found:
            problems.add(line, f"there is a document {made.id!r} already")
        elif row.is_valid:
            found[made.id] = made
    if not found and not problems.messages:
        problems.add(1, "there are no documents")
    problems.raise_if_any()
    return tuple(found.values())


def load_queries(
    path: Path, known_uris: Iterable[str] | None, *, corpus_name: str = "the documents"
) -> tuple[JudgedQuery, ...]:
    """Read the questions of a dataset about documents that are known; None: about documents that come and go."""
    problems, known_uris = FileProblems(path), None if known_uris is None else set(known_uris)
    found: dict[str, JudgedQuery] = {}
    for line, value in _load_items(path, "queries"):
        row = JsonRow(value, line, problems, known_keys=_QUERY_KEYS)
        expected = row.texts("expected_sources")
        query = JudgedQuery(
            row.text("id", required=True),
            row.text("query", required=True),
            row.grades("grades", expected),
            expected,
            row.texts("negative_sources"),
            row.texts("expected_keywords"),
            row.text("language"),
            row.text("kind"),
            row.text("notes"),
        )
        for source in dict.fromkeys((*query.grades, *query.negatives)):
            if known_uris is not None and source not in known_uris:
                row.add_problem(f"query {query.id!r} names {source!r}, which is not in {corpus_name}")
        for source in sorted(query.relevant_uris & set(query.negatives)):
            row.add_problem(f"query {query.id!r} both expects {source!r} and forbids it")
        if query.id in found:
            row.add_problem(f"there is a query {query.id!r} already")
        elif row.is_valid:
            found[query.id] = with_language_and_kind(query)
    if not found and not problems.messages:
        problems.add(1, "there are no queries")
    problems.raise_if_any()
    return tuple(found.values())


def with_language_and_kind(query: JudgedQuery) -> JudgedQuery:
    """Return a query with language and kind filled in where the file does not say them."""
    kind = query.kind or ("" if query.is_answerable else "none")
    return replace(query, language=query.language or detect_language(query.text) or "other", kind=kind)


class JsonRow:
    """One object of a file, read field by field; what is wrong is noted with its line."""

    def __init__(self, value: Any, line: int, problems: FileProblems, *, known_keys: Sequence[str]) -> None:
        self._line, self._problems, self.is_valid = line, problems, True
        self._is_object = isinstance(value, dict)
        self._fields: dict[str, Any] = value if self._is_object else {}
        if not self._is_object:
            self.add_problem("this is not an object")
        for name in self._fields:
            meant = _intended_key(name, tuple(known_keys))
            if meant and meant not in self._fields:
                self.add_problem(f'there is no key "{escape_surrogates(name)}"; "{meant}" is meant')

    def add_problem(self, reason: str) -> None:
        """Note that this object cannot be used."""
        self._problems.add(self._line, reason)
        self.is_valid = False

    def text(self, *names: str, required: bool = False) -> str:
        """Return a text under the first of some names that is there."""
        name = next((one for one in names if one in self._fields), names[0])
        value = self._fields.get(name)
        if value is None and not required:
            return ""
        if not isinstance(value, str):
            if self._is_object:
                self.add_problem(f'"{name}" {"is missing" if value is None else "must be text"}')
            return ""
        if required and not value.strip():
            self.add_problem(f'"{name}" is empty')
        return escape_surrogates(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, each once."""
        value = self._fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self.add_problem(f'"{name}" must be a list of texts')
            return ()
        return tuple(dict.fromkeys(map(escape_surrogates, value)))

    def grades(self, name: str, expected: Sequence[str]) -> dict[str, float]:
        """Return how well each expected document answers: 1, unless the field says more."""
        value = self._fields.get(name)
        if value is None:
            return dict.fromkeys(expected, 1.0)
        if not isinstance(value, dict) or not all(_is_grade(grade) for grade in value.values()):
            self.add_problem(f'"{name}" must give each document a number, 0 or more')
            return {}
        given = {escape_surrogates(document): float(grade) for document, grade in value.items() if grade > 0}
        if missing := [one for one in expected if one not in given]:
            self.add_problem(f'"{name}" says nothing good about what is expected: {", ".join(missing)}')
        return given


@lru_cache(maxsize=1000)
def _intended_key(name: str, known_keys: tuple[str, ...]) -> str:
    """Return the key that a name was meant to be; empty if it is one, or like none."""
    if name in known_keys:
        return ""
    return next(iter(difflib.get_close_matches(name.casefold().replace("-", "_"), known_keys, 1, _TYPO_SIMILARITY)), "")


def _is_grade(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def read_text_file(path: Path) -> str:
    """Read a file of a judged set."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SourceError(f"{path}:{line}: this is not UTF-8", hint="Save the file as UTF-8.") from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", hint="Check the path.") from error


def _load_items(path: Path, key: str) -> Iterator[tuple[int, Any]]:
    try:
        yield from list_items(read_text_file(path), key)
    except JsonListError as error:
        hint = 'It should look like {"queries": [{"id": …, "query": …, "expected_sources": […]}]}.'
        if key == "documents":
            hint = 'It should look like {"documents": [{"source_url": …, "title": …, "content": …}]}.'
        raise SourceError(f"{path}:{error.line}: {error.reason}", hint=hint) from error
