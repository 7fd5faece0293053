"""The search tool that several toolsets share: its parameters and how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from bunko.errors import UnknownName
from bunko.interfaces.tools import answers
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.admin.commands import enable_command
from bunko.library.tools.catalog import find_tool
from bunko.search.passages import EXTRACTS
from bunko.search.request import SearchRequest, parse_options
from bunko.text.tags import normalise_tag
from bunko.text.token_count import estimate_tokens
from bunko.types import MODES
from bunko.types.records import Filter

MAX_RESULTS = 50

QUERY_PARAM = Param("query", "string", "Words or a question", required=True)
# With filters, an empty query gives the newest documents that match.
FILTERED_QUERY_PARAM = Param("query", "string", "Words or a question; empty with a filter: the newest", required=True)
WORDING_PARAMS = (
    Param("also", "texts", "Other wordings, as the documents may say it; always give some"),
    Param("passage", "string", "A sentence as the answer may say it"),
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
    page = library.page(request, overhead_tokens=partial(answers.overhead_tokens, detailed=detailed))
    several_tools = page.several_tools or (tool is None and len(page.assistant_names) > 1)
    return answers.search_reply(page, detailed=detailed, several_tools=several_tools)
