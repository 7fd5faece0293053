"""The search tool that several toolsets share: its parameters, how it is run, and its reply, with text as data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bunko.errors import UnknownName
from bunko.interfaces.serialize import (
    MAX_TAGS,
    MAX_TERMS,
    WORDING_CHARS,
    page_to_concise_dict,
    page_to_dict,
    resource_address,
)
from bunko.interfaces.text import UNTRUSTED_NOTE, format_count, more_results_hint, new_mark, single_line, wrap_excerpt
from bunko.interfaces.tools.tool import ARRAY, INTEGER, STRING, DocumentLink, Param, ToolCall, ToolReply, object_schema
from bunko.library.tools.catalog import find_tool
from bunko.library.tools.suggested_commands import enable_command
from bunko.search.passages import EXTRACTS, Passage, display_label, snippet_terms
from bunko.search.request import SearchRequest, parse_options
from bunko.text.snippets import highlight_ranges
from bunko.text.tags import normalise_tag
from bunko.text.token_count import estimate_tokens
from bunko.types import MODES
from bunko.types.records import Filter

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
            content = result["content"]
            words = dict.fromkeys(content[start:end] for start, end in highlight_ranges(content, terms))
            if words:
                result["matched"] = list(words)[:MAX_TERMS]
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
        facts = [f"score {result['score']}", f"chunk {result['chunk_index']}", f"hash {result['hash']}"]
        facts += [f"tool {result['tool']}"] if show_tools else []
        facts += [f"trust {result['trust']}, fetched {result['fetched_at']}"] if "trust" in result else []
        facts += [f"date {result['date']}"] if result.get("date") else []
        facts += [f"matched {' '.join(result['matched'])}"] if "matched" in result else []
        finders = (result.get("explain") or {}).get("wordings", ())
        facts += [f"found by {'; '.join(w['text'] for w in finders if w['added'])}"] if finders else []
        facts += [f"{item.more_in_document} more in this document"] if item.more_in_document else []
        facts += [] if item.has_start else ["continued from the last page"]
        facts += [] if item.has_end else ["cut: continues with the cursor"]
        names = item.passage.headings or [result["heading"] or result.get("title", "")]
        line = result["content"].lstrip().partition("\n")[0]
        if names[-1] == (line.lstrip("#").strip() if line.startswith("#") else ""):
            names = names[:-1]  # the text begins with this heading
        labels = [" > ".join(names), result.get("author", ""), *(f"#{tag}" for tag in result.get("tags", ()))]
        excerpt = wrap_excerpt(mark, result["content"], " ".join(label for label in labels if label))
        blocks.append(f"## {result['citation']} | {', '.join(facts)}\n{excerpt}")
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


MAX_RESULTS = 50

QUERY_PARAM = Param("query", "string", "Words or a question", required=True)
# With filters, an empty query gives the newest documents that match.
FILTERED_QUERY_PARAM = Param("query", "string", "Words or a question; empty with a filter: the newest", required=True)
WORDING_PARAMS = (
    Param("also", "texts", "Other wordings, as the documents may say it; always give some"),
    Param("passage", "string", "A sentence as the answer may say it; always give one"),
)
# Assistants fill them in if they are told to.
WORDINGS_ADVICE = "Give also and passage with every question: they find what the documents say in other words."
CURSOR_PARAM = Param("cursor", "string", "From next_cursor")
TOOL_PARAM = Param("tool", "string", "Only this tool")
DATE_PARAMS = (Param("since", "string", "Date or 2w"), Param("until", "string", "Date or 2w"))
PATH_PARAM = Param("path", "string", "Glob, e.g. guide/**")
TAG_PARAM = Param("tag", "string", "Only this tag")
# Without it, each tool's setting applies.
EXTRACT_PARAM = Param("extract", "string", "How much of each", choices=EXTRACTS)
RANKING_PARAM = Param("ranking", "string", "vector_weight=0.3")
PER_DOCUMENT_PARAM = Param("per_document", "integer", "Most of one document", minimum=1, maximum=MAX_RESULTS)
OUTPUT_PARAMS = (
    Param("response_format", "string", "Fields", choices=("concise", "detailed")),
    CURSOR_PARAM,
)
FILTER_PARAMS = (
    Param("mode", "string", "By words, meaning or both", choices=MODES),
    RANKING_PARAM,
    PATH_PARAM,
    TAG_PARAM,
    *DATE_PARAMS,
)


def top_k_param(default: int) -> Param:
    """Return the parameter for the number of results."""
    return Param("top_k", "integer", "How many", default=default, minimum=1, maximum=MAX_RESULTS)


def chosen_tool(call: ToolCall, tool_choices: Mapping[str, str]) -> str | None:
    """Return the real name of the tool that the arguments of a call choose, by the name assistants see or its own."""
    name = call.arguments.get("tool")
    if not name:
        return None
    if name in tool_choices:
        return tool_choices[name]
    if name in tool_choices.values():
        return str(name)
    disabled = find_tool([tool for tool in call.library.tools() if not tool.active], name)
    if disabled is not None:
        command = enable_command(call.library.paths, disabled)
        raise UnknownName(f"The tool {name[:80]!r} is disabled", hint=f"The user can enable it with: {command}")
    raise UnknownName(f"There is no tool {name[:80]!r}", hint=f"Use one of: {', '.join(tool_choices)}.")


def wordings_from(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request for other wordings; an assistant that gave none is told where they would help."""
    also, passage = tuple(arguments.get("also") or ()), arguments.get("passage") or ""
    return {"also": also, "passage": passage, "suggest_wordings": True}


def filter_from(arguments: Mapping[str, Any]) -> Filter:
    """Return the filter that the arguments of a call describe."""
    tag = arguments.get("tag")
    return Filter(
        arguments.get("path") or "",
        (normalise_tag(tag),) if tag else (),
        arguments.get("since") or "",
        arguments.get("until") or "",
    )


def search(call: ToolCall, tool: str | None) -> ToolReply:
    """Run a search and return a page of results that fits the token budget."""
    arguments, library = call.arguments, call.library
    detailed = arguments.get("response_format") == "detailed"
    token_budget = library.settings.serve.max_result_tokens
    request = SearchRequest(
        arguments["query"],
        tool,
        **wordings_from(arguments),
        mode=arguments.get("mode"),
        top_k=arguments["top_k"],
        ranking=parse_options((arguments.get("ranking") or "").replace(",", " ").split()),
        per_document=arguments.get("per_document"),
        where=filter_from(arguments),
        explain=detailed,
        explain_texts=False,  # a reply has no room for sentences
        extract=arguments.get("extract"),
        cursor=arguments.get("cursor") or "",
        # The reply repeats the query.
        token_budget=max(token_budget - estimate_tokens(arguments["query"]), token_budget // 2),
    )
    page = library.page(request, overhead_tokens=partial(overhead_tokens, detailed=detailed))
    several_tools = page.several_tools or (tool is None and len(page.assistant_names) > 1)
    return search_reply(page, detailed=detailed, several_tools=several_tools)
