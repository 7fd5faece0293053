"""The search tool that several toolsets share: its parameters and its reply."""

from __future__ import annotations

import json
from functools import partial

from bunko.interfaces.tools import answers
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.records import Filter
from bunko.search import passages as extracts
from bunko.search.paging import Cursor, build_page, decode_cursor
from bunko.text.dates import resolve_date
from bunko.text.tags import normalise_tag

# Enough to decide whether to read the whole passage.
_CONCISE_TOKENS = 300
MAX_RESULTS = 50
_MAX_HITS = 1000  # the limit of RankRequest.top_k
_CURSOR_ARGUMENTS = ("query", "top_k", "extract", "mode", "path", "tag", "since", "until")

QUERY_PARAM = Param("query", "string", "Words or a question, Japanese or English", required=True)
OUTPUT_PARAMS = (
    Param("response_format", "string", default="detailed", choices=("concise", "detailed")),
    Param("cursor", "string", "next_cursor of the last page"),
)
FILTER_PARAMS = (
    Param("mode", "string", choices=("bm25", "semantic", "hybrid")),
    Param("path", "string", "Glob, e.g. guide/**"),
    Param("tag", "string"),
    Param("since", "string", "Date or 2w"),
    Param("until", "string"),
)


def extract_param(default: extracts.Extract | None = None) -> Param:
    """Return the parameter for the size of each passage; without a default, each tool's setting applies."""
    return Param("extract", "string", "How much of each hit", default=default, choices=extracts.EXTRACTS)


def top_k_param(default: int) -> Param:
    """Return the parameter for the number of results."""
    return Param("top_k", "integer", default=default, minimum=1, maximum=MAX_RESULTS)


def search(call: ToolCall, tool: str | None) -> ToolReply:
    """Run a search and return a page of results that fits the token budget."""
    arguments, library = call.arguments, call.library
    query, count, extract = arguments["query"], arguments["top_k"], arguments["extract"]
    # Everything that determines the pages: a cursor is valid for the same values only.
    request_key = json.dumps([tool, *(arguments.get(name) for name in _CURSOR_ARGUMENTS)])
    start = decode_cursor(arguments["cursor"], request_key) if arguments.get("cursor") else Cursor()
    detailed = arguments["response_format"] == "detailed"
    where = _build_filter(call)
    cursor_generation = start.generation
    while True:
        answer = library.search(
            query, tool=tool, mode=arguments.get("mode"), top_k=start.first_hit + count, where=where, explain=detailed
        )
        # Sections and documents of earlier pages are not returned again; chunks are all different.
        already_returned = 0 if extract == "chunk" else start.first_hit
        hits = answer.hits if already_returned else answer.hits[start.first_hit :]
        passages = library.passages(hits, extract, already_returned=already_returned)
        has_more = len(answer.hits) == start.first_hit + count and start.first_hit + 2 * count <= _MAX_HITS
        if passages or not has_more:
            break
        start = Cursor(start.first_hit + count)
    if not arguments.get("cursor"):
        library.log_search(query, tool)
    generation = answer.freshness.generation
    if cursor_generation and cursor_generation != generation:
        answer.notices.append("The index changed since the last page; results may repeat or be missing.")
    items, next_start = build_page(
        passages,
        Cursor(start.first_hit, start.passage_index, start.char_offset, generation),
        token_budget=library.settings.serve.max_result_tokens,
        tokens_per_passage=None if detailed else _CONCISE_TOKENS,
        overhead_tokens=partial(answers.overhead_tokens, detailed=detailed),
    )
    if next_start is None and has_more:
        next_start = Cursor(start.first_hit + count, generation=generation)
    return answers.search_reply(
        answer,
        items,
        next_start.encode(request_key) if next_start else "",
        detailed=detailed,
        several_tools=len({hit.tool for hit in answer.hits}) > 1 or (tool is None and len(library.tools()) > 1),
        is_first_page=not arguments.get("cursor"),
    )


def _build_filter(call: ToolCall) -> Filter:
    arguments, library = call.arguments, call.library
    return Filter(
        arguments.get("path") or "",
        (normalise_tag(arguments["tag"]),) if arguments.get("tag") else (),
        resolve_date(arguments["since"], library.local_time()) if arguments.get("since") else "",
        resolve_date(arguments["until"], library.local_time()) if arguments.get("until") else "",
    )
