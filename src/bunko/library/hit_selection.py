"""Add to a ranking request which of the ranked hits are returned."""

from __future__ import annotations

from dataclasses import replace

from bunko.errors import QueryError
from bunko.search.request import RankRequest, SearchRequest, Selection


def add_selection(request: RankRequest, search_request: SearchRequest, limit: int) -> RankRequest:
    """Return a request for `limit` hits, with a selection if the first ones are not all that is asked for."""
    per_document = search_request.per_document
    if per_document is not None and per_document < 1:
        raise QueryError(
            f"{per_document} hits of a document cannot be returned", hint="Ask for 1 or more, or leave it out."
        )
    if per_document is None:
        return request if limit == request.top_k else replace(request, top_k=limit)
    selection = Selection(limit, per_document=per_document, fill_up=search_request.fill_up)
    return replace(request, selection=selection)
