"""Search."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.serialize import page_to_dict
from bunko.interfaces.tools.search_tool import MAX_RESULTS
from bunko.records import Filter
from bunko.search.request import RANKING_OPTIONS, SearchRequest
from bunko.text.tags import normalise_tag
from bunko.types import Fusion, Mode

# A longer one is a mistake or an attack.
Text = Annotated[str, Field(max_length=10_000)]
Name = Annotated[str, Field(max_length=300)]
Score = Annotated[float, Field(ge=-1000, le=1000)]


class SearchQuery(Shape):
    """What to search for, where, and how to rank it."""

    q: Text = Field("", description="Words or a question; empty with a filter: the newest documents")
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
    fusion: Fusion | None = Field(None, description="How both rankings are fused")
    vector_weight: float | None = Field(None, ge=0, le=1, description="Weight of the meaning; words get the rest")
    k1: float | None = Field(None, ge=0, le=100, description="How soon repeated words stop counting")
    b: float | None = Field(None, ge=0, le=1, description="How much long texts are held back")
    rrf_k: float | None = Field(None, ge=0, le=10_000, description="Constant of the fusion of ranks")
    similarity_threshold: float | None = Field(None, ge=0, le=2, description="Largest distance of a hit by meaning")
    min_combined_score: Score | None = Field(None, description="Leave out fused hits with a lower score")
    keep_full_matches: bool | None = Field(None, description="Also those below it that contain all words")
    loanwords: bool | None = Field(None, description="Also search for English origins of Japanese words")
    bridge: bool | None = Field(None, description="Also search for translations of the words")
    rerank: bool | None = Field(None, description="false: keep the order, even if the settings name a reranker")

    def request(self) -> SearchRequest:
        """Return what the library is asked."""
        return SearchRequest(
            self.q,
            self.tool[0] if len(self.tool) == 1 else tuple(self.tool) or None,
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
            **{name: getattr(self, name) for name in RANKING_OPTIONS},
        )


class ArmScoreFields(TypedDict):
    """The score and rank that words, meaning or a reranker gave a hit."""

    score: float | None
    rank: int | None


class Expansion(TypedDict):
    """A further word that was searched for."""

    kind: str
    term: str


class ScorePartFields(TypedDict):
    """What words or meaning add to a score: value × weight are its points."""

    arm: str
    score: float | None
    rank: int | None
    value: float | None
    weight: float | None
    points: float | None


class TermScoreFields(TypedDict):
    """What one term adds to the score by words."""

    term: str
    kind: str
    score: float | None
    fields: list[str]


class NearestSentenceFields(TypedDict):
    """A sentence and its cosine with the query."""

    text: str
    score: float | None


class ExplanationFields(TypedDict):
    """Why a hit was found; the points of its parts add up to its score."""

    lane: str
    terms: list[str]
    expansions: list[Expansion]
    bm25: ArmScoreFields | None
    vector: ArmScoreFields | None
    reranker: NotRequired[ArmScoreFields]  # which decided the order; the score is that of the ranking before it
    fusion: str
    parts: list[ScorePartFields]
    term_scores: list[TermScoreFields]
    best_sentence: str
    nearest_sentence: NearestSentenceFields | None  # or heading, by vectors; None without them


class LeftOut(TypedDict):
    """How many characters before and after a passage were left out."""

    before: int
    after: int


class ResultFields(TypedDict):
    """A passage that was found."""

    tool: str
    file_path: str
    title: str
    date: str
    tags: list[str]
    heading: str
    heading_path: list[str]
    content: str
    marks: NotRequired[list[tuple[int, int]]]  # where the words of the query are in the content
    left_out: NotRequired[LeftOut]
    score: float | None
    vector_distance: float | None
    bm25_score: float | None
    combined_score: float | None
    reranker_score: NotRequired[float | None]  # which decided the order
    chunk_index: int
    citation: str
    place: NotRequired[str]
    line_start: int
    line_end: int
    char_start: int
    char_end: int
    hash: str
    content_hash: str
    uri: str
    trust: NotRequired[str]
    fetched_at: NotRequired[str]
    more_in_document: NotRequired[int]
    truncated: NotRequired[bool]
    explain: NotRequired[ExplanationFields]


class FreshnessFields(TypedDict):
    """Which state of the documents was searched."""

    generation: int
    checked_at: str
    missing: int


class SearchReply(TypedDict):
    """A page of results."""

    results: list[ResultFields]
    total_chunks: int
    query: str
    mode: str
    truncated: bool
    freshness: FreshnessFields
    note: str
    rewritten: NotRequired[str]
    reranker: NotRequired[str]  # the model that put the results in order
    next_cursor: NotRequired[str]
    notices: NotRequired[list[str]]


def search(call: Call, query: SearchQuery) -> dict[str, Any]:
    """Search documents, by words, meaning or both."""
    return page_to_dict(call.library.page(query.request()))


ENDPOINTS = [Endpoint("GET", "/search", search, SearchReply, right="read", has_etag=True)]
