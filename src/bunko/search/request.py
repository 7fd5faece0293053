"""Describe a search: the query and how to rank its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bunko.errors import QueryError
from bunko.records import NO_FILTER, Filter
from bunko.text.normalise import escape_surrogates
from bunko.types import FUSIONS, MODES, Fusion, Mode

# Nobody types more; a longer query is a pasted document, and its beginning says what it is about.
MAX_QUERY_CHARS = 2000
# Rows that each arm contributes to a fusion: with fewer, one outlier changes the normalisation.
_MIN_FETCH = 30


@dataclass(frozen=True, slots=True)
class RankRequest:
    """A query and how to rank its results."""

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
        if not 1 <= self.top_k <= 1000:
            raise QueryError(f"{self.top_k} results cannot be returned", hint="Ask for 1 to 1000.")

    @property
    def rows_per_arm(self) -> int:
        """Return how many rows each arm contributes."""
        return self.top_k if self.mode != "hybrid" else max(3 * self.top_k, _MIN_FETCH)

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
