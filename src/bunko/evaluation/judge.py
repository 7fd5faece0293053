"""Collect results to judge, and store judgements in a dataset file that `bunko evaluate` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bunko.errors import LibraryReadOnly, SourceError, UnknownName
from bunko.evaluation.dataset import load_queries, read_text_file
from bunko.library.access import LibraryAccess
from bunko.library.importing.importer import hold_lock
from bunko.library.library import Library
from bunko.library.tools.assistant_names import file_name
from bunko.runtime.observer import NO_OBSERVER
from bunko.runtime.temporary_files import write_text_file
from bunko.text.language import detect_language
from bunko.text.normalise import escape_surrogates, normalise
from bunko.types import MODES, Hit, Tool
from bunko.types.records import LoggedSearch

# The grade of each key; a grade is a gain in nDCG, so 3 is worth three times as much as 1.
GRADES = {"y": 1, "n": 0, "1": 1, "2": 2, "3": 3}
WAIT_SECONDS = 10.0


def default_file(library: Library, tool: Tool) -> Path:
    """Return the default file for the judgements about a tool, in the library's folder."""
    return library.paths.folder / "judged" / f"{file_name(tool)}.json"


def rename_judgements(library: Library, tool: Tool, renamed: Tool) -> None:
    """Let the default file of a tool's judgements follow its new name; one that is there already stays."""
    old, new = default_file(library, tool), default_file(library, renamed)
    if not old.exists() or (new != old and new.exists()):
        return
    with hold_judgements(library):
        Judgements(old, tool.name).move(new, renamed.name)


@contextmanager
def hold_judgements(library: Library) -> Iterator[None]:
    """Let nobody else change judgements of a library meanwhile: each change rewrites a whole file."""
    lock = library.storage.lock("judge")
    options: Any = {"wait_seconds": WAIT_SECONDS, "observer": NO_OBSERVER, "activity": "judging results of"}
    with ExitStack() as stack:
        with suppress(LibraryReadOnly):  # there, judgements can only go to a file elsewhere
            stack.enter_context(hold_lock(lock, **options))
        yield


def pool_hits(library: Library, tool: Tool, query: str, *, depth: int, refresh: bool = False) -> list[Hit]:
    """Return the best hit of each document that any mode finds, so that no mode is judged by its own results alone.

    Documents are ordered by their best rank in any mode.
    """
    modes = MODES if library.embedder_of(tool) is not None else ("bm25",)
    best_hits: dict[str, tuple[int, Hit]] = {}
    for index, mode in enumerate(modes):
        answer = library.search(
            query, tool=tool.name, mode=mode, top_k=depth, operators=False, refresh=refresh and not index
        )
        for rank, hit in enumerate(answer.hits):
            if hit.uri not in best_hits or rank < best_hits[hit.uri][0]:
                best_hits[hit.uri] = rank, hit
    return [hit for _, hit in sorted(best_hits.values(), key=lambda ranked: ranked[0])]


def unjudged_queries(searches: Iterable[LoggedSearch], tool: Tool, judgements: Judgements) -> list[str]:
    """Return the logged queries of a tool that are not judged yet, most frequent first."""
    counts: dict[str, int] = {}
    for search in searches:
        if search.tool in ("", tool.name) and not judgements.has_query(search.query):
            counts[search.query] = counts.get(search.query, 0) + search.count
    return sorted(counts, key=lambda query: (-counts[query], query))


