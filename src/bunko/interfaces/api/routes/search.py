"""Search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.serialize import SearchReply, page_to_dict
from bunko.interfaces.tools.search_tool import MAX_RESULTS
from bunko.search.request import SearchRequest
from bunko.text.tags import normalise_tag
from bunko.types import Mode
from bunko.types.ranking import OPTIONS, RankingOption
from bunko.types.records import Filter

# A longer one is a mistake or an attack.
Text = Annotated[str, Field(max_length=10_000)]
Name = Annotated[str, Field(max_length=300)]
Score = Annotated[float, Field(ge=-1000, le=1000)]


class _SearchQuery(Shape):
    """What to search for, where, and how to rank it."""

    q: Text = Field("", description="Words or a question; empty with a filter: the newest documents")
    also: list[Text] = Field([], max_length=20, description="Another wording of the question; may be repeated")
    passage: Text = Field("", description="A sentence as it might stand in the answer")
    tool: list[Name] = Field([], max_length=100, description="Only these tools; may be repeated")
    mode: Mode | None = Field(None, description="By words, meaning or both")
    top_k: int | None = Field(None, ge=1, le=MAX_RESULTS, description="Number of results of a page")
    per_document: int | None = Field(None, ge=1, le=MAX_RESULTS, description="Most hits of one document")
    min_score: Score | None = Field(None, description="Leave out hits with a lower score")
    tag: list[Name] = Field([], max_length=100, description="Only with these tags; may be repeated")
    since: Name = Field("", description="Only from this date on: 2024-01-15, 2024-01, today, 2w")
    until: Name = Field("", description="Only up to this date")
    path: Name = Field("", description="Only paths that match a pattern: guide/**")
    selection: Name = Field("", description="Only the documents of a selection: POST /api/v1/selections")
    extract: Literal["snippet", "chunk", "section", "full"] | None = Field(None, description="How much of each hit")
    explain: bool = Field(False, description="Say why each hit was found")
    cursor: Name = Field("", description="next_cursor of the page before")
    rerank: bool | None = Field(None, description="false: keep the order, even if the settings name a reranker")

    @property
    def ranking(self) -> dict[str, Any]:
        """The options of ranking that it overrides."""
        return {name: value for name in OPTIONS if (value := getattr(self, name)) is not None}

    def request(self) -> SearchRequest:
        """Return what the library is asked."""
        return SearchRequest(
            self.q,
            self.tool[0] if len(self.tool) == 1 else tuple(self.tool) or None,
            also=tuple(self.also),
            passage=self.passage,
            mode=self.mode,
            top_k=self.top_k,
            per_document=self.per_document,
            min_score=self.min_score,
            where=Filter(
                self.path, tuple(map(normalise_tag, self.tag)), self.since, self.until, selection=self.selection
            ),
            explain=self.explain,
            extract=self.extract,
            cursor=self.cursor,
            rerank=self.rerank is not False,
            ranking=self.ranking,
        )


def _parameter(option: RankingOption) -> tuple[Any, Any]:
    limits: Any = {} if option.choices or option.kind is bool else {"ge": option.low, "le": option.high}
    return option.annotation | None, Field(None, description=option.meaning, **limits)


if TYPE_CHECKING:
    SearchQuery = _SearchQuery
else:
    SearchQuery = create_model(
        "SearchQuery",
        __base__=_SearchQuery,
        __doc__=_SearchQuery.__doc__,
        **{name: _parameter(option) for name, option in OPTIONS.items()},
    )


def search(call: Call, query: SearchQuery) -> dict[str, Any]:
    """Search documents, by words, meaning or both."""
    return page_to_dict(call.library.page(query.request()))


ENDPOINTS = [Endpoint("GET", "/search", search, SearchReply, right="read", has_etag=True)]
