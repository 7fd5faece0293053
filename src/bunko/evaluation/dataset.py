"""Load judged sets: documents, and queries with the documents that answer them."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from bunko.errors import SourceError
from bunko.text.language import detect_language
from bunko.text.normalise import escape_surrogates

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class JsonListError(ValueError):
    """Raised when the text is not a JSON object with the list; names the line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def list_items(text: str, key: str) -> Iterator[tuple[int, Any]]:
    """Yield the line and the value of each item of the list under a top-level key."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonListError(error.lineno, f"invalid JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise JsonListError(1, "the JSON is nested too deeply") from error
    if not isinstance(data, dict) or not isinstance(data.get(key), list):
        raise JsonListError(1, f'there is no list "{key}"')
    line, position = 1, _list_position(text, key)
    counted_to = 0
    for value in data[key]:
        position = _skip_blanks(text, position + 1)
        line += text.count("\n", counted_to, position)
        counted_to = position
        yield line, value
        position = _skip_blanks(text, _DECODER.raw_decode(text, position)[1])


def _list_position(text: str, key: str) -> int:
    """Return where the list of a key starts; of a duplicate key the last counts, as in `json.loads`."""
    list_start = -1
    position = _skip_blanks(text, 0)
    while text[position] != "}":
        position = _skip_blanks(text, position + 1)
        if text[position] == "}":
            break
        name, position = _DECODER.raw_decode(text, position)
        position = _skip_blanks(text, _skip_blanks(text, position) + 1)
        if name == key:
            list_start = position
        position = _skip_blanks(text, _DECODER.raw_decode(text, position)[1])
    return list_start


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


Half = Literal["first", "second"]
HALVES: tuple[Half, ...] = ("first", "second")
_MAX_PROBLEMS = 10
_MAX_EXAMPLES = 3
# What is left out of real sets: one item, and many.
EMPTY_DOCUMENT = "empty document", "empty documents"
EMPTY_QUERY = "empty query", "empty queries"
DUPLICATE_DOCUMENT = "document with the id of an earlier one", "documents with the ids of earlier ones"
DUPLICATE_QUERY = "query with the id of an earlier one", "queries with the ids of earlier ones"
UNKNOWN_DOCUMENT = "judgement of an empty or unknown document", "judgements of empty or unknown documents"
NO_ANSWER_LEFT = "query whose answers are all missing", "queries whose answers are all missing"
# An unknown key at least this similar to a known one is reported as a typo; other keys are ignored.
_TYPO_SIMILARITY = 0.85
_DOCUMENT_KEYS = ("source_url", "title", "content")
_QUERY_KEYS = (
    "id", "query", "also", "passage", "expected_sources", "grades", "negative_sources", "expected_keywords", "language",
    "kind", "notes",
)  # fmt: skip

_FORMATS = {
    "queries": '{"queries": [{"id": …, "query": …, "expected_sources": […]}]}',
    "documents": '{"documents": [{"source_url": …, "title": …, "content": …}]}',
    "questions": '{"questions": [{"id": …, "question": …, "facts": […], "sources": […]}]}',
}


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """A document of a judged set."""

    id: str  # URL or name, used by the judgements
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query with its relevance judgements."""

    id: str
    text: str
    grades: Mapping[str, float]  # document → relevance grade; empty if no document is relevant
    expected_sources: tuple[str, ...] = ()  # documents that must be returned; empty: all with a grade
    negatives: tuple[str, ...] = ()  # documents that must not be returned
    keywords: tuple[str, ...] = ()  # words that the returned texts should contain
    language: str = ""
    kind: str = ""
    notes: str = ""
    also: tuple[str, ...] = ()  # other wordings, as an assistant would give them
    passage: str = ""  # as it might stand in the answer

    @property
    def relevant_uris(self) -> frozenset[str]:
        """Return the documents that count as relevant; other graded documents only add to nDCG."""
        return frozenset(self.expected_sources or self.grades)

    @property
    def is_answerable(self) -> bool:
        """Return whether any document answers the query."""
        return bool(self.grades)


@dataclass(frozen=True)
class JudgedSet:
    """Documents and judged queries about them."""

    name: str
    documents: tuple[JudgedDocument, ...]
    queries: tuple[JudgedQuery, ...]
    notices: tuple[str, ...] = ()  # what was left out of the files

    @cached_property
    def digest(self) -> str:
        """Return a hash of the queries and judgements; only scores with the same hash are comparable."""
        digest = hashlib.sha256()
        for query in sorted(self.queries, key=lambda query: query.id):
            digest.update(
                repr(
                    (query.id, query.text, sorted(query.grades.items()), sorted(query.relevant_uris), query.negatives)
                ).encode()
            )
        return digest.hexdigest()[:16]

    def only_half(self, half: Half) -> JudgedSet:
        """Return the set with one half of its queries; the text of a query decides to which it belongs."""
        wanted = HALVES.index(half)
        queries = tuple(
            query
            for query in self.queries
            if hashlib.sha256(query.text.encode("utf-8", "surrogatepass")).digest()[0] % 2 == wanted
        )
        if not queries:
            raise SourceError(
                f"{self.name} has no question in the {half} half", hint="Nothing was measured. Use more questions."
            )
        return replace(self, queries=queries)


