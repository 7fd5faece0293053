"""The search tool that several toolsets share: its parameters and how it is run."""

from __future__ import annotations

from functools import partial

from bunko.interfaces.tools import answers
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.records import Filter
from bunko.search import passages as extracts
from bunko.search.request import SearchRequest
from bunko.text.tags import normalise_tag

# Enough to decide whether to read the whole passage.
_CONCISE_TOKENS = 300
MAX_RESULTS = 50

QUERY_PARAM = Param("query", "string", "Words or a question, Japanese or English", required=True)
CURSOR_PARAM = Param("cursor", "string", "next_cursor of the last page")
MODE_CHOICES = ("bm25", "semantic", "hybrid")
DATE_PARAMS = (Param("since", "string", "Date or 2w"), Param("until", "string"))
OUTPUT_PARAMS = (
    Param("response_format", "string", default="detailed", choices=("concise", "detailed")),
    CURSOR_PARAM,
)
FILTER_PARAMS = (
    Param("mode", "string", choices=MODE_CHOICES),
    Param("path", "string", "Glob, e.g. guide/**"),
    Param("tag", "string"),
    *DATE_PARAMS,
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
    detailed = arguments["response_format"] == "detailed"
    tag = arguments.get("tag")
    request = SearchRequest(
        arguments["query"],
        tool,
        mode=arguments.get("mode"),
        top_k=arguments["top_k"],
        where=Filter(
            arguments.get("path") or "",
            (normalise_tag(tag),) if tag else (),
            arguments.get("since") or "",
            arguments.get("until") or "",
        ),
        explain=detailed,
        extract=arguments["extract"],
        cursor=arguments.get("cursor") or "",
        token_budget=library.settings.serve.max_result_tokens,
        tokens_per_passage=None if detailed else _CONCISE_TOKENS,
    )
    page = library.page(request, overhead_tokens=partial(answers.overhead_tokens, detailed=detailed))
    several_tools = page.several_tools or (tool is None and len(library.tools()) > 1)
    return answers.search_reply(page, detailed=detailed, several_tools=several_tools)
