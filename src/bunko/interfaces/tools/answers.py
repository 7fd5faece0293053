"""Format search results as text and structured content for a model, with retrieved text marked as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bunko.interfaces.serialize import (
    MAX_TAGS,
    MAX_TERMS,
    WORDING_CHARS,
    page_to_concise_dict,
    page_to_dict,
    resource_address,
)
from bunko.interfaces.text import UNTRUSTED_NOTE, format_count, more_results_hint, new_mark, single_line, wrap_excerpt
from bunko.interfaces.tools.tool import ARRAY, INTEGER, STRING, DocumentLink, ToolReply, object_schema
from bunko.search.paging import PageItem
from bunko.search.passages import Passage, display_label, snippet_terms
from bunko.text.snippets import SnippetTerms, highlight_ranges
from bunko.text.token_count import estimate_tokens

if TYPE_CHECKING:
    from bunko.library.searching.page import Page

_RESULT_FIELDS = ["file_path", "heading", "content", "score", "chunk_index", "citation", "hash"]
SEARCH_OUTPUT = object_schema(
    {"query": STRING, "total_chunks": INTEGER, "results": ARRAY | {"items": {"required": _RESULT_FIELDS}}},
    "results",
)
# Tokens for the field names and numbers of a result in the structured form, which is the longer one.
_CONCISE_OVERHEAD_TOKENS, _DETAILED_OVERHEAD_TOKENS = 60, 240
_WORDING_TOKENS = 35  # of what a wording adds to a result, besides its text


def overhead_tokens(passage: Passage, *, detailed: bool) -> int:
    """Return the approximate number of tokens of a result besides its content."""
    location = 2 * estimate_tokens(" ".join([passage.citation, *passage.headings]))
    if not detailed:
        return _CONCISE_OVERHEAD_TOKENS + location
    explanation = passage.hit.explanation
    tokens = _DETAILED_OVERHEAD_TOKENS + location + estimate_tokens(" ".join(passage.hit.tags[:MAX_TAGS]))
    if explanation:
        tokens += 8 * (min(MAX_TERMS, len(explanation.terms)) + 2 * min(MAX_TERMS, len(explanation.expansions)))
        tokens += sum(
            _WORDING_TOKENS + estimate_tokens(wording.text[:WORDING_CHARS]) for wording in explanation.wordings
        )
    return tokens


def search_reply(page: Page, *, detailed: bool, several_tools: bool) -> ToolReply:
    """Return a page of results as text and as structured content, each complete."""
    if detailed:
        structured = page_to_dict(page, for_model=True)
        terms = snippet_terms(page.searched_query)
        for result in structured["results"]:
            if matched := _matched_words(result["content"], terms):
                result["matched"] = matched
    else:
        structured = page_to_concise_dict(page, show_tools=several_tools)
    text = _reply_text(page, structured["results"], detailed=detailed, show_tools=several_tools)
    return ToolReply(text, structured, document_links(page))


def document_links(page: Page) -> list[DocumentLink]:
    """Return a link to each document of a page."""
    hits = {(item.passage.hit.tool, item.passage.hit.uri): item.passage.hit for item in page.results}
    return [
        DocumentLink(resource_address(page.assistant_names[tool], uri), single_line(uri), display_label(hit.title))
        for (tool, uri), hit in hits.items()
    ]


def _reply_text(page: Page, results: list[dict[str, Any]], *, detailed: bool, show_tools: bool) -> str:
    mark = new_mark()
    total = format_count(page.total_chunks, "chunk")
    blocks = [f"{format_count(len(results), 'result')} among {total}. {UNTRUSTED_NOTE}"] if results else []
    for item, result in zip(page.results, results, strict=True):
        facts = ", ".join(_result_facts(item, result, show_tool=show_tools))
        names = item.passage.headings or [result["heading"] or result.get("title", "")]
        if names[-1] == _first_heading(result["content"]):
            names = names[:-1]  # the text has it
        labels = [" > ".join(names), result.get("author", ""), *(f"#{tag}" for tag in result.get("tags", ()))]
        excerpt = wrap_excerpt(mark, result["content"], " ".join(label for label in labels if label))
        blocks.append(f"## {result['citation']} | {facts}\n{excerpt}")
    if not results and page.is_first:
        blocks.append(f"No results among {total}. Try other words or fewer filters.")
    elif not results:
        blocks.append("No more results for this query.")
    if page.next_cursor:
        blocks.append(more_results_hint(page.next_cursor))
    if detailed:
        fresh = page.freshness
        missing = f", {fresh.pending_changes} changed files not yet indexed" if fresh.pending_changes else ""
        checked = fresh.checked_at or "never"
        blocks.append(f"Generation {fresh.generation}, checked {checked}{missing}")
    return "\n\n".join([*blocks, *page.notices])


def _first_heading(content: str) -> str:
    """Return the heading that a text begins with; empty for other texts."""
    line = content.lstrip().partition("\n")[0]
    return line.lstrip("#").strip() if line.startswith("#") else ""


def _matched_words(text: str, terms: SnippetTerms) -> list[str]:
    """Return the words of a text that match the query, as they stand there."""
    words = (text[start:end] for start, end in highlight_ranges(text, terms))
    return list(dict.fromkeys(words))[:MAX_TERMS]


def _result_facts(item: PageItem, result: dict[str, Any], *, show_tool: bool) -> list[str]:
    """Return what is said about a result beside its text, such as its score and whether it was cut."""
    facts = [f"score {result['score']}", f"chunk {result['chunk_index']}", f"hash {result['hash']}"]
    facts += [f"tool {result['tool']}"] if show_tool else []
    facts += [f"trust {result['trust']}, fetched {result['fetched_at']}"] if "trust" in result else []
    facts += [f"date {result['date']}"] if result.get("date") else []
    facts += [f"matched {' '.join(result['matched'])}"] if "matched" in result else []
    facts += [f"{item.more_in_document} more in this document"] if item.more_in_document else []
    facts += [] if item.has_start else ["continued from the last page"]
    return facts if item.has_end else [*facts, "cut: continues with the cursor"]
