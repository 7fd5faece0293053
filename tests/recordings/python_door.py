"""Ask a library as Python programs do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import bunko
from tests.recordings.question_files import read_queries
from tests.recordings.recording import Recording

_HIT = ("text", "citation", "path", "lines", "title", "date", "tags", "score", "bm25_score", "vector_distance")
_CHUNK = ("index", "heading", "heading_path")
_OPTIONS: list[dict[str, Any]] = [
    {"mode": "bm25"}, {"mode": "semantic"}, {"mode": "hybrid", "fusion": "rrf"}, {"vector_weight": 0.1},
    {"k1": 0.2, "b": 0.0}, {"tool": "project"}, {"tool": ("project", "travel")}, {"tool": "nobody"},
    {"per_document": 1}, {"min_score": 0.4}, {"operators": False}, {"where": bunko.Filter(tags=("会議",))},
    {"where": bunko.Filter(since="2025-05", until="2025-06")}, {"where": bunko.Filter(path="*.md")},
    {"where": bunko.Filter(since="someday")}, {"mode": "fuzzy"}, {"top_k": 0}, {"top_k": 2000}, {"vector_weight": 7},
]  # fmt: skip


def record_python(recording: Recording, folder: Path, environ: Mapping[str, str]) -> None:
    """Search, read, ask and page through the public API."""
    with bunko.open(folder, environ=environ) as library:
        for ask, act in _actions(library):
            try:
                answer = act()
            except (bunko.BunkoError, ValueError, TypeError) as error:
                answer = {"error": type(error).__name__, "message": str(error), "hint": getattr(error, "hint", "")}
            recording.add("python", ask, answer)


def _actions(library: bunko.Library) -> list[tuple[object, Callable[[], Any]]]:
    """Return what is asked, each with a function that asks it."""
    actions: list[tuple[object, Callable[[], Any]]] = [
        (["search", query], partial(_search, library, query, {"top_k": 6})) for query in read_queries()
    ]
    actions += [
        (["search", query, repr(options)], partial(_search, library, query, options))
        for options in _OPTIONS
        for query in ("港 通知", "stale forecast")
    ]
    actions += [
        (["read", name], partial(library.read, name)) for name in ("oncall.md", "oncall.md:L16-L19", "no-such.md")
    ]
    actions += [
        (["ask", question], partial(_ask, library, question))
        for question in ("有給休暇は何日前までに申請しますか", "Who won the world cup in 1998?")
    ]
    return [*actions, ("page", partial(_page, library)), ("tools", partial(_tools, library))]


def _search(library: bunko.Library, query: str, options: dict[str, Any]) -> dict[str, Any]:
    answer = library.search(query, **options)
    return {
        "mode": answer.mode,
        "total_chunks": answer.total_chunks,
        "notices": [str(notice) for notice in answer.notices],
        "hits": [
            {name: _plain(getattr(hit, name)) for name in _HIT}
            | {name: _plain(getattr(hit.chunk, name)) for name in _CHUNK}
            | {"tool": str(hit.tool), "more_in_document": hit.more_in_document}
            for hit in answer.hits
        ],
    }


def _ask(library: bunko.Library, question: str) -> dict[str, Any]:
    answer = library.ask(question)
    return {
        "is_found": answer.is_found,
        "sentences": [
            [sentence.text, sentence.status, [citation.number for citation in sentence.citations]]
            for sentence in answer.sentences
        ],
        "sources": [[source.number, source.citation] for source in answer.cited_sources],
    }


def _page(library: bunko.Library) -> dict[str, Any]:
    page = library.page(bunko.SearchRequest("港", top_k=3, extract="section", token_budget=300))
    return {"results": [[item.passage.citation, item.text] for item in page.results], "cursor": page.next_cursor}


def _tools(library: bunko.Library) -> list[list[str]]:
    return [[tool.name, tool.kind, tool.description] for tool in library.tools()]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | list | tuple | None) else str(value)
