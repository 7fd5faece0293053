"""The search that several toolsets offer: its parameters, and how a call becomes a page of passages."""

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

# A concise result is enough to decide whether to read on.
_CONCISE_TOKENS = 300
MAX_RESULTS = 50
_MAX_HITS = 1000  # hits that a search can be asked for
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
    """Return the parameter for how much of each hit comes back; no default: as each tool says."""
    return Param("extract", "string", "How much of each hit", default=default, choices=extracts.EXTRACTS)


def top_k_param(default: int) -> Param:
    """Return the parameter for the number of results."""
    return Param("top_k", "integer", default=default, minimum=1, maximum=MAX_RESULTS)


def search(call: ToolCall, tool: str | None) -> ToolReply:
    """Answer a search with a page that fits the budget."""
    given, library = call.arguments, call.library
    query, count = given["query"], given["top_k"]
    # Whatever decides what the pages are: a cursor means nothing elsewhere.
    question = json.dumps([tool, *(given.get(name) for name in _CURSOR_ARGUMENTS)])
    begin = decode_cursor(given["cursor"], question) if given.get("cursor") else Cursor()
    detailed = given["response_format"] == "detailed"
    where = Filter(
        given.get("path") or "",
        (normalise_tag(given["tag"]),) if given.get("tag") else (),
        resolve_date(given["since"], library.local_time()) if given.get("since") else "",
        resolve_date(given["until"], library.local_time()) if given.get("until") else "",
    )
    before = begin.generation
    while True:
        answer = library.search(
            query, tool=tool, mode=given.get("mode"), top_k=begin.first_hit + count, where=where, explain=detailed
        )
        # Sections and whole documents that an earlier page gave are not given again; chunks are all different.
        skipped = 0 if given["extract"] == "chunk" else begin.first_hit
        hits = answer.hits if skipped else answer.hits[begin.first_hit :]
        passages = library.passages(hits, given["extract"], already_returned=skipped)
        more = len(answer.hits) == begin.first_hit + count and begin.first_hit + 2 * count <= _MAX_HITS
        if passages or not more:
            break
        begin = Cursor(begin.first_hit + count)
    if not given.get("cursor"):
        library.log_search(query, tool)
    generation = answer.freshness.generation
    if before and before != generation:
        answer.notices.append("The index changed since the last page; results may repeat or be missing.")
    pieces, rest = build_page(
        passages,
        Cursor(begin.first_hit, begin.passage_index, begin.char_offset, generation),
        token_budget=library.settings.serve.max_result_tokens,
        tokens_per_passage=None if detailed else _CONCISE_TOKENS,
        overhead_tokens=partial(answers.overhead_tokens, detailed=detailed),
    )
    if rest is None and more:
        rest = Cursor(begin.first_hit + count, generation=generation)
    several = len({hit.tool for hit in answer.hits}) > 1 or (tool is None and len(library.tools()) > 1)
    written = rest.encode(question) if rest else ""
    return answers.search_reply(
        answer, pieces, written, detailed=detailed, several_tools=several, is_first_page=not given.get("cursor")
    )
