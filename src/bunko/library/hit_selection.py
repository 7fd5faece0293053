"""Add to a ranking request which of the ranked hits are returned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from bunko.errors import QueryError
from bunko.search.query_syntax import ParsedQuery, parse_query
from bunko.search.request import RankRequest, SearchRequest, Selection, clean_query
from bunko.sources import find_kind
from bunko.text.labels import clean_label
from bunko.types import Hit, Tool

# A longer phrase is recognised by its beginning.
_MAX_QUOTED_CHARS = 80


def add_selection(
    request: RankRequest, search_request: SearchRequest, tools: Sequence[Tool], limit: int
) -> RankRequest:
    """Return a request for `limit` hits, with a selection if the first ones are not all that is asked for."""
    per_document, min_score = search_request.per_document, search_request.min_score
    if per_document is not None and per_document < 1:
        raise QueryError(
            f"{per_document} hits of a document cannot be returned", hint="Ask for 1 or more, or leave it out."
        )
    query = clean_query(request.query)
    parsed = parse_query(query) if search_request.operators else ParsedQuery(query)
    if parsed.excluded and not parsed.words:
        raise QueryError(
            "The query only says what to leave out", hint="Add words to search for, such as: kyoto -temple."
        )
    folders = shared_folders(tools) if len(tools) > 1 else ()
    if not (parsed.phrases or parsed.excluded or folders) and per_document is None and min_score is None:
        return request if limit == request.top_k else replace(request, top_k=limit)
    selection = Selection(
        limit, parsed.phrases, parsed.excluded, min_score, per_document, search_request.fill_up, folders
    )
    return replace(request, query=parsed.words, selection=selection)


def selection_notices(selection: Selection, hits: Sequence[Hit], best_score: float | None) -> list[str]:
    """Return what to tell about words and scores for which results were left out.

    `best_score` is that of the best result if all of them have too low a score.
    """
    notices = []
    if selection.excluded:
        words = [clean_label(word, _MAX_QUOTED_CHARS) for word in selection.excluded]
        # Somebody may have searched for an option of a command, such as -rf.
        option = next((word for word in words if word.isascii() and " " not in word), None)
        advice = f"; to search for -{option} itself, put it in quotes" if option else ""
        notices.append(f"Results with {_quote(selection.excluded, 'or')} are left out{advice}.")
    if best_score is not None:
        notices.append(f"All results have a score below {selection.min_score:g}; the best has {best_score:.4f}.")
    elif selection.phrases and not selection.excluded and not hits:
        pronoun = "its" if len(selection.phrases) == 1 else "their"
        notices.append(
            f"No result contains {_quote(selection.phrases, 'and')}. Without the quotes, {pronoun} words are searched."
        )
    return notices


def _quote(phrases: Sequence[str], conjunction: str) -> str:
    return f" {conjunction} ".join(f'"{clean_label(phrase, _MAX_QUOTED_CHARS)}"' for phrase in phrases)


def shared_folders(tools: Sequence[Tool]) -> tuple[tuple[str, str], ...]:
    """Return the names and folders of tools, the innermost first, if two of them may have the same files."""
    sources = sorted(tool.source + os.sep for tool in tools if tool.source)
    if not any(inner.startswith(outer) for outer, inner in pairwise(sources)):
        return ()
    innermost_first = sorted((tool for tool in tools if tool.source), key=lambda tool: len(tool.source), reverse=True)
    return tuple((tool.name, _folder_of(tool)) for tool in innermost_first)


def _folder_of(tool: Tool) -> str:
    """Return the folder that the documents of a tool are relative to."""
    kind, path = find_kind(tool.kind), Path(tool.source)
    is_file = kind is not None and kind.root != "folder" and path.is_file()
    return (path.parent if is_file else path).as_posix()
