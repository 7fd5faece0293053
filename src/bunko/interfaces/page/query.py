"""What the address of the search page says: the parameters of the API, and what is open on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal
from urllib.parse import quote, urlencode

from pydantic import Field
from starlette.datastructures import QueryParams

from bunko.interfaces.api.requests import parse_query
from bunko.interfaces.api.routes.search import Name, SearchQuery
from bunko.search.request import MAX_WORDINGS, SearchRequest
from bunko.types.ranking import OPTIONS

RESULTS_OF_A_PAGE = 10
_RESULTS_OF_A_DOCUMENT = 3
# What an address says even if it is false or 0.
_ALWAYS_WRITTEN = frozenset({*OPTIONS, "rerank"})
# What is only about one answer, not about what is searched.
_PASSING = ("part", "typed")


class PageQuery(SearchQuery):
    """A search of the page; its address can be shared."""

    why: int = Field(0, ge=0, le=1000, description="The result that is explained, counted from 1")
    tuning: bool = Field(False, description="Whether the settings of the ranking are shown")
    open: str = Field("", max_length=4000, description="The document beside the results: tool/path")
    like: str = Field(
        "", max_length=4000, description="The document that others are like: tool/path; nothing is searched"
    )
    language: Literal["", "ja", "en"] = Field("", description="Only passages in this language")
    hit: Name = Field("", description="Its lines that were found: L12-L30")
    at: int = Field(0, ge=0, description="Its character that was found, in long lines")
    lang: Name = Field("", description="Language of the page")
    part: Name = Field("", description="Only a part of the page, for scripts")
    typed: bool = Field(False, description="Whether more letters may follow, so that nothing may delay the results")

    @property
    def is_empty(self) -> bool:
        """Whether it neither searches nor filters."""
        return not (self.q.strip() or self.like or self.has_filter or self.selection)

    @property
    def search_language(self) -> str:
        """The language of the passages that are searched; without words there are only documents to list."""
        return self.language if self.q.strip() else ""

    @property
    def has_filter(self) -> bool:
        """Whether it has a filter that is not always visible."""
        return bool(self.tag or self.since or self.until or self.path)

    @property
    def also_fields(self) -> list[str]:
        """The other wordings, and empty fields for more."""
        count = max(2, min(len(self.also) + 1, MAX_WORDINGS), len(self.also))
        return [*self.also, *[""] * (count - len(self.also))]

    def page_request(self, *, explain: bool) -> SearchRequest:
        """Return what the library is asked for a page of results."""
        query = self.model_copy(
            update={
                "top_k": self.top_k or RESULTS_OF_A_PAGE,
                "per_document": self.per_document or _RESULTS_OF_A_DOCUMENT,
                "extract": "chunk",
                "explain": explain,
            }
        )
        request = query.request()
        # Not joined: each result has the score that it shows. Changed files and the reranker may take long.
        return replace(
            request, language=self.search_language, join_chunks=False, refresh=not self.typed,
            rerank=request.rerank and not self.typed,
        )  # fmt: skip

    def parameters(self, **changes: Any) -> list[tuple[str, str]]:
        """Return its parameters with some changes, without those that say nothing."""
        values = self.model_dump() | changes
        return [
            (name, _write(item))
            for name, value in values.items()
            if name not in _PASSING
            for item in (value if isinstance(value, list) else [value])
            if item not in ("", None, 0) or (name in _ALWAYS_WRITTEN and item is not None)
        ]

    def address(self, **changes: Any) -> str:
        """Return the address of the search page with some changes."""
        parameters = urlencode(self.parameters(**changes), quote_via=quote)
        return f"/?{parameters}" if parameters else "/"

    def reset_address(self) -> str:
        """Return the address of the same search with the ranking of the settings, which are still shown."""
        return self.address(**dict.fromkeys(OPTIONS), tuning=True, cursor="")


def parse_page_query(parameters: QueryParams) -> PageQuery:
    """Return the search of an address; fields that a form sends empty say nothing."""
    filled = [(name, value) for name, value in parameters.multi_items() if value.strip()]
    query = parse_query(PageQuery, urlencode(filled, quote_via=quote).encode())
    assert isinstance(query, PageQuery)
    return query


def document_address(tool: str, uri: str, **parameters: str | int) -> str:
    """Return the address of a document; the addresses of web pages are one part of it."""
    safe = "" if "://" in uri else "/"
    path = f"/documents/{quote(tool, safe='')}/{quote(uri, safe=safe, errors='replace')}"
    filled = {name: value for name, value in parameters.items() if value}
    return f"{path}?{urlencode(filled, quote_via=quote)}" if filled else path


def like_address(tool: str, uri: str, *, lang: str = "") -> str:
    """Return the address of the documents that are like one."""
    parameters = {"like": f"{tool}/{uri}"} | ({"lang": lang} if lang else {})
    return f"/?{urlencode(parameters, quote_via=quote, errors='replace')}"


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
