"""Tools over dated memos: search them, list their tags, show the latest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bunko.interfaces.serialize import MAX_TAGS, SummaryFields, resource_address, round_score, tool_of_results
from bunko.interfaces.text import (
    UNTRUSTED_NOTE,
    format_count,
    more_results_hint,
    new_mark,
    single_line,
    wrap_excerpt,
)
from bunko.interfaces.tools import search_tool
from bunko.interfaces.tools.search_tool import document_links
from bunko.interfaces.tools.tool import (
    ARRAY,
    OBJECT,
    DocumentLink,
    Param,
    ToolCall,
    ToolDefinition,
    ToolReply,
    object_schema,
)
from bunko.interfaces.tools.toolsets import Toolset, ToolsetContext
from bunko.search.paging import PageItem
from bunko.search.passages import MEMO_EXTRACTS, Passage, display_label
from bunko.search.request import SearchRequest
from bunko.sources import kinds_of_section
from bunko.text.labels import remove_hidden_chars
from bunko.text.snippets import SNIPPET_CHARS, SnippetTerms, snippet_range
from bunko.text.tags import parse_tags
from bunko.text.token_count import estimate_tokens
from bunko.types import MODES
from bunko.types.records import Filter

if TYPE_CHECKING:
    from bunko.library.searching.page import Page

_NO_MEMOS = "No memos for this query. Try other words."
_NO_FILTERED_MEMOS = (
    "No memos for this query with these tags and dates. Try other words, or leave out tag_filter, since and until."
)
_NO_DATED_OR_TAGGED_MEMOS = "No memos with these tags and dates. Leave out tag_filter, since or until."
# Tokens for the field names and numbers of a memo, and for those of a tag.
_MEMO_OVERHEAD_TOKENS, _TAG_OVERHEAD_TOKENS = 90, 12
_TAG_PARAM = Param("tag_filter", "string", "Tags, comma-separated")
_FILTER_PARAMS = (_TAG_PARAM, *search_tool.DATE_PARAMS)


def _build_tools(context: ToolsetContext) -> list[ToolDefinition]:
    top_k = min(context.settings.memos.top_k, search_tool.MAX_RESULTS) if context.settings is not None else 10
    return [
        ToolDefinition(
            "query_memos",
            "Search memos",
            "Search the user's dated memos, in Japanese and English, by words and meaning, narrowed by tag and date. "
            f"Answers with snippets and ids. {search_tool.WORDINGS_ADVICE}",
            (
                search_tool.FILTERED_QUERY_PARAM,
                *search_tool.WORDING_PARAMS,
                search_tool.top_k_param(top_k),
                _TAG_PARAM,
                Param("search_mode", "string", "By words, meaning or both", choices=MODES),
                Param("enable_rewrite", "boolean", "Let a chat model improve the query"),
                Param("extract", "string", "How much of each memo", default="snippet", choices=MEMO_EXTRACTS),
                Param("max_chars", "integer", "Longest text of each", minimum=20, maximum=100_000),
                Param("summary", "boolean", "Also summarize the results", default=False),
                *search_tool.DATE_PARAMS,
                search_tool.CURSOR_PARAM,
            ),
            object_schema({"results": ARRAY}, "results"),
            _query_memos,
            right="read",
        ),
        ToolDefinition(
            "list_tags",
            "List tags",
            "List the tags of the user's memos with how many memos have each, the most used first.",
            _FILTER_PARAMS,
            OBJECT,
            _list_tags,
            right="read",
        ),
        ToolDefinition(
            "get_recent_memos",
            "Show the latest memos",
            "Show the user's latest memos by date, each with its beginning.",
            (
                Param("limit", "integer", "How many", default=10, minimum=1, maximum=search_tool.MAX_RESULTS),
                *_FILTER_PARAMS,
            ),
            OBJECT,
            _recent_memos,
            right="read",
        ),
    ]


def _query_memos(call: ToolCall) -> ToolReply:
    arguments, library = call.arguments, call.library
    library.readable.local_time()  # a wrong search.timezone is an error even if no date is given
    request = SearchRequest(
        arguments["query"],
        kinds=kinds_of_section("memos"),
        **search_tool.wordings_from(arguments),
        mode=arguments.get("search_mode"),
        top_k=arguments["top_k"],
        where=_filter_from(arguments),
        rewrite=arguments.get("enable_rewrite"),
        extract=arguments["extract"],
        max_chars=arguments.get("max_chars"),
        per_document=1,
        summary=arguments["summary"],
        cursor=arguments.get("cursor") or "",
        continue_past_top_k=False,
        token_budget=library.settings.serve.max_result_tokens,
    )
    page = library.page(request, overhead_tokens=_overhead_tokens)
    results = [_result_to_dict(page, item, text) for item, text in zip(page.results, page.display_texts(), strict=True)]
    no_results = _NO_FILTERED_MEMOS if request.where else _NO_MEMOS
    has_memos = page.total_passages > 0
    heading = f"{format_count(page.total_passages, 'memo')}. {UNTRUSTED_NOTE}" if has_memos else no_results
    summary = page.summary if has_memos else None
    mark = new_mark()
    blocks = [heading]
    if page.rewritten_query:
        blocks.append(f"Searched for\n{wrap_excerpt(mark, page.rewritten_query)}")
    if summary:
        from bunko.search.summaries import format_summary

        blocks.append(f"Summary\n{wrap_excerpt(mark, remove_hidden_chars(format_summary(summary)))}")
    blocks += [_memo_block(mark, number, memo) for number, memo in enumerate(results, page.first_number)]
    if page.next_cursor:
        blocks.append(more_results_hint(page.next_cursor))
    structured: dict[str, Any] = {"results": results, "total": page.total_passages}
    structured |= {} if page.several_tools else tool_of_results(page)
    structured["note"] = UNTRUSTED_NOTE
    if page.rewritten_query:
        structured["rewritten"] = page.rewritten_query
    structured["truncated"] = bool(page.next_cursor)
    if page.next_cursor:
        structured["next_cursor"] = page.next_cursor
    if summary:
        text = json.dumps(SummaryFields.fill(summary), ensure_ascii=False)
        structured["summary"] = json.loads(remove_hidden_chars(text))
    if page.notices:
        structured["notices"] = page.notices
    return ToolReply("\n\n".join([*blocks, *page.notices]), structured, document_links(page))


def _filter_from(arguments: Mapping[str, Any]) -> Filter:
    return Filter(
        tags=parse_tags(f"{arguments['tag_filter']},") if arguments.get("tag_filter") else (),
        since=arguments.get("since") or "",
        until=arguments.get("until") or "",
    )


def _list_tags(call: ToolCall) -> ToolReply:
    where = _filter_from(call.arguments)
    tags = call.library.readable.tags(kinds=kinds_of_section("memos"), where=where)
    tokens_left = call.library.settings.serve.max_result_tokens
    rows: list[dict[str, Any]] = []
    for tag, count in tags:
        rows.append({"tag": display_label(tag), "count": count})
        tokens_left -= _TAG_OVERHEAD_TOKENS + 2 * estimate_tokens(rows[-1]["tag"])
        if tokens_left < 0:
            break
    structured = {"tags": rows, "total": len(tags), "note": UNTRUSTED_NOTE}
    lines = [f"{row['tag']}: {row['count']}" for row in rows]
    no_tags = _NO_DATED_OR_TAGGED_MEMOS if where else "No memo has a tag."
    blocks = [f"{format_count(len(tags), 'tag')}. {UNTRUSTED_NOTE}" if tags else no_tags]
    if tags:
        blocks.append(wrap_excerpt(new_mark(), "\n".join(lines)))
    if len(rows) < len(tags):
        structured["truncated"] = True
        blocks.append(f"{len(tags) - len(rows)} rarer tags are omitted.")
    return ToolReply("\n\n".join(blocks), structured)


def _recent_memos(call: ToolCall) -> ToolReply:
    where = _filter_from(call.arguments)
    documents = call.library.readable.recent_documents(
        limit=call.arguments["limit"], kinds=kinds_of_section("memos"), where=where
    )
    several_tools, names = len({tool.name for tool, _ in documents}) > 1, call.library.assistant_names()
    results: list[dict[str, Any]] = []
    links: list[DocumentLink] = []
    for tool, document in documents:
        beginning = remove_hidden_chars(document.beginning)
        start, end = snippet_range(beginning, SnippetTerms({}), SNIPPET_CHARS)
        result = _memo_fields(document.uri, document.title, document.date, document.tags)
        result["snippet"] = beginning[start:end] + ("…" if end < len(beginning.rstrip()) else "")
        results.append(result | ({"tool": names[tool.name]} if several_tools else {}))
        links.append(DocumentLink(resource_address(names[tool.name], document.uri), result["id"], result["title"]))
    structured = {"results": results, "total": len(results), "note": UNTRUSTED_NOTE}
    mark = new_mark()
    head = f"{format_count(len(results), 'memo')}, the latest first. {UNTRUSTED_NOTE}"
    if not results:
        head = _NO_DATED_OR_TAGGED_MEMOS if where else "There are no memos yet."
    return ToolReply(
        "\n\n".join([head, *(_memo_block(mark, number, memo) for number, memo in enumerate(results, 1))]),
        structured,
        links,
    )


def _overhead_tokens(passage: Passage) -> int:
    hit = passage.hit
    labels = [passage.citation, hit.uri, hit.title, passage.label.author, *passage.headings, *hit.tags[:MAX_TAGS]]
    return _MEMO_OVERHEAD_TOKENS + 2 * estimate_tokens(" ".join(labels))


def _result_to_dict(page: Page, item: PageItem, text: str) -> dict[str, Any]:
    passage, hit = item.passage, item.passage.hit
    result = _memo_fields(hit.uri, hit.title, hit.date, hit.tags)
    result |= {"snippet": text, "score": round_score(hit.score)}
    result |= {"author": display_label(passage.label.author)} if passage.label.author else {}
    result |= {"heading_path": passage.headings} if passage.headings else {}
    result |= {"citation": single_line(passage.citation), "hash": passage.hash}
    if passage.chars_before or passage.chars_after:
        result["left_out"] = {"before": passage.chars_before, "after": passage.chars_after}
    if not (item.has_start and item.has_end):
        result["truncated"] = True
    return result | ({"tool": page.assistant_names[hit.tool]} if page.several_tools else {})


def _memo_fields(uri: str, title: str, date: str, memo_tags: Sequence[str]) -> dict[str, Any]:
    return {
        "id": single_line(uri),
        "title": display_label(title),
        "date": date,
        "tags": [display_label(tag) for tag in memo_tags[:MAX_TAGS]],
    }


def _memo_block(mark: str, number: int, memo: dict[str, Any]) -> str:
    facts = [f"date {memo['date']}"] if memo["date"] else []
    facts += [f"score {memo['score']}", f"hash {memo['hash']}"] if "score" in memo else []
    facts += [f"tool {memo['tool']}"] if "tool" in memo else []
    facts += ["cut: continues with the cursor"] if memo.get("truncated") else []
    # All text of a memo stays between the marks, including its title, its tags and its id, which contains them.
    location = memo.get("citation", memo["id"])
    headings, tags = " > ".join(memo.get("heading_path", ())), [f"#{tag}" for tag in memo["tags"]]
    labels = " ".join(filter(None, (location, memo["title"], memo.get("author"), headings, *tags)))
    return f"## {number}. {', '.join(facts)}\n{wrap_excerpt(mark, memo['snippet'], labels)}"


TOOLSET = Toolset(
    "memos",
    "Search dated memos, list their tags, show the latest.",
    ("query_memos", "list_tags", "get_recent_memos"),
    _build_tools,
    section="memos",
)
