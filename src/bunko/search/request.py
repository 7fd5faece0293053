"""Describe a search: what to search for, how to rank it, and how much of each hit to return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from bunko.errors import QueryError
from bunko.records import NO_FILTER, Filter
from bunko.types import FUSIONS, MODES, Fusion, Mode

if TYPE_CHECKING:
    from bunko.search.passages import Extract

# The most hits that a search returns.
MAX_HITS = 1000


class RankingOptions(TypedDict, total=False):
    """Ranking settings that a search may override; an absent one, or None, keeps the setting."""

    fusion: Fusion | None
    vector_weight: float | None
    k1: float | None
    b: float | None
    rrf_k: float | None
    similarity_threshold: float | None
    min_combined_score: float | None
    loanwords: bool | None
    bridge: bool | None


RANKING_OPTIONS: tuple[str, ...] = tuple(RankingOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as it was requested; None stands for the tool's own setting, else the library's."""

    query: str
    tool: str | None = None  # None: all active tools
    kinds: tuple[str, ...] = ()  # only tools of these kinds
    mode: Mode | None = None
    top_k: int | None = None
    fusion: Fusion | None = None
    vector_weight: float | None = None
    k1: float | None = None
    b: float | None = None
    rrf_k: float | None = None
    similarity_threshold: float | None = None
    min_combined_score: float | None = None
    loanwords: bool | None = None
    bridge: bool | None = None
    where: Filter = NO_FILTER  # dates as people write them: 2024-01, today, 2w
    explain: bool = False
    refresh: bool = True  # import changes first if a check is due
    rewrite: bool | None = False  # let a chat model rewrite the query; None: if the settings enable it
    use_tool_settings: bool = True
    # What a page of results adds to a search.
    extract: Extract | None = None
    max_chars: int | None = None  # cut longer passages after a sentence
    join_chunks: bool = True  # join neighbouring chunks of a document to one passage
    unique_documents: bool = False  # only the best hit of each document
    summary: bool = False
    cursor: str = ""
    continue_past_top_k: bool = True  # pages go on after the first `top_k` hits
    token_budget: int | None = None  # for the whole page; None: all passages, as they are stored
    tokens_per_passage: int | None = None


@dataclass(frozen=True, slots=True)
class RankRequest:
    """A query and how to rank its results, with all settings resolved."""

    query: str
    mode: Mode = "bm25"
    top_k: int = 5
    fusion: Fusion = "cc"
    vector_weight: float | None = None  # None: chosen by how much of the query the best text contains
    k1: float = 1.2
    b: float = 0.75
    rrf_k: float = 60
    similarity_threshold: float | None = None  # maximum cosine distance of a vector hit
    min_combined_score: float | None = None
    loanwords: bool = True
    bridge: bool = True  # also search for translations of the words
    where: Filter = NO_FILTER
    explain: bool = False

    def __post_init__(self) -> None:
        """Reject invalid values and name the allowed ones."""
        if self.mode not in MODES:
            raise QueryError(f"Unknown search mode {self.mode!r}", hint=f"Use one of: {', '.join(MODES)}.")
        if self.fusion not in FUSIONS:
            raise QueryError(f"Unknown fusion {self.fusion!r}", hint=f"Use one of: {', '.join(FUSIONS)}.")
        if not 1 <= self.top_k <= MAX_HITS:
            raise QueryError(f"{self.top_k} results cannot be returned", hint=f"Ask for 1 to {MAX_HITS}.")
