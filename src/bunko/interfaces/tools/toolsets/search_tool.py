"""The search that several toolsets offer: its parameters, and how a call becomes a page of passages."""

from __future__ import annotations

import json
from functools import partial

from bunko.interfaces.tools import answers
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import Call, Reply
from bunko.records import Filter
from bunko.search import passages as extracts
from bunko.search.paging import Cursor, page, read_cursor
from bunko.text.dates import moment
from bunko.text.tags import tag

# A concise result is enough to decide whether to read on.
_CONCISE_TOKENS = 300
MOST_RESULTS = 50
_DEEPEST = 1000  # hits that a search can be asked for
_PAGED = ("query", "top_k", "extract", "mode", "path", "tag", "since", "until")

QUERY = Param("query", "string", "Words or a question, Japanese or English", required=True)
SHAPE = (
    Param("response_format", "string", default="detailed", choices=("concise", "detailed")),
    Param("cursor", "string", "next_cursor of the last page"),
)
FILTERS = (
    Param("mode", "string", choices=("bm25", "semantic", "hybrid")),
    Param("path", "string", "Glob, e.g. guide/**"),
    Param("tag", "string"),
    Param("since", "string", "Date or 2w"),
    Param("until", "string"),
)


def extract(default: extracts.Extract | None = None) -> Param:
    """Return the parameter for how much of each hit comes back; no default: as each tool says."""
    return Param("extract", "string", "How much of each hit", default=default, choices=extracts.EXTRACTS)


def top_k(default: int) -> Param:
    """Return the parameter for the number of results."""
    return Param("top_k", "integer", default=default, least=1, most=MOST_RESULTS)


def search(call: Call, tool: str | None) -> Reply:
    """Answer a search with a page that fits the budget."""
    given, library = call.arguments, call.library
    query, count = given["query"], given["top_k"]
    # Whatever decides what the pages are: a cursor means nothing elsewhere.
    question = json.dumps([tool, *(given.get(name) for name in _PAGED)])
    begin = read_cursor(given["cursor"], question) if given.get("cursor") else Cursor()
    detailed = given["response_format"] == "detailed"
    where = Filter(
        given.get("path") or "",
        (tag(given["tag"]),) if given.get("tag") else (),
        moment(given["since"], library.now()) if given.get("since") else "",
        moment(given["until"], library.now()) if given.get("until") else "",
    )
    before = begin.generation
    while True:
        answer = library.search(
            query, tool=tool, mode=given.get("mode"), top_k=begin.first + count, where=where, explain=detailed
        )
        # Sections and whole documents that an earlier page gave are not given again; chunks are all different.
        skipped = 0 if given["extract"] == "chunk" else begin.first
        hits = answer.hits if skipped else answer.hits[begin.first :]
        passages = library.passages(hits, given["extract"], given=skipped)
        more = len(answer.hits) == begin.first + count and begin.first + 2 * count <= _DEEPEST
        if passages or not more:
            break
        begin = Cursor(begin.first + count)
    if not given.get("cursor"):
        library.remember(query, tool)
    generation = answer.freshness.generation
    if before and before != generation:
        answer.notices.append("The index changed since the last page; results may repeat or be missing.")
    pieces, rest = page(
        passages,
        Cursor(begin.first, begin.passage, begin.character, generation),
        budget=library.settings.serve.max_result_tokens,
        per_passage=None if detailed else _CONCISE_TOKENS,
        frame=partial(answers.frame, detailed=detailed),
    )
    if rest is None and more:
        rest = Cursor(begin.first + count, generation=generation)
    several = len({hit.tool for hit in answer.hits}) > 1 or (tool is None and len(library.tools()) > 1)
    written = rest.written(question) if rest else ""
    return answers.reply(
        answer, pieces, written, detailed=detailed, several_tools=several, first=not given.get("cursor")
    )
