"""Describe a search: what to search for, how to rank it, and how much of each hit to return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from bunko.errors import QueryError
from bunko.records import NO_FILTER, Filter
from bunko.text.normalise import escape_surrogates
from bunko.types import FUSIONS, MODES, Fusion, Mode

if TYPE_CHECKING:
    from bunko.search.passages import Extract

# Nobody types more; a longer query is a pasted document, and its beginning says what it is about.
MAX_QUERY_CHARS = 2000
# Rows that each arm contributes to a fusion: with fewer, one outlier changes the normalisation.
_MIN_FETCH = 30
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
    keep_full_matches: bool | None
    loanwords: bool | None
    bridge: bool | None


RANKING_OPTIONS: tuple[str, ...] = tuple(RankingOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as it was requested; None stands for the tool's own setting, else the library's."""

    query: str
    tool: str | tuple[str, ...] | None = None  # one or several; None: all active tools
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
    keep_full_matches: bool | None = None
    loanwords: bool | None = None
    bridge: bool | None = None
    where: Filter = NO_FILTER  # dates as people write them: 2024-01, today, 2w
    explain: bool = False
    explain_texts: bool = True  # an explanation also names the fields of terms and the best sentence
    operators: bool = True  # "a phrase" must be in a text, -word must not
    min_score: float | None = None
    per_document: int | None = None  # at most this many hits of a document; hits of others take their place
    fill_up: bool = False  # return more of a document after all if others have too few; for a list without pages
    refresh: bool = True  # import changes first if a check is due
    rewrite: bool | None = False  # let a chat model rewrite the query; None: if the settings enable it
    use_tool_settings: bool = True
    rerank: bool = True  # if the settings name a reranker
    # What a page of results adds to a search.
    extract: Extract | None = None
    max_chars: int | None = None  # cut longer passages after a sentence
    join_chunks: bool = True  # join neighbouring chunks of a document to one passage
    summary: bool = False
    cursor: str = ""
    continue_past_top_k: bool = True  # pages go on after the first `top_k` hits
    token_budget: int | None = None  # for the whole page; None: all passages, as they are stored
    tokens_per_passage: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the ranked hits are returned."""

    limit: int
    phrases: tuple[str, ...] = ()  # that a text must contain
    excluded: tuple[str, ...] = ()  # words and phrases that it must not contain
    min_score: float | None = None
    per_document: int | None = None
    fill_up: bool = False
    folders: tuple[tuple[str, str], ...] = ()  # of tools that may have the same files, by name; the innermost first


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
    keep_full_matches: bool = True  # also those below the minimum that contain every word of the query
    loanwords: bool = True
    bridge: bool = True  # also search for translations of the words
    where: Filter = NO_FILTER
    explain: bool = False
    explain_texts: bool = True  # an explanation also names the fields of terms and the best sentence
    depth: int | None = None  # rows of each arm; None: enough for `top_k`
    selection: Selection | None = None  # None: the first `top_k`
    rerank_count: int = 0  # how many of the first hits a reranker reads; 0: none
    read_documents: bool = False  # whether hits come with their documents, which passages need

    def __post_init__(self) -> None:
        """Reject invalid values and name the allowed ones."""
        if self.mode not in MODES:
            raise QueryError(f"Unknown search mode {self.mode!r}", hint=f"Use one of: {', '.join(MODES)}.")
        if self.fusion not in FUSIONS:
            raise QueryError(f"Unknown fusion {self.fusion!r}", hint=f"Use one of: {', '.join(FUSIONS)}.")
        if not 1 <= self.top_k <= MAX_HITS:
            raise QueryError(f"{self.top_k} results cannot be returned", hint=f"Ask for 1 to {MAX_HITS}.")

    @property
    def rows_per_arm(self) -> int:
        """Return how many rows each arm contributes."""
        if self.depth is not None:
            return self.depth
        return self.top_k if self.mode != "hybrid" else self.rows_to_select_from

    @property
    def rows_to_select_from(self) -> int:
        """Return how many rows of an arm a fusion or a selection of the best needs."""
        return max(3 * self.top_k, _MIN_FETCH)

    @property
    def has_combined_score(self) -> bool:
        """Return whether results are ranked by a weighted sum of the scores of both arms."""
        return self.mode == "hybrid" and self.fusion == "cc"


def clean_query(query: str) -> str:
    """Return the part of a query that is searched, without characters that cannot be encoded."""
    return escape_surrogates(query)[:MAX_QUERY_CHARS]


# The search settings a tool may override: their range if the first value is a float, else their allowed values.
_TOOL_SETTING_LIMITS: dict[str, tuple[object, ...]] = {
    "mode": MODES,
    "fusion": FUSIONS,
    "vector_weight": (0.0, 1.0),
    "k1": (0.0, 100.0),
    "b": (0.0, 1.0),
    "rrf_k": (1.0, 10_000.0),
    "loanwords": (True, False),
}


def tool_search_settings(options: object) -> dict[str, Any]:
    """Return the valid search settings among a tool's options; invalid and unknown ones are dropped."""
    if not isinstance(options, dict):
        return {}
    return {name: value for name, value in options.items() if is_tool_search_setting(name, value)}


def is_tool_search_setting(name: object, value: object) -> bool:
    """Return whether a tool may override a search setting with this value."""
    allowed = _TOOL_SETTING_LIMITS.get(name, ()) if isinstance(name, str) else ()
    if allowed and type(allowed[0]) is float:
        low, high = allowed
        return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]
    return any(type(value) is type(choice) and value == choice for choice in allowed)
