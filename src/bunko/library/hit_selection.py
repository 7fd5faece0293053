"""Add to a ranking request which of the ranked hits are returned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from bunko.errors import QueryError
from bunko.search.request import RankRequest, SearchRequest, Selection
from bunko.sources import find_kind
from bunko.types import Tool


def add_selection(
    request: RankRequest, search_request: SearchRequest, tools: Sequence[Tool], limit: int
) -> RankRequest:
    """Return a request for `limit` hits, with a selection if the first ones are not all that is asked for."""
    per_document = search_request.per_document
    if per_document is not None and per_document < 1:
        raise QueryError(
            f"{per_document} hits of a document cannot be returned", hint="Ask for 1 or more, or leave it out."
        )
    folders = shared_folders(tools)
    if per_document is None and not folders:
        return request if limit == request.top_k else replace(request, top_k=limit)
    selection = Selection(limit, per_document=per_document, fill_up=search_request.fill_up, folders=folders)
    return replace(request, selection=selection)


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
