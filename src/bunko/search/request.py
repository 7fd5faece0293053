"""Describe a search: what to search for, how to rank it, and how much of each hit to return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bunko.errors import QueryError
from bunko.text.normalise import escape_surrogates, normalise
from bunko.types import MODES, Mode
from bunko.types.ranking import DEFAULT_RANKING, OPTIONS, OptionValue, RankingOption, RankingOptions
from bunko.types.records import NO_FILTER, Filter, Wording

if TYPE_CHECKING:
    from collections.abc import Callable

    from bunko.search.passages import Extract, PassageRanges


# No person types more; a longer query is a pasted document, and its beginning says what it is about.
MAX_QUERY_CHARS = 2000
# Rows that each arm contributes to a fusion: with fewer, one outlier changes the normalisation.
FIRST_ROWS = 60
# The first rows are read closely, see `similarity.read_closely`; vectors alone need that more.
CLOSELY_READ: Mapping[Mode, int] = {"hybrid": 50, "semantic": 100}
# As many other wordings as anybody has ideas; each costs about as much as the query.
MAX_WORDINGS = 5
# The most hits that a search returns.
MAX_HITS = 1000


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as it was requested; None stands for the tool's own setting, else the library's."""

    query: str
    tool: str | tuple[str, ...] | None = None  # one or several; None: all active tools
    kinds: tuple[str, ...] = ()  # only tools of these kinds
    also: tuple[str, ...] = ()  # other wordings of the query, as the documents might say it; the first five count
    passage: str = ""  # as it might stand in the answer
    suggest_wordings: bool = False  # tell whoever can give them where they would help
    mode: Mode | None = None
    top_k: int | None = None
    ranking: Mapping[str, OptionValue] = field(default_factory=dict)  # of RankingOptions, those that it overrides
    where: Filter = NO_FILTER  # dates as people write them: 2024-01, today, 2w
    explain: bool = False
    explain_texts: bool = True  # an explanation also names the fields of terms and the best sentence
    operators: bool = True  # "a phrase" must be in a text, -word must not
    min_score: float | None = None
    language: str = ""  # ja or en: only passages in this language
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

    def __post_init__(self) -> None:
        """Reject wordings that are no texts, and ranking options that do not exist or are out of range."""
        if not all(isinstance(text, str) for text in (*self.also, self.passage)):
            raise QueryError("Other wordings and a passage are texts", hint='Write, for example: also=["tide pool"].')
        if self.ranking:
            object.__setattr__(self, "ranking", check_options(self.ranking))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the ranked hits are returned."""

    limit: int  # after those of earlier pages; with `new_ranges`, of passages, however many hits these have
    phrases: tuple[str, ...] = ()  # that a text must contain
    excluded: tuple[str, ...] = ()  # words and phrases that it must not contain
    language: str = ""  # that it must be in
    min_score: float | None = None
    per_document: int | None = None
    fill_up: bool = False
    folders: tuple[tuple[str, str], ...] = ()  # of tools that may have the same files, by name; the innermost first
    already_returned: int = 0  # hits of earlier pages; they are returned, too
    new_ranges: Callable[[], PassageRanges] | None = None  # which join hits to passages; None: each hit is one


@dataclass(frozen=True, slots=True)
class RankRequest:
    """A query and how to rank its results, with all settings resolved."""

    query: str  # cleaned
    mode: Mode = "bm25"
    row_count: int = 5
    options: RankingOptions = DEFAULT_RANKING
    where: Filter = NO_FILTER
    explain: bool = False
    explain_texts: bool = True  # an explanation also names the fields of terms and the best sentence
    depth: int | None = None  # rows of each arm; None: enough for `row_count`
    selection: Selection | None = None  # None: the first `row_count`
    rerank_count: int = 0  # how many of the first hits a reranker reads; 0: none
    read_documents: bool = False  # whether hits come with their documents, which passages need
    wordings: tuple[Wording, ...] = ()  # ranked beside the query

    def __post_init__(self) -> None:
        """Reject invalid values and name the allowed ones."""
        if self.mode not in MODES:
            raise QueryError(f"Unknown search mode {self.mode!r}", hint=f"Use one of: {', '.join(MODES)}.")
        if not 1 <= self.row_count <= MAX_HITS:
            raise QueryError(f"{self.row_count} results cannot be returned", hint=f"Ask for 1 to {MAX_HITS}.")

    @property
    def rows_per_arm(self) -> int:
        """Return how many rows each arm contributes."""
        if self.depth is not None:
            return self.depth
        if self.mode == "hybrid":
            return self.rows_to_select_from
        return self.row_count if self.mode == "bm25" else max(self.row_count, CLOSELY_READ["semantic"])

    @property
    def rows_to_select_from(self) -> int:
        """Return how many rows of an arm a fusion or a selection of the best needs."""
        return max(3 * self.row_count, FIRST_ROWS)

    @property
    def has_combined_score(self) -> bool:
        """Return whether results are ranked by a weighted sum of the scores of both arms."""
        return self.mode == "hybrid" and self.options.fusion == "cc"

    @property
    def has_adaptive_weight(self) -> bool:
        """Return whether the weight of that sum is chosen for each query."""
        return self.has_combined_score and self.options.vector_weight is None


def clean_query(query: str) -> str:
    """Return the part of a query that is searched, without characters that cannot be encoded."""
    return escape_surrogates(query)[:MAX_QUERY_CHARS]


def clean_wordings(query: str, also: Sequence[str], passage: str) -> tuple[Wording, ...]:
    """Return the wordings to rank beside a query, without those that are empty, too long or the same as another."""
    seen, wordings = {_fold(query)}, []
    for wording in (*(Wording("also", text) for text in also), Wording("passage", passage)):
        text, folded = escape_surrogates(wording.text).strip(), _fold(wording.text)
        if folded and folded not in seen and len(text) <= MAX_QUERY_CHARS:
            seen.add(folded)
            wordings.append(wording._replace(text=text))
    return (*[w for w in wordings if w.kind == "also"][:MAX_WORDINGS], *[w for w in wordings if w.kind == "passage"])


def _fold(text: str) -> str:
    return " ".join(normalise(text).casefold().split())


def check_options(values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return the options that have a value; raise QueryError for one that does not exist or is not allowed."""
    for name, value in values.items():
        option = OPTIONS.get(name)
        if option is None:
            raise QueryError(
                f"There is no ranking option {str(name)[:80]!r}", hint=f"Use one of: {', '.join(OPTIONS)}."
            )
        if value is not None and not option.accepts(value):
            choices = option.choices or (("true", "false") if option.kind is bool else ())
            hint = f"Use one of: {', '.join(choices)}." if choices else ""
            raise QueryError(
                f"{name} cannot be {str(value)[:80]!r}",
                hint=hint or f"Use a number from {option.low:g} to {option.high:g}.",
            )
    return {name: value for name, value in values.items() if value is not None}


def parse_options(texts: Iterable[str]) -> dict[str, OptionValue]:
    """Return options that are written like `k1=0.9`."""
    pairs = (text.partition("=") for text in texts)
    return check_options({name.strip(): _parse(OPTIONS.get(name.strip()), text.strip()) for name, _, text in pairs})


def _parse(option: RankingOption | None, text: str) -> OptionValue:
    if option is None or option.choices:
        return text
    if option.kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return int(text) if option.kind is int else float(text)
    except ValueError:
        return text


def tool_search_settings(options: object) -> dict[str, Any]:
    """Return the valid search settings among a tool's options; invalid and unknown ones are dropped."""
    if not isinstance(options, dict):
        return {}
    return {name: value for name, value in options.items() if is_tool_search_setting(name, value)}


def is_tool_search_setting(name: object, value: object) -> bool:
    """Return whether a tool may have a search setting with this value: a mode, or an option of ranking."""
    if name == "mode":
        return isinstance(value, str) and value in MODES
    return isinstance(name, str) and name in OPTIONS and OPTIONS[name].accepts(value)
