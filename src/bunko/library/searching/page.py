"""Cut an answer into pages of passages that fit a token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from bunko.library.searching.plan import SearchPlan
from bunko.library.tools.assistant_names import AssistantNames, assistant_names
from bunko.search.paging import Cursor, PageItem, build_page, check_cursor
from bunko.search.passages import PARTIAL_EXTRACTS, Extract, Passage, render_extract, snippet_terms
from bunko.search.request import SearchRequest
from bunko.sources import section_of
from bunko.text.snippets import SnippetTerms
from bunko.text.token_count import estimate_tokens
from bunko.types import Answer, Freshness, Hit, Mode

if TYPE_CHECKING:
    from bunko.search.summaries import Summary


# Everything else determines the pages. A first page from before somebody stopped typing is without the reranker, but
# has a next one too.
_NOT_IN_KEY = (
    "also", "cursor", "explain", "explain_texts", "refresh", "rerank", "suggest_wordings", "summary", "token_budget",
    "tokens_per_passage",
)  # fmt: skip
_KEY_VALUES = attrgetter(*(field.name for field in fields(SearchRequest) if field.name not in _NOT_IN_KEY))


@dataclass(frozen=True, slots=True)
class Page:
    """One page of search results."""

    query: str
    searched_query: str  # rewritten by a model, and without what the query excludes
    rewritten_query: str  # the query as rewritten by a model; empty if it was not rewritten
    reranker: str  # the model that put the results in order; empty if none did
    mode: Mode
    results: list[PageItem]
    total_chunks: int  # in the index
    freshness: Freshness
    notices: list[str]
    extract: Extract | None  # as requested; "full" for other texts that may have been cut
    summary: Summary | None
    next_cursor: str  # empty after the last page
    total_passages: int  # of the hits this page was taken from
    first_number: int  # of the first result among these passages, counted from 1
    is_first: bool
    several_tools: bool  # whether the hits are from several tools
    assistant_names: AssistantNames
    memo_tools: frozenset[str]  # people know what these have by its title

    @property
    def truncated(self) -> bool:
        """Whether another page follows, or a passage is not complete."""
        return bool(self.next_cursor) or not all(item.has_start and item.has_end for item in self.results)

    def heading_of(self, passage: Passage) -> str:
        """Return the heading above a passage, or the title of its memo; empty if there is none."""
        return passage.label.heading or (passage.hit.title if passage.hit.tool in self.memo_tools else "")

    def display_texts(self) -> list[str]:
        """Return the texts as readers see them: query terms marked in snippets, and omissions indicated."""
        if self.extract is None or self.extract not in PARTIAL_EXTRACTS:
            return [item.text for item in self.results]
        terms = snippet_terms(self.searched_query) if self.extract == "snippet" else SnippetTerms({})
        return [_display_text(item, self.extract, terms) for item in self.results]


def cut_page(
    plan: SearchPlan,
    answer: Answer,
    passages: Sequence[Passage],
    start: Cursor,
    following: Cursor | None,  # where the passages after these start
    summary: Summary | None,
    overhead_tokens: Callable[[Passage], int],
) -> Page:
    """Return the page of an answer that starts at a passage and fits the token budget of its request."""
    request = plan.request
    token_budget = request.token_budget
    if token_budget is not None and summary is not None:
        from bunko.search.summaries import format_summary

        # A summary appears in both forms of a reply, but takes at most half of it.
        token_budget = max(token_budget - 2 * estimate_tokens(format_summary(summary)), token_budget // 2)
    items, next_in_hits = build_page(
        passages,
        replace(start, generation=answer.freshness.generation),
        token_budget=token_budget,
        tokens_per_passage=request.tokens_per_passage,
        overhead_tokens=overhead_tokens,
    )
    next_start = next_in_hits or following
    extract = request.extract
    return Page(
        query=request.query,
        searched_query=answer.searched_query,
        rewritten_query=answer.rewritten_query,
        reranker=answer.reranker,
        mode=answer.mode,
        results=_add_folded_counts(items, passages, answer.hits),
        total_chunks=answer.total_chunks,
        freshness=answer.freshness,
        notices=answer.notices,
        extract="full" if request.max_chars is not None and extract != "snippet" else extract,
        summary=summary,
        next_cursor=next_start.encode(_request_key(request, answer)) if next_start else "",
        total_passages=len(passages),
        first_number=start.passage_index + 1,
        is_first=not request.cursor,
        several_tools=len({hit.tool for hit in answer.hits}) > 1,
        assistant_names=assistant_names(plan.library_tools),
        memo_tools=frozenset(tool.name for tool in plan.library_tools if section_of(tool.kind) == "memos"),
    )


def check_page_cursor(digest: str, request: SearchRequest, answer: Answer) -> None:
    """Raise an error if a cursor with this digest belongs to another request."""
    check_cursor(digest, _request_key(request, answer))


def _request_key(request: SearchRequest, answer: Answer) -> str:
    """Return what determines the pages of a request: a cursor is valid for the same values only."""
    # A model may rewrite the same query differently, and then the cursor would belong to another list of results.
    return repr((*_KEY_VALUES(request), answer.rewritten_query, answer.wordings))


def _add_folded_counts(items: list[PageItem], passages: Sequence[Passage], hits: Sequence[Hit]) -> list[PageItem]:
    """Return the items; the last passage of a document has the number of hits of it that were folded."""
    counts = {(hit.tool, hit.uri): hit.more_in_document for hit in hits if hit.more_in_document}
    if not counts:
        return items
    last_passages = {(passage.hit.tool, passage.hit.uri): passage for passage in passages}
    count_by_passage = {id(last_passages[key]): count for key, count in counts.items() if key in last_passages}
    return [item._replace(more_in_document=count_by_passage.get(id(item.passage), 0)) for item in items]


def _display_text(item: PageItem, extract: Extract, terms: SnippetTerms) -> str:
    passage = item.passage
    return render_extract(
        item.text,
        extract,
        terms,
        chars_before=passage.chars_before if item.has_start else 0,
        chars_after=passage.chars_after if item.has_end else 0,  # otherwise the next page continues it
    )