class Judgements:
    """The dataset file of one tool; it is read again and rewritten with every judgement.

    Somebody else may judge at the same time, in a browser or by the votes on an answer: `hold_judgements` before.
    """

    def __init__(self, path: Path, tool: str) -> None:
        self.path, self._tool = path, tool
        self._load()

    def _load(self) -> None:
        path, tool = self.path, self._tool
        self._data: dict[str, Any] = {"tool": tool, "queries": []}
        if path.exists():
            load_queries(path, None, [])  # reports problems with their line
            self._data = json.loads(read_text_file(path))
            judged_tool = self._data.get("tool", tool)
            if judged_tool != tool:
                raise SourceError(
                    f"{path} is about {judged_tool}, not about {tool}",
                    hint="Name another file with --output.",
                )
        self._rows: dict[str, dict[str, Any]] = {_normalised_query(row["query"]): row for row in self._data["queries"]}

    def has_query(self, query: str) -> bool:
        """Return whether a query has judgements."""
        return _normalised_query(query) in self._rows

    def grade(self, query: str, uri: str) -> float | None:
        """Return the grade of a document, None if it is not judged."""
        row = self._rows.get(_normalised_query(query), {})
        grades: dict[str, float] = row.get("grades") or dict.fromkeys(row.get("expected_sources", ()), 1.0)
        if uri in row.get("negative_sources", ()):
            return grades.get(uri, 0.0)
        return grades.get(uri)

    def set_grade(self, query: str, uri: str, grade: float | None) -> None:
        """Store the grade of a document, or remove it with None."""
        self._load()
        row = self._ensure_row(query)
        grades = row.setdefault("grades", dict.fromkeys(row["expected_sources"], 1))
        expected = [source for source in row["expected_sources"] if source != uri]
        grades.pop(uri, None)
        if grade is not None:
            grades[uri] = grade
        row["expected_sources"] = [*expected, uri] if grade else expected
        if not grades and row.get("id") == _query_id(query):
            self._data["queries"].remove(self._rows.pop(_normalised_query(query)))
        self._write()

    def set_feedback(self, query: str, feedback: Mapping[str, Any]) -> None:
        """Store with a judged query what people said about its answer; measures ignore it."""
        self._load()
        if self.has_query(query):
            self._rows[_normalised_query(query)]["feedback"] = dict(feedback)
            self._write()

    def counts(self) -> tuple[int, int]:
        """Return the number of queries and the number of judgements."""
        rows = self._data["queries"]
        return len(rows), sum(len(row.get("grades") or row.get("expected_sources", ())) for row in rows)

    def move(self, path: Path, tool: str) -> None:
        """Write the judgements to another file, as those of a renamed tool, and delete this one."""
        old_path, self.path = self.path, path
        self._data["tool"] = tool
        self._write()
        if path != old_path:
            old_path.unlink(missing_ok=True)

    def _ensure_row(self, query: str) -> dict[str, Any]:
        if not self.has_query(query):
            text = escape_surrogates(query)
            new_row = {
                "id": _query_id(query),
                "query": text,
                "expected_sources": [],
                "language": detect_language(text) or "other",
            }
            self._rows[_normalised_query(query)] = new_row
            self._data["queries"].append(new_row)
        row = self._rows[_normalised_query(query)]
        row.setdefault("expected_sources", [])
        return row

    def _write(self) -> None:
        # A process killed meanwhile leaves the old file or the new one.
        path, text = self.path, json.dumps(self._data, ensure_ascii=False, indent=1) + "\n"
        try:
            if not self._rows:  # every judgement was undone, and a dataset without queries is invalid
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text_file(path, text)
        except OSError as error:
            raise SourceError(
                f"{path} cannot be written: {error.strerror or error}", hint="Choose another file with --output."
            ) from error


def unjudged_hits(hits: Sequence[Hit], query: str, judgements: Judgements) -> list[Hit]:
    """Return the hits whose documents are not judged for a query."""
    return [hit for hit in hits if judgements.grade(query, escape_surrogates(hit.uri)) is None]


def _normalised_query(query: str) -> str:
    return " ".join(normalise(query).casefold().split())


def _query_id(query: str) -> str:
    return sha256(_normalised_query(query).encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class JudgedHit:
    """A document that was found, by its best hit, and its grade; None if nobody has judged it."""

    hit: Hit
    grade: float | None


class JudgeAccess:
    """The judgements about the tools that one caller may change: whoever judges decides how they are ranked."""

    def __init__(self, access: LibraryAccess) -> None:
        self._access, self._library = access, access.readable

    def tools(self) -> list[Tool]:
        """Return the active tools that the caller may judge."""
        can_write = self._access.caller.rights.can_write
        return [tool for tool in self._library.tools() if tool.active and can_write(tool.name)]

    def counts(self, tool: str) -> tuple[int, int]:
        """Return how many queries and how many of their documents are judged."""
        return self._judgements(self._writable(tool)).counts()

    def waiting_queries(self, tool: str) -> list[str]:
        """Return the recorded searches of a tool that are not judged yet, the most frequent first.

        Those of the whole library are only for whoever may change all of it: they tell what others look for.
        """
        target = self._writable(tool)
        searches = self._library.searches.log.all()
        if not self._access.caller.rights.writes_all:
            searches = [search for search in searches if search.tool == target.name]
        return unjudged_queries(searches, target, self._judgements(target))

    def documents(self, tool: str, query: str, *, depth: int) -> list[JudgedHit]:
        """Return the documents that any search mode finds, each with its grade."""
        target = self._writable(tool)
        judgements = self._judgements(target)
        hits = pool_hits(self._library, target, query, depth=depth)
        return [JudgedHit(hit, judgements.grade(query, escape_surrogates(hit.uri))) for hit in hits]

    def judge(self, tool: str, query: str, uri: str, grade: float | None) -> tuple[int, int]:
        """Store the grade of a document, or remove it with None; return how much is judged."""
        target = self._writable(tool)
        if grade is not None and self._library.documents.stored.get(target.id, uri) is None:
            raise UnknownName(f"{target.name} has no document {uri[:200]!r}", hint="Search again.")
        arguments = {"query": query, "document": uri, "grade": grade}
        with self._access.record("judge", [target.name], arguments), hold_judgements(self._library):
            judgements = self._judgements(target)
            judgements.set_grade(query, escape_surrogates(uri), grade)
        return judgements.counts()

    def _judgements(self, tool: Tool) -> Judgements:
        return Judgements(default_file(self._library, tool), tool.name)

    def _writable(self, name: str) -> Tool:
        tool = self._access.tool_care.get(name)
        self._access.check_write(tool.name)
        return tool
