"""Tools over dated memos: search them, list their tags, show the latest."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bunko.interfaces import serialize
from bunko.interfaces.tools.answers import UNTRUSTED_NOTE
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    ToolCall,
    ToolDefinition,
    ToolReply,
    object_schema,
)
from bunko.interfaces.tools.toolsets import search_tool
from bunko.records import Filter
from bunko.search.paging import Cursor, PageItem, build_page, decode_cursor
from bunko.search.passages import MEMO_EXTRACTS, Passage, display_label, render_extract, snippet_terms
from bunko.sources import kinds_of_section
from bunko.text.dates import resolve_date
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.snippets import SNIPPET_CHARS, SnippetTerms, snippet_range
from bunko.text.tags import parse_tags
from bunko.text.token_count import estimate_tokens
from bunko.types import Answer, Hit

if TYPE_CHECKING:
    from bunko.search.summaries import Summary

_CURSOR_ARGUMENTS = (
    "query",
    "top_k",
    "tag_filter",
    "search_mode",
    "enable_rewrite",
    "extract",
    "max_chars",
    "since",
    "until",
)
_MAX_TAGS = 20  # per memo
_NO_MEMOS = "No memos for this query. Try other words."
_NO_FILTERED_MEMOS = (
    "No memos for this query with these tags and dates. Try other words, or leave out tag_filter, since and until."
)
# Tokens for the field names and numbers of a memo, and for those of a tag.
_MEMO_OVERHEAD_TOKENS, _TAG_OVERHEAD_TOKENS = 90, 12
_MEMO_SCHEMA = object_schema(
    {
        "id": STRING,
        "title": STRING,
        "date": STRING,
        "tags": {"type": "array", "items": STRING},
        "snippet": STRING,
        "score": NUMBER,
    },
    "id", "title", "date", "tags", "snippet",
)  # fmt: skip
_TAGS_SCHEMA = {"type": "array", "items": object_schema({"tag": STRING, "count": INTEGER}, "tag", "count")}
_MEMO_LIST_PROPERTIES = {"results": {"type": "array", "items": _MEMO_SCHEMA}, "total": INTEGER}


def tools(top_k: int) -> list[ToolDefinition]:
    """Return the tools over all memos of the library."""
    return [
        ToolDefinition(
            "query_memos",
            "Search memos",
            "Search the user's dated memos, in Japanese and English, by words and meaning, narrowed by tag and date. "
            "Answers with snippets and ids.",
            (
                search_tool.QUERY_PARAM,
                search_tool.top_k_param(top_k),
                Param("tag_filter", "string", "Tags, comma-separated; all must match"),
                Param("search_mode", "string", choices=("bm25", "semantic", "hybrid")),
                Param("enable_rewrite", "boolean", "Let a chat model improve the query"),
                Param("extract", "string", "How much of each memo", default="snippet", choices=MEMO_EXTRACTS),
                Param("max_chars", "integer", "Maximum length of each memo's text", minimum=20, maximum=100_000),
                Param("summary", "boolean", "Also summarize the results", default=False),
                Param("since", "string", "Date or 2w"),
                Param("until", "string"),
                Param("cursor", "string", "next_cursor of the last page"),
            ),
            object_schema(
                _MEMO_LIST_PROPERTIES | {"rewritten": STRING, "truncated": BOOLEAN, "next_cursor": STRING},
                "results",
                "total",
            ),
            _query_memos,
        ),
        ToolDefinition(
            "list_tags",
            "List tags",
            "List the tags of the user's memos with how many memos have each, the most used first.",
            (),
            object_schema({"tags": _TAGS_SCHEMA, "total": INTEGER}, "tags", "total"),
            _list_tags,
        ),
        ToolDefinition(
            "get_recent_memos",
            "Show the latest memos",
            "Show the user's latest memos by date, each with its beginning.",
            (Param("limit", "integer", default=10, minimum=1, maximum=search_tool.MAX_RESULTS),),
            object_schema(_MEMO_LIST_PROPERTIES, "results", "total"),
            _recent_memos,
        ),
    ]


def _query_memos(call: ToolCall) -> ToolReply:
    arguments, library = call.arguments, call.library
    answer = library.search(
        arguments["query"],
        kinds=kinds_of_section("memos"),
        mode=arguments.get("search_mode"),
        top_k=arguments["top_k"],
        where=_build_filter(call),
        rewrite=arguments.get("enable_rewrite"),
    )
    # A model may rewrite the same query differently, and then the cursor would belong to another list of results.
    request_key = json.dumps([*(arguments.get(name) for name in _CURSOR_ARGUMENTS), answer.rewritten_query])
    start = decode_cursor(arguments["cursor"], request_key) if arguments.get("cursor") else Cursor()
    if not arguments.get("cursor"):
        library.log_search(arguments["query"])
    generation = answer.freshness.generation
    if start.generation not in (0, generation):
        answer.notices.append("The memos changed since the last page; results may repeat or be missing.")
    hits = _best_hit_per_memo(answer.hits)
    passages = library.passages(
        hits, arguments["extract"], query=answer.searched_query, max_chars=arguments.get("max_chars")
    )
    needs_summary = arguments["summary"] and hits and not arguments.get("cursor")
    summary = library.summarize_answer(answer) if needs_summary else None
    items, next_start = build_page(
        passages,
        Cursor(0, start.passage_index, start.char_offset, generation),
        token_budget=_token_budget(library.settings.serve.max_result_tokens, summary),
        tokens_per_passage=None,
        overhead_tokens=_overhead_tokens,
    )
    query_terms = snippet_terms(answer.searched_query)
    several_tools = len({hit.tool for hit in hits}) > 1
    results = [_result_to_dict(item, arguments["extract"], query_terms, show_tool=several_tools) for item in items]
    next_cursor = next_start.encode(request_key) if next_start is not None else ""
    structured = _query_structure(answer, results, len(passages), next_cursor, summary)
    is_filtered = any(arguments.get(name) for name in ("tag_filter", "since", "until"))
    no_results = _NO_FILTERED_MEMOS if is_filtered else _NO_MEMOS
    heading = f"{_format_count(len(passages), 'memo')}. {UNTRUSTED_NOTE}" if passages else no_results
    text = _query_text(answer, heading, results, start.passage_index + 1, next_cursor, summary)
    return ToolReply(text, structured)


def _build_filter(call: ToolCall) -> Filter:
    arguments, now = call.arguments, call.library.local_time()
    return Filter(
        tags=parse_tags(f"{arguments['tag_filter']},") if arguments.get("tag_filter") else (),
        since=resolve_date(arguments["since"], now) if arguments.get("since") else "",
        until=resolve_date(arguments["until"], now) if arguments.get("until") else "",
    )


def _token_budget(max_tokens: int, summary: Summary | None) -> int:
    """Return the tokens for memos: a summary appears in both forms of the reply, but takes at most half of it."""
    from bunko.search.summaries import format_summary

    return max(max_tokens - (2 * estimate_tokens(format_summary(summary)) if summary else 0), max_tokens // 2)


def _query_structure(
    answer: Answer, results: list[dict[str, Any]], total: int, next_cursor: str, summary: Summary | None
) -> dict[str, Any]:
    structured: dict[str, Any] = {"results": results, "total": total, "note": UNTRUSTED_NOTE}
    if answer.rewritten_query:
        structured["rewritten"] = answer.rewritten_query
    structured["truncated"] = bool(next_cursor)
    if next_cursor:
        structured["next_cursor"] = next_cursor
    if summary:
        structured["summary"] = _summary_to_dict(summary)
    if answer.notices:
        structured["notices"] = answer.notices
    return structured


def _query_text(
    answer: Answer,
    heading: str,
    results: list[dict[str, Any]],
    first_number: int,
    next_cursor: str,
    summary: Summary | None,
) -> str:
    from bunko.search.summaries import format_summary

    mark = secrets.token_hex(3)
    blocks = [heading]
    if answer.rewritten_query:
        blocks.append(f"Searched for\n{_wrap_excerpt(mark, answer.rewritten_query)}")
    if summary:
        blocks.append(f"Summary\n{_wrap_excerpt(mark, remove_hidden_chars(format_summary(summary)))}")
    blocks += [_memo_block(mark, number, memo) for number, memo in enumerate(results, first_number)]
    if next_cursor:
        blocks.append(f"More: repeat the call with cursor {next_cursor}")
    return "\n\n".join([*blocks, *answer.notices])


def _list_tags(call: ToolCall) -> ToolReply:
    tags = call.library.tags(kinds=kinds_of_section("memos"))
    tokens_left = call.library.settings.serve.max_result_tokens
    rows: list[dict[str, Any]] = []
    for tag, count in tags:
        rows.append({"tag": display_label(tag), "count": count})
        tokens_left -= _TAG_OVERHEAD_TOKENS + 2 * estimate_tokens(rows[-1]["tag"])
        if tokens_left < 0:
            break
    structured = {"tags": rows, "total": len(tags), "note": UNTRUSTED_NOTE}
    lines = [f"{row['tag']}: {row['count']}" for row in rows]
    blocks = [f"{_format_count(len(tags), 'tag')}. {UNTRUSTED_NOTE}" if tags else "No memo has a tag."]
    if tags:
        blocks.append(_wrap_excerpt(secrets.token_hex(3), "\n".join(lines)))
    if len(rows) < len(tags):
        structured["truncated"] = True
        blocks.append(f"{len(tags) - len(rows)} rarer tags are omitted.")
    return ToolReply("\n\n".join(blocks), structured)


def _recent_memos(call: ToolCall) -> ToolReply:
    documents = call.library.recent_documents(limit=call.arguments["limit"], kinds=kinds_of_section("memos"))
    several_tools = len({tool.name for tool, _ in documents}) > 1
    results = []
    for tool, document in documents:
        beginning = remove_hidden_chars(document.beginning)
        start, end = snippet_range(beginning, SnippetTerms({}), SNIPPET_CHARS)
        result = _memo_fields(document.uri, document.title, document.date, document.tags)
        result["snippet"] = beginning[start:end] + ("…" if end < len(beginning.rstrip()) else "")
        results.append(result | ({"tool": tool.name} if several_tools else {}))
    structured = {"results": results, "total": len(results), "note": UNTRUSTED_NOTE}
    mark = secrets.token_hex(3)
    head = (
        f"{_format_count(len(results), 'memo')}, the latest first. {UNTRUSTED_NOTE}"
        if results
        else "There are no memos yet."
    )
    return ToolReply(
        "\n\n".join([head, *(_memo_block(mark, number, memo) for number, memo in enumerate(results, 1))]),
        structured,
    )


def _best_hit_per_memo(hits: Sequence[Hit]) -> list[Hit]:
    # A long memo may match with several chunks; keep the best one.
    return list({(hit.tool, hit.uri): hit for hit in reversed(hits)}.values())[::-1]


def _overhead_tokens(passage: Passage) -> int:
    hit = passage.hit
    labels = [passage.citation, hit.uri, hit.title, *hit.tags[:_MAX_TAGS]]
    return _MEMO_OVERHEAD_TOKENS + 2 * estimate_tokens(" ".join(labels))


def _result_to_dict(item: PageItem, extract: Any, query_terms: SnippetTerms, *, show_tool: bool) -> dict[str, Any]:
    passage, hit = item.passage, item.passage.hit
    result = _memo_fields(hit.uri, hit.title, hit.date, hit.tags)
    chars_after = passage.chars_after if item.has_end else 0  # otherwise the next page continues it
    result["snippet"] = render_extract(
        item.text,
        extract,
        query_terms,
        chars_before=passage.chars_before if item.has_start else 0,
        chars_after=chars_after,
    )
    result["score"] = round(hit.score, 4)
    result |= {"citation": _single_line(passage.citation), "hash": passage.hash}
    if passage.chars_before or passage.chars_after:
        result["left_out"] = {"before": passage.chars_before, "after": passage.chars_after}
    if not (item.has_start and item.has_end):
        result["truncated"] = True
    return result | ({"tool": hit.tool} if show_tool else {})


def _memo_fields(uri: str, title: str, date: str, memo_tags: Sequence[str]) -> dict[str, Any]:
    return {
        "id": _single_line(uri),
        "title": display_label(title),
        "date": date,
        "tags": [display_label(tag) for tag in memo_tags[:_MAX_TAGS]],
    }


def _summary_to_dict(summary: Summary) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        remove_hidden_chars(json.dumps(serialize.summary_to_dict(summary), ensure_ascii=False))
    )
    return result


def _memo_block(mark: str, number: int, memo: dict[str, Any]) -> str:
    facts = [f"date {memo['date']}"] if memo["date"] else []
    facts += [f"score {memo['score']}", f"hash {memo['hash']}"] if "score" in memo else []
    facts += [f"tool {memo['tool']}"] if "tool" in memo else []
    facts += ["cut: continues with the cursor"] if memo.get("truncated") else []
    # All text of a memo stays between the marks, including its title, its tags and its id, which contains them.
    location = memo.get("citation", memo["id"])
    labels = " ".join(part for part in (location, memo["title"], *(f"#{tag}" for tag in memo["tags"])) if part)
    return f"## {number}. {', '.join(facts)}\n{_wrap_excerpt(mark, memo['snippet'], labels)}"


def _wrap_excerpt(mark: str, text: str, opening: str = "") -> str:
    return f"<excerpt-{mark}>{' ' if opening else ''}{opening}\n{text}\n</excerpt-{mark}>"


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _single_line(text: str) -> str:
    # A name may contain a line break, and the text after it would be outside the marks.
    return " ".join(remove_hidden_chars(text).splitlines())
