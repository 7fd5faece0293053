"""Tools over a folder: search it, update its index, verify a citation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from bunko.interfaces import serialize
from bunko.interfaces.text import single_line
from bunko.interfaces.tools import search_tool
from bunko.interfaces.tools.jobs import BACKGROUND_PARAM
from bunko.interfaces.tools.search_tool import SEARCH_OUTPUT
from bunko.interfaces.tools.tool import OBJECT, STRING, Param, ToolCall, ToolDefinition, ToolReply, object_schema
from bunko.interfaces.tools.toolsets import Toolset, ToolsetContext
from bunko.messages import join_sentences
from bunko.runtime.observer import ImportProgress


def default_top_k(context: ToolsetContext) -> int:
    """Return how many results a search returns by default."""
    return min(context.settings.search.top_k, search_tool.MAX_RESULTS) if context.settings is not None else 5


def build_folder_tools(
    subject: str, top_k: int, *, tool_choices: Mapping[str, str] = MappingProxyType({})
) -> list[ToolDefinition]:
    """Return the tools over a folder; with `tool_choices`, a search can be limited to one tool of the library.

    The choices are the names that assistants see, with the real names.
    """
    tool_param = replace(search_tool.TOOL_PARAM, choices=tuple(tool_choices), accepts_others=True)
    return [
        ToolDefinition(
            "search",
            "Search documents",
            f"Search {subject}. Finds Japanese and English by words, identifiers and meaning, in either language, and "
            "answers with passages and citations (path:L12-L30). Use it before answering questions about them. "
            f'"A phrase" must be in a text, -word must not. {search_tool.WORDINGS_ADVICE}',
            (
                search_tool.FILTERED_QUERY_PARAM,
                *search_tool.WORDING_PARAMS,
                search_tool.top_k_param(top_k),
                search_tool.PER_DOCUMENT_PARAM,
                *((tool_param,) if tool_choices else ()),
                *search_tool.FILTER_PARAMS,
                search_tool.EXTRACT_PARAM,
                *search_tool.OUTPUT_PARAMS,
            ),
            SEARCH_OUTPUT,
            lambda call: search_tool.search(call, search_tool.chosen_tool(call, tool_choices)),
            right="read",
        ),
        ToolDefinition(
            "reindex",
            "Update the index",
            "Update the index now; searches do it by themselves.",
            (
                Param("rebuild", "boolean", "Anew, as set now", default=False),
                BACKGROUND_PARAM,
            ),
            OBJECT,
            _reindex,
            right="write",
            supports_background=True,
        ),
        ToolDefinition(
            "verify",
            "Check a citation",
            "Say whether a cited passage is the same, moved, changed or deleted.",
            (
                Param("citation", "string", "path:L12-L30", required=True),
                Param("hash", "string", "From search", required=True),
                *((search_tool.TOOL_PARAM,) if tool_choices else ()),
            ),
            object_schema({"status": STRING}, "status"),
            lambda call: _verify(call, search_tool.chosen_tool(call, tool_choices)),
            right="read",
        ),
    ]


class _SummedProgress:
    """Adds up the progress over several tools, of which each begins at zero."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self._files = self._total = self._chunks = 0  # of the tools before
        self._last = ImportProgress(0, 0, 0, 0, 0)

    def report(self, done: ImportProgress) -> None:
        """Report how far all tools are, as far as their files are known."""
        last, self._last = self._last, done
        if done.files < last.files or done.total_files != last.total_files:  # another tool
            self._files, self._total = self._files + last.files, self._total + last.total_files
            self._chunks += last.chunks
        chunks = f"{self._chunks + done.chunks} chunks"
        self._call.report_progress(self._files + done.files, self._total + done.total_files, chunks)


def _reindex(call: ToolCall) -> ToolReply:
    observer = replace(call.observer(), on_progress=_SummedProgress(call).report)
    report = call.library.reindex(rebuild=call.arguments["rebuild"], observer=observer)
    structured = serialize.report_to_dict(report)
    for problem in structured["problems"]:
        problem["file_path"] = single_line(problem["file_path"])
    counts = ", ".join(f"{structured[name]} {name}" for name in ("added", "updated", "deleted", "unchanged", "moved"))
    lines = [f"{counts}, {structured['total_chunks']} chunks in total."]
    if report.interrupted:
        lines.append("The import was stopped. Finished work is saved; call reindex again to continue.")
    lines += report.notices
    lines += [
        f"Not indexed: {single_line(problem.uri)}: {single_line(join_sentences(problem.reason))}"
        for problem in report.problems[:20]
    ]
    if len(report.problems) > 20:
        lines.append(f"… and {len(report.problems) - 20} more.")
    return ToolReply("\n".join(lines), structured)


_STATUS_MEANINGS = {
    "same": "The passage is unchanged.",
    "moved": "The passage is unchanged, but its location is different now.",
    "changed": "The text at this location is another: it has changed, or the hash is of other lines; search again.",
    "deleted": "The document was deleted.",
}


def _verify(call: ToolCall, tool: str | None) -> ToolReply:
    arguments = call.arguments
    check = call.library.readable.verify_citation(arguments["citation"], arguments["hash"], tool=tool)
    citation = single_line(check.citation)
    structured = {"status": check.status, "citation": citation}
    return ToolReply(f"{check.status}: {citation}. {_STATUS_MEANINGS[check.status]}", structured)


TOOLSET = Toolset(
    "folder",
    "Search documents, update their index, verify a citation.",
    ("search", "reindex", "verify"),
    lambda context: build_folder_tools(context.subject, default_top_k(context)),
)
