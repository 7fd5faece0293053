"""Dated memos: find them by words, meaning, tag and time, list their tags, show the latest."""

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
from bunko.library.catalog import MEMO_KINDS
from bunko.records import Filter
from bunko.search.paging import Cursor, PageItem, build_page, decode_cursor
from bunko.search.passages import MEMO_EXTRACTS, Passage, display_label, render_extract, snippet_terms
from bunko.text.dates import resolve_date
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.snippets import SNIPPET_CHARS, SnippetTerms, snippet_range
from bunko.text.tags import parse_tags
from bunko.text.token_count import estimate_tokens
from bunko.types import Hit

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
_MAX_TAGS = 20  # of one memo
_NO_MEMOS = "No memos for this query. Try other words."
_NO_FILTERED_MEMOS = (
    "No memos for this query with these tags and dates. Try other words, or leave out tag_filter, since and until."
)
# What the names and figures of a memo cost beside what it says, and a tag with its count.
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
                Param("tag_filter", "string", "Tags that must all be there, with commas between"),
                Param("search_mode", "string", choices=("bm25", "semantic", "hybrid")),
                Param("enable_rewrite", "boolean", "Let a chat model improve the query"),
                Param("extract", "string", "How much of each memo", default="snippet", choices=MEMO_EXTRACTS),
                Param("max_chars", "integer", "Longest text of each memo", minimum=20, maximum=100_000),
                Param("summary", "boolean", "Also say what they have in common", default=False),
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
    from bunko.search.summaries import format_summary

    given, library = call.arguments, call.library
    query, count, extract = given["query"], given["top_k"], given["extract"]
    now = library.local_time()
    answer = library.search(
        query,
        kinds=MEMO_KINDS,
        mode=given.get("search_mode"),
        top_k=count,
        where=Filter(
            tags=parse_tags(f"{given['tag_filter']},") if given.get("tag_filter") else (),
            since=resolve_date(given["since"], now) if given.get("since") else "",
            until=resolve_date(given["until"], now) if given.get("until") else "",
        ),
        rewrite=given.get("enable_rewrite"),
    )
    # A model may find other words for the same query, and then a further page would be one of another list.
    question = json.dumps([*(given.get(name) for name in _CURSOR_ARGUMENTS), answer.rewritten_query])
    begin = decode_cursor(given["cursor"], question) if given.get("cursor") else Cursor()
    if not given.get("cursor"):
        library.log_search(query)
    generation = answer.freshness.generation
    if begin.generation not in (0, generation):
        answer.notices.append("The memos changed since the last page; results may repeat or be missing.")
    hits = _best_hit_per_memo(answer.hits)
    passages = library.passages(hits, extract, query=answer.searched_query, max_chars=given.get("max_chars"))
    common = library.summarize_answer(answer) if given["summary"] and hits and not given.get("cursor") else None
    pieces, rest = build_page(
        passages,
        Cursor(0, begin.passage_index, begin.char_offset, generation),
        # A summary costs twice, in words and in names of fields, and never crowds out what it is about.
        token_budget=max(
            library.settings.serve.max_result_tokens - (2 * estimate_tokens(format_summary(common)) if common else 0),
            library.settings.serve.max_result_tokens // 2,
        ),
        tokens_per_passage=None,
        overhead_tokens=_overhead_tokens,
    )
    looked = snippet_terms(answer.searched_query)
    several = len({hit.tool for hit in hits}) > 1
    results = [_result_to_dict(piece, extract, looked, show_tool=several) for piece in pieces]
    structured: dict[str, Any] = {"results": results, "total": len(passages), "note": UNTRUSTED_NOTE}
    if answer.rewritten_query:
        structured["rewritten"] = answer.rewritten_query
    structured["truncated"] = rest is not None
    if rest is not None:
        structured["next_cursor"] = rest.encode(question)
    if common:
        structured["summary"] = _summary_to_dict(common)
    if answer.notices:
        structured["notices"] = answer.notices
    mark = secrets.token_hex(3)
    narrowed = any(given.get(name) for name in ("tag_filter", "since", "until"))
    blocks = (
        [f"{_format_count(len(passages), 'memo')}. {UNTRUSTED_NOTE}"]
        if passages
        else [_NO_FILTERED_MEMOS if narrowed else _NO_MEMOS]
    )
    if answer.rewritten_query:
        blocks.append(f"Searched for\n{_wrap_excerpt(mark, answer.rewritten_query)}")
    if common:
        blocks.append(f"Summary\n{_wrap_excerpt(mark, remove_hidden_chars(format_summary(common)))}")
    blocks += [_memo_block(mark, number, one) for number, one in enumerate(results, begin.passage_index + 1)]
    if rest is not None:
        blocks.append(f"More: repeat the call with cursor {structured['next_cursor']}")
    return ToolReply("\n\n".join([*blocks, *answer.notices]), structured)