@dataclass
class FileProblems:
    """The problems of a file, collected so that one run reports all of them, and what is left out without being one."""

    path: Path
    messages: list[str] = field(default_factory=list)
    left_out: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # one item and many → names

    def add(self, line: int, reason: str) -> None:
        """Add a problem on a line."""
        self.messages.append(f"{self.path}:{line}: {reason}")

    def leave_out(self, nouns: tuple[str, str], name: str) -> None:
        """Leave out an item that real sets often have and that says nothing about a search."""
        self.left_out.setdefault(nouns, []).append(name)

    def notices(self) -> list[str]:
        """Return a message for each kind of items that are left out, with their number and a few names."""
        return [f"{self.path}: {left_out_text(nouns, names)}" for nouns, names in self.left_out.items()]

    def raise_if_empty(self, items: Collection[object], noun: str) -> None:
        """Raise the problems if there are any, or an error that nothing is left."""
        if not items and not self.messages:
            reasons = [left_out_text(nouns, names) for nouns, names in self.left_out.items()]
            self.add(1, f"there are no {noun}{' left' if reasons else ''}")
            self.messages += [f"{self.path}: {reason}" for reason in reasons]
        self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise an error that lists the problems, if there are any."""
        if self.messages:
            hidden_count = len(self.messages) - _MAX_PROBLEMS
            ending = f"\n… and {hidden_count} more" if hidden_count > 0 else ""
            raise SourceError(
                "\n".join(self.messages[:_MAX_PROBLEMS]) + ending,
                hint="Nothing was measured. Fix the file, then try again.",
            )


def left_out_text(nouns: tuple[str, str], names: Sequence[str]) -> str:
    """Return how many items are left out, and the first of them: 2 empty documents are left out: 471, 995."""
    examples = ", ".join(names[:_MAX_EXAMPLES]) + (", …" if len(names) > _MAX_EXAMPLES else "")
    subject = f"1 {nouns[0]} is" if len(names) == 1 else f"{len(names):,} {nouns[1]} are"
    return f"{subject} left out: {examples}"


def load_judged_set(queries: Path, documents: Path, *, name: str = "") -> JudgedSet:
    """Load a judged set from two JSON files: one with `queries`, one with `documents`."""
    notices: list[str] = []
    judged_documents = load_documents(documents, notices)
    document_ids = {document.id for document in judged_documents}
    judged_queries = load_queries(queries, document_ids, notices)
    return JudgedSet(name or queries.stem, judged_documents, judged_queries, tuple(notices))


def bundled_files() -> tuple[Path, Path]:
    """Return the paths of the queries and the documents that are bundled with bunko."""
    folder = Path(str(files("bunko.evaluation"))) / "judged"
    return folder / "queries.json", folder / "documents.json"


def load_documents(path: Path, notices: list[str]) -> tuple[JudgedDocument, ...]:
    """Load documents with `source_url`, `title` and `content` from a JSON file; add what is left out to `notices`."""
    problems = FileProblems(path)
    documents: dict[str, JudgedDocument] = {}
    for line, value in load_items(path, "documents"):
        row = JsonRow(value, line, problems, known_keys=_DOCUMENT_KEYS)
        document = JudgedDocument(
            row.text("source_url", required=True), row.text("title"), row.text("content", required=True, or_blank=True)
        )
        if not row.is_valid:
            continue
        if not document.text.strip():
            problems.leave_out(EMPTY_DOCUMENT, document.id)
        elif document.id in documents:
            problems.leave_out(DUPLICATE_DOCUMENT, document.id)
        else:
            documents[document.id] = document
    problems.raise_if_empty(documents, "documents")
    notices += problems.notices()
    return tuple(documents.values())


def load_queries(path: Path, known_uris: Iterable[str] | None, notices: list[str]) -> tuple[JudgedQuery, ...]:
    """Load judged queries from a JSON file; add what is left out to `notices`.

    Judgements of documents that are not known are left out, unless `known_uris` is None.
    """
    problems, known_uris = FileProblems(path), None if known_uris is None else set(known_uris)
    queries: dict[str, JudgedQuery] = {}
    for line, value in load_items(path, "queries"):
        row = JsonRow(value, line, problems, known_keys=_QUERY_KEYS)
        expected = row.texts("expected_sources")
        query = JudgedQuery(
            row.text("id", required=True),
            row.text("query", required=True, or_blank=True),
            row.grades("grades", expected),
            expected,
            row.texts("negative_sources"),
            row.texts("expected_keywords"),
            row.text("language"),
            row.text("kind"),
            row.text("notes"),
            row.texts("also"),
            row.text("passage"),
        )
        for source in sorted(query.relevant_uris & set(query.negatives)):
            row.add_problem(f"query {query.id!r} both expects {source!r} and forbids it")
        if not row.is_valid:
            continue
        if not query.text.strip():
            problems.leave_out(EMPTY_QUERY, query.id)
            continue
        if query.id in queries:
            problems.leave_out(DUPLICATE_QUERY, query.id)
            continue
        known_query = query
        if known_uris is not None:
            known_query = only_known_documents(query, known_uris)
            for source in (*query.grades, *query.negatives):
                if source not in known_uris:
                    problems.leave_out(UNKNOWN_DOCUMENT, source)
        if query.is_answerable and not known_query.is_answerable:
            problems.leave_out(NO_ANSWER_LEFT, query.id)
        else:
            queries[query.id] = with_language_and_kind(known_query)
    problems.raise_if_empty(queries, "queries")
    notices += problems.notices()
    return tuple(queries.values())


def only_known_documents(query: JudgedQuery, known_uris: Collection[str]) -> JudgedQuery:
    """Return the query with its judgements of these documents only."""
    return replace(
        query,
        grades={uri: grade for uri, grade in query.grades.items() if uri in known_uris},
        expected_sources=tuple(uri for uri in query.expected_sources if uri in known_uris),
        negatives=tuple(uri for uri in query.negatives if uri in known_uris),
    )


def without_wordings(query: JudgedQuery) -> JudgedQuery:
    """Return the query alone, as somebody types it."""
    return replace(query, also=(), passage="")


def with_language_and_kind(query: JudgedQuery) -> JudgedQuery:
    """Return the query with its language detected and its kind set where the file omits them."""
    kind = query.kind or ("" if query.is_answerable else "none")
    return replace(query, language=query.language or detect_language(query.text) or "other", kind=kind)


class JsonRow:
    """One JSON object of a file; reading a field adds its problems, with the line, to the file's list."""

    def __init__(self, value: Any, line: int, problems: FileProblems, *, known_keys: Sequence[str]) -> None:
        self._line, self._problems, self.is_valid = line, problems, True
        self._is_object = isinstance(value, dict)
        self._fields: dict[str, Any] = value if self._is_object else {}
        if not self._is_object:
            self.add_problem("expected an object")
        for name in self._fields:
            intended = _intended_key(name, tuple(known_keys))
            if intended and intended not in self._fields:
                self.add_problem(f'unknown key "{escape_surrogates(name)}"; did you mean "{intended}"?')

    def add_problem(self, reason: str) -> None:
        """Add a problem and mark the object as invalid."""
        self._problems.add(self._line, reason)
        self.is_valid = False

    def text(self, *names: str, required: bool = False, or_blank: bool = False, or_number: bool = False) -> str:
        """Return the text of the first of these fields that is present; a required one is not blank if not allowed."""
        name = next((name for name in names if name in self._fields), names[0])
        value = self._fields.get(name)
        if value is None and not required:
            return ""
        if or_number and type(value) is int:
            return str(value)
        if not isinstance(value, str):
            if self._is_object:
                self.add_problem(f'"{name}" {"is missing" if value is None else "must be text"}')
            return ""
        if required and not or_blank and not value.strip():
            self.add_problem(f'"{name}" is empty')
        return escape_surrogates(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list field, without duplicates."""
        value = self._fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.add_problem(f'"{name}" must be a list of texts')
            return ()
        return tuple(dict.fromkeys(map(escape_surrogates, value)))

    def grades(self, name: str, expected: Sequence[str]) -> dict[str, float]:
        """Return the grade of each document; without the field, each expected document has grade 1."""
        value = self._fields.get(name)
        if value is None:
            return dict.fromkeys(expected, 1.0)
        if not isinstance(value, dict) or not all(_is_grade(grade) for grade in value.values()):
            self.add_problem(f'"{name}" must give each document a number, 0 or more')
            return {}
        grades = {escape_surrogates(document): float(grade) for document, grade in value.items() if grade > 0}
        if missing := [document for document in expected if document not in grades]:
            self.add_problem(f'"{name}" has no grade above 0 for expected sources: {", ".join(missing)}')
        return grades


@lru_cache(maxsize=1000)
def _intended_key(name: str, known_keys: tuple[str, ...]) -> str:
    """Return the known key that a misspelt name resembles; empty if the name is known or resembles none."""
    if name in known_keys:
        return ""
    return next(iter(difflib.get_close_matches(name.casefold().replace("-", "_"), known_keys, 1, _TYPO_SIMILARITY)), "")


def _is_grade(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def read_text_file(path: Path) -> str:
    """Return the text of a UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SourceError(f"{path}:{line}: invalid UTF-8", hint="Save the file as UTF-8.") from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", hint="Check the path.") from error


def load_items(path: Path, key: str) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a list in a JSON file, each with its line."""
    try:
        yield from list_items(read_text_file(path), key)
    except JsonListError as error:
        raise SourceError(f"{path}:{error.line}: {error.reason}", hint=f"Expected {_FORMATS[key]}.") from error
