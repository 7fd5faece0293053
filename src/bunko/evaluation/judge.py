"""Queries and a tool in, results to be judged out; judgements in, a dataset file that `bunko evaluate` reads out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from bunko.errors import SourceError
from bunko.evaluation.dataset import load_queries, read_text_file
from bunko.library.catalog import safe_name
from bunko.library.library import Library
from bunko.records import LoggedSearch
from bunko.text.language import detect_language
from bunko.text.normalise import escape_surrogates, normalise
from bunko.types import MODES, Hit, Tool

# What a key says about a document; a grade is a gain, so that 3 is worth three times as much as 1.
GRADES = {"y": 1, "n": 0, "1": 1, "2": 2, "3": 3}


def default_file(library: Library, tool: Tool) -> Path:
    """Return where judgements about a tool are kept if nobody says otherwise: beside the library."""
    return library.paths.folder / "judged" / f"{safe_name(tool.name)}.json"


def pool_hits(library: Library, tool: Tool, query: str, *, depth: int, refresh: bool = False) -> list[Hit]:
    """Return the best hit of each document that any mode finds, so that no mode is judged by its own results alone.

    Which mode found a document how high decides only the order: best ranks first.
    """
    modes = MODES if library.embedder_of(tool) is not None else ("bm25",)
    found: dict[str, tuple[int, Hit]] = {}
    for number, mode in enumerate(modes):
        answer = library.search(query, tool=tool.name, mode=mode, top_k=depth, refresh=refresh and not number)
        for rank, hit in enumerate(answer.hits):
            if hit.uri not in found or rank < found[hit.uri][0]:
                found[hit.uri] = rank, hit
    return [hit for _, hit in sorted(found.values(), key=lambda one: one[0])]


def unjudged_queries(searches: Iterable[LoggedSearch], tool: Tool, judgements: Judgements) -> list[str]:
    """Return the kept searches that were made over a tool and are not judged yet, the most frequent first."""
    count: dict[str, int] = {}
    for one in searches:
        if one.tool in ("", tool.name) and not judgements.has_query(one.query):
            count[one.query] = count.get(one.query, 0) + one.count
    return sorted(count, key=lambda query: (-count[query], query))


class Judgements:
    """The dataset file of one tool: read once, and written whole after every judgement."""

    def __init__(self, path: Path, tool: str) -> None:
        self.path, self._tool = path, tool
        self._data: dict[str, Any] = {"tool": tool, "queries": []}
        if path.exists():
            load_queries(path, None)  # says what is wrong with it, and where
            self._data = json.loads(read_text_file(path))
            about = self._data.get("tool", tool)
            if about != tool:
                raise SourceError(f"{path} is about {about}, not about {tool}", hint="Name another file with --output.")
        self._rows: dict[str, dict[str, Any]] = {_normalised_query(row["query"]): row for row in self._data["queries"]}

    def has_query(self, query: str) -> bool:
        """Say whether anything was judged for a query."""
        return _normalised_query(query) in self._rows

    def grade(self, query: str, uri: str) -> float | None:
        """Return what was said about a document, None if nothing was."""
        row = self._rows.get(_normalised_query(query), {})
        said: dict[str, float] = row.get("grades") or dict.fromkeys(row.get("expected_sources", ()), 1.0)
        if uri in row.get("negative_sources", ()):
            return said.get(uri, 0.0)
        return said.get(uri)

    def set_grade(self, query: str, uri: str, grade: float | None) -> None:
        """Write down how well a document answers, or with None that nothing was said."""
        row = self._ensure_row(query)
        grades = row.setdefault("grades", dict.fromkeys(row["expected_sources"], 1))
        expected = [one for one in row["expected_sources"] if one != uri]
        grades.pop(uri, None)
        if grade is not None:
            grades[uri] = grade
        row["expected_sources"] = [*expected, uri] if grade else expected
        if not grades and row.get("id") == _query_id(query):
            self._data["queries"].remove(self._rows.pop(_normalised_query(query)))
        self._write()

    def counts(self) -> tuple[int, int]:
        """Return how many queries and how many judgements there are."""
        rows = self._data["queries"]
        return len(rows), sum(len(row.get("grades") or row.get("expected_sources", ())) for row in rows)

    def _ensure_row(self, query: str) -> dict[str, Any]:
        if not self.has_query(query):
            text = escape_surrogates(query)
            made = {
                "id": _query_id(query),
                "query": text,
                "expected_sources": [],
                "language": detect_language(text) or "other",
            }
            self._rows[_normalised_query(query)] = made
            self._data["queries"].append(made)
        row = self._rows[_normalised_query(query)]
        row.setdefault("expected_sources", [])
        return row

    def _write(self) -> None:
        # Whole under another name first: whoever is killed meanwhile leaves the file as it was or as it will be.
        path, text = self.path, json.dumps(self._data, ensure_ascii=False, indent=1) + "\n"
        beside = path.with_name(f".{path.name}.{token_hex(4)}")
        try:
            if not self._rows:  # all was taken back, and a dataset without a question is none
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise SourceError(
                f"{path} cannot be written: {error.strerror or error}", hint="Choose another place with --output."
            ) from error


def unjudged_hits(hits: Sequence[Hit], query: str, judgements: Judgements) -> list[Hit]:
    """Return those hits whose documents nobody has judged for a query."""
    return [hit for hit in hits if judgements.grade(query, escape_surrogates(hit.uri)) is None]


def _normalised_query(query: str) -> str:
    return " ".join(normalise(query).casefold().split())


def _query_id(query: str) -> str:
    return sha256(_normalised_query(query).encode("utf-8", "surrogatepass")).hexdigest()[:12]
