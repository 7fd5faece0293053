"""Say in words what a library or a tool contains."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bunko.embedders.names import display_name
from bunko.interfaces.cli.terminal.printing import escape_controls
from bunko.interfaces.text import format_count, format_size
from bunko.messages import translate, translate_reason

if TYPE_CHECKING:
    from bunko.library.admin.status import LibraryStatus, ToolDetails, ToolStatus
    from bunko.types import Problem, Tool
    from bunko.types.records import EmbeddingUsage, IndexState

SOURCE_REMARKS = {
    "missing": "the source is missing; the index is kept",
    "empty": "the source is empty; the index is kept",
    "unreadable": "the source cannot be read; the index is kept",
}
# Facts whose values may be words.
_STATE_FACTS = ("created", "last import", "last check", "changes")
DOCUMENT_COLUMNS = ("document", "title", "chunks", "characters", "language")
_MAX_PROBLEMS = 10  # more would hide the rest


def status_lines(status: LibraryStatus, flags: str = "") -> list[str]:
    """Return a status as lines for a pipe."""
    sizes = (
        format_size(status.bytes),
        translate(f"derived {format_size(status.derived_bytes)}"),
        translate(f"generation {status.generation}"),
        translate(f"index {index_text(status)}"),
    )
    lines = [f"{translate('library')}: {status.location} ({', '.join(sizes)})"]
    for tool_status in status.tools:
        tool = tool_status.tool
        facts = (
            translate(state_text(tool_status)),
            translate(_format_counts(tool_status)),
            format_size(tool_status.bytes),
            translate(f"last import {last_import_text(tool_status)}"),
            translate(f"from {source_text(tool)}"),
        )
        lines.append(f"{tool.name}: {', '.join(facts)}")
        remarks = (*tool_remarks(tool_status, flags), *problem_summary(tool_status, flags))
        lines += [f"  {line}" for line in remarks]
    if not status.tools:
        lines.append(translate("No tools yet."))
    lines += [translate(line) for line in unused_lines(status)]
    return lines + [f"{translate('embedder')} {name}: {translate(usage)}" for name, usage in embedder_usage(status)]


def unused_lines(status: LibraryStatus) -> list[str]:
    """Return a line about the vectors that no document uses, if there are any."""
    unused = status.unused_vectors
    if not unused.count:
        return []
    vectors = format_count(unused.count, "vector", number_format=",")
    return [f"no document uses {vectors} ({format_size(unused.bytes)}); the next import uses or deletes them"]


def embedder_usage(status: LibraryStatus) -> list[tuple[str, str]]:
    """Return how many texts each embedder embedded, and how many were reused, by embedder name."""
    usage_by_name: dict[str, EmbeddingUsage] = {}
    for key, usage in status.embedding_usage.items():
        name = display_name(key)  # several keys: the same model with other options
        usage_by_name[name] = usage_by_name[name] + usage if name in usage_by_name else usage
    return [(name, _format_usage(usage)) for name, usage in usage_by_name.items()]


def _format_usage(usage: EmbeddingUsage) -> str:
    def count(number: int, noun: str) -> str:
        return format_count(number, noun, number_format=",")

    text = f"{count(usage.texts, 'text')} embedded in {count(usage.calls, 'call')}"
    if not usage.saved_texts:
        return text
    return f"{text}; {count(usage.saved_texts, 'text')} reused, {count(usage.saved_calls, 'call')} saved"


def details_lines(details: ToolDetails, flags: str = "") -> list[str]:
    """Return the details of a tool as lines for a pipe; documents are in tab-separated columns."""
    facts = [(name, translate(value) if name in _STATE_FACTS else value) for name, value in tool_facts(details)]
    lines = [f"{translate(name)}: {value}" for name, value in facts]
    if details.chunk_lengths:
        lines.append(translate(f"chunk lengths: {length_summary(details)}"))
        lines += [
            f"  {length_bin.low}-{length_bin.high}: {length_bin.count}" for length_bin in details.chunk_lengths.bins
        ]
    lines += [*tool_remarks(details.status, flags), *problem_lines(details.status.problems)]
    lines.append(translate(page_summary(details)))
    lines.append("\t".join(map(translate, DOCUMENT_COLUMNS)))
    for document in details.documents:
        uri, title = escape_controls(document.uri), escape_controls(" ".join(document.title.split()))
        lines.append(f"{uri}\t{title}\t{document.chunks}\t{document.characters}\t{document.language}")
    return lines


def tool_facts(details: ToolDetails) -> list[tuple[str, str]]:
    """Return the facts about a tool as names and values."""
    tool_status, tool, storage = details.status, details.status.tool, details.status.storage
    room = (
        f"text {format_size(storage.text)}",
        f"index {format_size(storage.index)}",
        f"vectors {format_size(storage.vectors)}",
        f"derived {format_size(tool_status.derived_bytes)}",
    )
    facts = [
        ("tool", f"{tool.name} ({tool.kind}, {translate(state_text(tool_status))})"),
        ("description", tool.description or translate("none")),
        ("source", source_text(tool)),
        *((name, _format_value(value)) for name, value in tool.options.to_json().items()),
        ("created", tool.created_at or "unknown"),
        ("last import", last_import_text(tool_status)),
        ("contents", translate(contents_text(tool_status))),
        ("size", translate(f"{format_size(tool_status.bytes)} ({', '.join(room)})")),
    ]
    if tool.is_built:
        built = ", ".join(
            f"{name} {_format_value(value)}" for name, value in tool.built.to_json().items() if name != "embedder"
        )
        facts += [("embedding", translate(embedding_text(tool_status))), ("built with", built)]
    facts.append(("last check", details.checked_at or "never"))
    if details.changes:
        changes = details.changes
        counts = f"{changes.new} new, {changes.changed} changed, {changes.gone} deleted, {changes.moved} moved"
        facts.append(("changes", counts))
    return facts


def contents_text(tool_status: ToolStatus) -> str:
    """Return how many documents, chunks, vectors and characters a tool holds."""
    characters = format_count(tool_status.totals.characters, "character", number_format=",")
    return f"{_format_counts(tool_status, ',')}, {characters}"


def embedding_text(tool_status: ToolStatus) -> str:
    """Return the model that computed the vectors of a tool, and their size."""
    dimension = tool_status.storage.dimension
    name = display_name(tool_status.tool.built.embedder or "none")
    return f"{name}, {dimension} dimensions" if dimension else name


def length_summary(details: ToolDetails) -> str:
    """Return the distribution of chunk lengths in one line."""
    lengths = details.chunk_lengths
    if lengths is None:
        return "no chunks"
    return (
        f"min {lengths.minimum:,}, median {lengths.median:,}, p90 {lengths.p90:,}, max {lengths.maximum:,},"
        f" mean {lengths.mean:,.1f} characters"
    )


def page_summary(details: ToolDetails) -> str:
    """Return which page of the documents is listed, and the option for the next one."""
    documents = format_count(details.status.totals.documents, "document", number_format=",")
    if details.page > details.pages:
        pages = format_count(details.pages, "page")
        return f"page {details.page} does not exist: {documents} on {pages}; --page 1 shows the first"
    summary = f"page {details.page} of {details.pages}, {documents}"
    return f"{summary}; --page {details.page + 1} shows the next" if details.page < details.pages else summary


def tool_remarks(tool_status: ToolStatus, flags: str) -> list[str]:
    """Return remarks about a missing source, an unfinished import and an unfinished rebuild, in the user's language.

    `flags` select the library in the commands that they name.
    """
    remarks = []
    if tool_status.source_state in SOURCE_REMARKS:
        move = f"bunko tool update -n {shlex.quote(tool_status.tool.name)} -s PATH{flags}"
        remarks.append(f"{SOURCE_REMARKS[tool_status.source_state]}. If it has moved: {move}")
    if tool_status.import_state == "unfinished":
        remarks.append("the first import is unfinished; import the tool again to continue")
    if tool_status.rebuild_documents is not None:
        documents = format_count(tool_status.rebuild_documents, "document", number_format=",")
        remarks.append(f"a rebuild is unfinished ({documents} so far); searches use the old index until it is complete")
    if not tool_status.index.is_current:
        remarks.append(f"index: {index_state_text(tool_status.index)}")
    return [translate(remark) for remark in remarks]


def index_text(status: LibraryStatus) -> str:
    """Return which index answers searches, and where it is."""
    return f"{status.index_kind} {status.index_location}".rstrip()


def index_state_text(state: IndexState) -> str:
    """Return how far the index of a tool has followed the library, in one line."""
    if state.problem:
        return f"not used: {state.problem}. {state.hint}".rstrip()
    chunks = "" if state.rows is None else f", {format_count(state.rows, 'chunk', number_format=',')}"
    if state.pending:
        documents = format_count(state.pending, "document", number_format=",")
        if state.rows and not state.generation:
            copied = format_count(state.rows, "chunk", number_format=",")
            return f"{documents} missing, {copied} copied. Go on with: bunko index sync"
        return f"{documents} behind, at generation {state.generation}{chunks}. Update it with: bunko index sync"
    return f"up to date{chunks}" + (f". {state.hint}" if state.hint else "")


def problem_summary(tool_status: ToolStatus, flags: str) -> list[str]:
    """Return a line for each of the first documents that could not be indexed, and one about those without text."""
    empty = [problem for problem in tool_status.problems if problem.is_empty]
    lines = problem_lines([problem for problem in tool_status.problems if not problem.is_empty])
    if empty:
        files = format_count(sum(problem.files for problem in empty), "file", number_format=",")
        command = f"bunko status -n {shlex.quote(tool_status.tool.name)}{flags}"
        lines.append(translate(f"{files} without text left out; to list them: {command}"))
    return lines


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """Return a line for each of the first documents that could not be indexed, and the number of the others."""
    lines = [
        f"{translate('problem')}: {escape_controls(problem.uri)}: {translate_reason(problem.reason)}"
        for problem in problems[:_MAX_PROBLEMS]
    ]
    if len(problems) > _MAX_PROBLEMS:
        lines.append(translate(f"… and {len(problems) - _MAX_PROBLEMS} more; use --json to list all."))
    return lines


def state_text(tool_status: ToolStatus) -> str:
    """Return whether a tool is active, and the state of its source if it has a problem."""
    state = "active" if tool_status.tool.active else "disabled"
    return state if tool_status.source_state == "ok" else f"{state}, source {tool_status.source_state}"


def _format_counts(tool_status: ToolStatus, number_format: str = "") -> str:
    totals = tool_status.totals
    counts = ((totals.documents, "document"), (totals.chunks, "chunk"), (totals.vectors, "vector"))
    return ", ".join(format_count(number, noun, number_format=number_format) for number, noun in counts)


def source_text(tool: Tool) -> str:
    """Return where the documents of a tool come from."""
    return escape_controls(tool.source) or ("the web" if tool.kind == "web" else "no folder")


def last_import_text(tool_status: ToolStatus) -> str:
    """Return the time of the last import, or the import state if there was none."""
    return tool_status.tool.imported_at or tool_status.import_state


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_format_value(item)}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