def _list_tags(call: ToolCall) -> ToolReply:
    found = call.library.tags(kinds=MEMO_KINDS)
    left = call.library.settings.serve.max_result_tokens
    rows: list[dict[str, Any]] = []
    for tag, count in found:
        rows.append({"tag": display_label(tag), "count": count})
        left -= _TAG_OVERHEAD_TOKENS + 2 * estimate_tokens(rows[-1]["tag"])
        if left < 0:
            break
    structured = {"tags": rows, "total": len(found), "note": UNTRUSTED_NOTE}
    lines = [f"{row['tag']}: {row['count']}" for row in rows]
    blocks = [f"{_format_count(len(found), 'tag')}. {UNTRUSTED_NOTE}" if found else "No memo has a tag."]
    if found:
        blocks.append(_wrap_excerpt(secrets.token_hex(3), "\n".join(lines)))
    if len(rows) < len(found):
        structured["truncated"] = True
        blocks.append(f"{len(found) - len(rows)} rarer tags are left out.")
    return ToolReply("\n\n".join(blocks), structured)


def _recent_memos(call: ToolCall) -> ToolReply:
    found = call.library.recent_documents(limit=call.arguments["limit"], kinds=MEMO_KINDS)
    several = len({tool.name for tool, _ in found}) > 1
    results = []
    for tool, one in found:
        beginning = remove_hidden_chars(one.beginning)
        start, end = snippet_range(beginning, SnippetTerms({}), SNIPPET_CHARS)
        result = _memo_fields(one.uri, one.title, one.date, one.tags)
        result["snippet"] = beginning[start:end] + ("…" if end < len(beginning.rstrip()) else "")
        results.append(result | ({"tool": tool.name} if several else {}))
    structured = {"results": results, "total": len(results), "note": UNTRUSTED_NOTE}
    mark = secrets.token_hex(3)
    head = (
        f"{_format_count(len(results), 'memo')}, the latest first. {UNTRUSTED_NOTE}"
        if results
        else "There are no memos yet."
    )
    return ToolReply(
        "\n\n".join([head, *(_memo_block(mark, number, one) for number, one in enumerate(results, 1))]), structured
    )


def _best_hit_per_memo(hits: Sequence[Hit]) -> list[Hit]:
    # A long memo may answer with several chunks; the best one speaks for it.
    return list({(hit.tool, hit.uri): hit for hit in reversed(hits)}.values())[::-1]


def _overhead_tokens(passage: Passage) -> int:
    hit = passage.hit
    said = [passage.citation, hit.uri, hit.title, *hit.tags[:_MAX_TAGS]]
    return _MEMO_OVERHEAD_TOKENS + 2 * estimate_tokens(" ".join(said))


def _result_to_dict(piece: PageItem, extract: Any, query_terms: SnippetTerms, *, show_tool: bool) -> dict[str, Any]:
    passage, hit = piece.passage, piece.passage.hit
    found = _memo_fields(hit.uri, hit.title, hit.date, hit.tags)
    after = passage.chars_after if piece.has_end else 0  # the next page goes on with it
    found["snippet"] = render_extract(
        piece.text, extract, query_terms, chars_before=passage.chars_before if piece.has_start else 0, chars_after=after
    )
    found["score"] = round(hit.score, 4)
    found |= {"citation": _single_line(passage.citation), "hash": passage.hash}
    if passage.chars_before or passage.chars_after:
        found["left_out"] = {"before": passage.chars_before, "after": passage.chars_after}
    if not (piece.has_start and piece.has_end):
        found["truncated"] = True
    return found | ({"tool": hit.tool} if show_tool else {})


def _memo_fields(uri: str, title: str, date: str, memo_tags: Sequence[str]) -> dict[str, Any]:
    return {
        "id": _single_line(uri),
        "title": display_label(title),
        "date": date,
        "tags": [display_label(tag) for tag in memo_tags[:_MAX_TAGS]],
    }


def _summary_to_dict(summary: Summary) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        remove_hidden_chars(json.dumps(serialize.summary_to_dict(summary), ensure_ascii=False))
    )
    return found


def _memo_block(mark: str, number: int, memo: dict[str, Any]) -> str:
    facts = [f"date {memo['date']}"] if memo["date"] else []
    facts += [f"score {memo['score']}", f"hash {memo['hash']}"] if "score" in memo else []
    facts += [f"tool {memo['tool']}"] if "tool" in memo else []
    facts += ["cut: goes on with the cursor"] if memo.get("truncated") else []
    # Whatever a memo says stands between the marks: its title and tags too, and its id, which is made of them.
    place = memo.get("citation", memo["id"])
    said = " ".join(part for part in (place, memo["title"], *(f"#{tag}" for tag in memo["tags"])) if part)
    return f"## {number}. {', '.join(facts)}\n{_wrap_excerpt(mark, memo['snippet'], said)}"


def _wrap_excerpt(mark: str, text: str, opening: str = "") -> str:
    return f"<excerpt-{mark}>{' ' if opening else ''}{opening}\n{text}\n</excerpt-{mark}>"


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _single_line(text: str) -> str:
    # A name may hold a line end, and what follows it would stand outside the marks.
    return " ".join(remove_hidden_chars(text).splitlines())
