"""The tools that every toolset has: read a document, and list documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bunko.errors import UnknownName
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.serialize import MAX_TAGS, readable_address, resource_address
from bunko.interfaces.text import UNTRUSTED_NOTE, format_count, more_results_hint, new_mark, single_line, wrap_excerpt
from bunko.interfaces.tools.search_tool import (
    CURSOR_PARAM,
    DATE_PARAMS,
    PATH_PARAM,
    TAG_PARAM,
    TOOL_PARAM,
    chosen_tool,
    filter_from,
)
from bunko.interfaces.tools.tool import (
    INTEGER,
    LIST_TOOL_NAME,
    MAX_TEXT_CHARS,
    READ_TOOL_NAME,
    STRING,
    DocumentLink,
    Param,
    ToolCall,
    ToolDefinition,
    ToolReply,
    object_schema,
)
from bunko.search.paging import Cursor, check_cursor, parse_cursor
from bunko.search.passages import display_label
from bunko.search.reading import ReadRequest, outline, read_part
from bunko.text.token_count import estimate_tokens

if TYPE_CHECKING:
    from bunko.library.reading.find_document import FoundDocument

# Tokens for the address, the labels and the field names around a text or a list.
_OVERHEAD_TOKENS = 200
_MIN_TOKENS = 300
_MAX_LISTED, _MAX_CONTEXT_LINES, _MAX_ADDRESSES = 200, 1000, 10


def build_document_tools(
    subject: str, *, kinds: Sequence[str] = (), tool_choices: Mapping[str, str] = MappingProxyType({})
) -> list[ToolDefinition]:
    """Return the tools `read` and `list` over some documents.

    The choices are the names that assistants see, with the real names.
    """
    tool_params = (TOOL_PARAM,) if len(tool_choices) > 1 else ()
    return [
        ToolDefinition(
            READ_TOOL_NAME,
            "Read a document",
            "Read a document that was found or listed, or a part of it.",
            (
                Param("document", "string", "Citation (path:L12-L30), path, URL or memo id", required=True),
                Param("lines", "string", "12-30"),
                Param("section", "string", "A heading"),
                Param("around", "integer", "More lines on each side", default=0, minimum=0, maximum=_MAX_CONTEXT_LINES),
                Param("max_tokens", "integer", "Longest answer", minimum=_MIN_TOKENS, maximum=MAX_TEXT_CHARS),
                *tool_params,
                CURSOR_PARAM,
            ),
            object_schema({"citation": STRING, "text": STRING}, "citation", "text"),
            lambda call: _read(call, chosen_tool(call, tool_choices), kinds),
            right="read",
        ),
        ToolDefinition(
            LIST_TOOL_NAME,
            "List documents",
            f"List {subject} by path, tag or date, the newest first; or one document's headings.",
            (
                PATH_PARAM,
                TAG_PARAM,
                *DATE_PARAMS,
                Param("sort", "string", "Order", default="newest", choices=("newest", "name")),
                Param("limit", "integer", "How many", default=30, minimum=1, maximum=_MAX_LISTED),
                Param("outline", "string", "A document: list its headings instead"),
                *tool_params,
                CURSOR_PARAM,
            ),
            object_schema({"total": INTEGER}, "total"),
            lambda call: _list(call, chosen_tool(call, tool_choices), kinds),
            right="read",
        ),
    ]


def _read(call: ToolCall, tool: str | None, kinds: Sequence[str]) -> ToolReply:
    arguments, library = call.arguments, call.library
    limit = library.settings.serve.max_result_tokens
    token_budget = min(arguments.get("max_tokens") or limit, limit)
    request = ReadRequest(
        arguments["document"],
        tool,
        lines=arguments.get("lines") or "",
        section=arguments.get("section") or "",
        context_lines=arguments["around"],
        token_budget=token_budget - _OVERHEAD_TOKENS,
        cursor=arguments.get("cursor") or "",
    )
    target = _find(call, request.location, tool, kinds)
    reading = read_part(target.tool.name, target.document, request, target.citation)
    tool_name = library.assistant_names()[reading.tool]
    link = DocumentLink(
        resource_address(tool_name, reading.uri), single_line(reading.uri), display_label(reading.title)
    )
    facts = [f"lines {reading.first_line}-{reading.last_line} of {reading.total_lines}", f"hash {reading.hash}"]
    facts += [single_line(reading.place)] if reading.place else []
    facts += [f"date {reading.date}"] if reading.date else []
    labels = " ".join([display_label(reading.title), *(f"#{tag}" for tag in _tag_labels(reading.tags))])
    blocks = [
        f"## {single_line(reading.citation)} | {', '.join(facts)}",
        UNTRUSTED_NOTE,
        wrap_excerpt(new_mark(), reading.text, labels.strip()),
    ]
    if reading.next_cursor:
        blocks.append(more_results_hint(reading.next_cursor))
    return ToolReply(
        "\n".join(blocks), ReadingFields.fill(reading, uri=readable_address(tool_name, reading.uri)), [link]
    )


def _find(call: ToolCall, location: str, tool: str | None, kinds: Sequence[str]) -> FoundDocument:
    """Return a document; a path that several tools have is an error, since a guess would be cited as the answer."""
    target = call.library.documents.find(location, tool=tool, kinds=kinds)
    if target.is_ambiguous:
        names = call.library.assistant_names()
        addresses = [readable_address(names[name], target.uri) for name in (target.tool.name, *target.other_tools)]
        raise UnknownName(
            f"Several tools have a document {single_line(target.uri)[:200]!r}",
            hint=f"Give one of these addresses: {', '.join(addresses[:_MAX_ADDRESSES])}.",
        )
    return target


def _tag_labels(tags: Sequence[str]) -> list[str]:
    return [display_label(tag) for tag in tags[:MAX_TAGS]]


class ReadingFields(Fields):
    """What was read of a document."""

    citation: str = of("citation", single_line)
    place: str = of("place", single_line, optional=True)
    title: str = of("title", display_label, optional=True)
    date: str = of(optional=True)
    tags: list[str] = of("tags", _tag_labels, optional=True)
    text: str = of(optional=True)
    hash: str
    total_lines: int
    uri: str
    note: str = of(lambda _: UNTRUSTED_NOTE)
    next_cursor: str = of(optional=True)


def _list(call: ToolCall, tool: str | None, kinds: Sequence[str]) -> ToolReply:
    arguments = call.arguments
    if arguments.get("outline"):
        return _outline(call, tool, kinds)
    from bunko.library.reading.documents import (
        ListRequest,  # loads the search engine, and a server lists its tools before
    )

    request = ListRequest(
        tool,
        tuple(kinds),
        filter_from(arguments),
        arguments["sort"],
        arguments["limit"],
        arguments.get("cursor") or "",
    )
    listing = call.library.documents.list_documents(request)
    names = call.library.assistant_names()
    several_tools = (
        tool is None and sum(other.active and (not kinds or other.kind in kinds) for other in call.library.tools()) > 1
    )
    rows = [
        ListRow.fill(document) | ({"tool": names[tool.name]} if several_tools else {})
        for tool, document in listing.documents
    ]
    fitting = _fitting_rows(rows, call.library.settings.serve.max_result_tokens)
    if len(fitting) < len(rows):
        rows, listing = fitting, call.library.documents.list_documents(replace(request, limit=len(fitting)))
    structured: dict[str, Any] = {"documents": rows, "total": listing.total, "note": UNTRUSTED_NOTE}
    lines = []
    for row in rows:
        tags = " ".join(f"#{tag}" for tag in row.get("tags", ()))
        facts = (row["path"], row.get("title", ""), row.get("date", ""), tags, row.get("tool", ""))
        lines.append(" | ".join(filter(None, facts)))
    head = f"{format_count(listing.total, 'document')}. {UNTRUSTED_NOTE}" if rows else "No documents match."
    blocks = [head, *([wrap_excerpt(new_mark(), "\n".join(lines))] if lines else [])]
    if listing.next_cursor:
        structured["next_cursor"] = listing.next_cursor
        blocks.append(more_results_hint(listing.next_cursor))
    return ToolReply("\n\n".join(blocks), structured)


def _fitting_rows(rows: list[dict[str, Any]], token_budget: int) -> list[dict[str, Any]]:
    """Return the first rows that fit a budget, at least one."""
    tokens_left = token_budget - _OVERHEAD_TOKENS
    for count, row in enumerate(rows):
        tokens_left -= estimate_tokens(json.dumps(row, ensure_ascii=False)) + 1
        if tokens_left < 0:
            return rows[: max(1, count)]
    return rows


class ListRow(Fields):
    """A document in a list."""

    path: str = of("uri", single_line)
    title: str = of("title", display_label, optional=True)
    date: str = of(lambda document: document.date[:16], optional=True)
    tags: list[str] = of("tags", _tag_labels, optional=True)


def _outline(call: ToolCall, tool_name: str | None, kinds: Sequence[str]) -> ToolReply:
    target = _find(call, call.arguments["outline"], tool_name, kinds)
    headings, key = outline(target.document), repr((target.tool.name, target.uri))
    start = 0
    if call.arguments.get("cursor"):
        cursor, digest = parse_cursor(call.arguments["cursor"])
        check_cursor(digest, key)
        start = cursor.passage_index
    rows = _fitting_rows(
        [
            {"heading": display_label(heading.title), "level": heading.level, "line": heading.line}
            for heading in headings[start:]
        ],
        call.library.settings.serve.max_result_tokens,
    )
    structured: dict[str, Any] = {
        "document": single_line(target.uri),
        "headings": rows,
        "total": len(headings),
        "uri": readable_address(call.library.assistant_names()[target.tool.name], target.uri),
        "note": UNTRUSTED_NOTE,
    }
    lines = [f"L{row['line']} {'#' * row['level']} {row['heading']}" for row in rows]
    head = f"{single_line(target.uri)}: {format_count(len(headings), 'heading')}. {UNTRUSTED_NOTE}"
    blocks = [head, *([wrap_excerpt(new_mark(), "\n".join(lines))] if lines else [])]
    if start + len(rows) < len(headings):
        structured["next_cursor"] = Cursor(0, start + len(rows)).encode(key)
        blocks.append(more_results_hint(structured["next_cursor"]))
    return ToolReply("\n\n".join(blocks), structured)
