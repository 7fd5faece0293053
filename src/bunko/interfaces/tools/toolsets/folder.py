"""One folder: search it, bring its index up to date, check a citation."""

from __future__ import annotations

from bunko.interfaces import serialize
from bunko.interfaces.tools.answers import SEARCH_OUTPUT
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import INTEGER, STRING, ToolCall, ToolDefinition, ToolReply, object_schema
from bunko.interfaces.tools.toolsets import search_tool


def tools(subject: str, top_k: int, *, tool_choices: tuple[str, ...] = ()) -> list[ToolDefinition]:
    """Return the tools over a folder; with `choose` a search can be narrowed to one tool of the library."""
    which = (Param("tool", "string", "Search this one only", choices=tool_choices),) if tool_choices else ()
    return [
        ToolDefinition(
            "search",
            "Search documents",
            f"Search {subject}. Finds Japanese and English by words, identifiers and meaning, in either language, and "
            "answers with passages, scores and citations (path:L12-L30). Use it before answering questions about them.",
            (
                search_tool.QUERY_PARAM,
                search_tool.top_k_param(top_k),
                *which,
                *search_tool.FILTER_PARAMS,
                search_tool.extract_param(),
                *search_tool.OUTPUT_PARAMS,
            ),
            SEARCH_OUTPUT,
            lambda call: search_tool.search(call, call.arguments.get("tool")),
        ),
        ToolDefinition(
            "reindex",
            "Update the index",
            f"Bring the index of {subject} up to date now. Searches do this by themselves; use it after large changes.",
            (Param("background", "boolean", "Return a job id at once", default=False),),
            object_schema(
                dict.fromkeys(("added", "updated", "deleted", "unchanged", "total_chunks"), INTEGER) | {"job": STRING}
            ),
            _reindex,
            read_only=False,
            supports_background=True,
        ),
        ToolDefinition(
            "verify",
            "Check a citation",
            "Check whether a cited passage still stands: same, moved, changed or deleted.",
            (
                Param("citation", "string", "path:L12-L30", required=True),
                Param("hash", "string", "As returned by search", required=True),
                *which,
            ),
            object_schema({"status": STRING, "citation": STRING}, "status", "citation"),
            _verify,
        ),
    ]


def _reindex(call: ToolCall) -> ToolReply:
    report = call.library.reindex(
        progress=lambda done: call.report_progress(done.files, done.total_files, f"{done.chunks} chunks"),
        waiting=lambda sentence: call.report_progress(0, 1, sentence),
        stopped=call.stop.is_set,
    )
    found = serialize.report_to_dict(report)
    counts = ", ".join(f"{found[name]} {name}" for name in ("added", "updated", "deleted", "unchanged", "moved"))
    lines = [f"{counts}, {found['total_chunks']} chunks in all."]
    if report.interrupted:
        lines.append("It was stopped before the end; what was written stays. Call reindex again to go on.")
    lines += report.notices
    lines += [f"Not indexed: {one.uri}: {' '.join(one.reason.split())}" for one in report.problems[:20]]
    if len(report.problems) > 20:
        lines.append(f"… and {len(report.problems) - 20} more.")
    return ToolReply("\n".join(lines), found)


_STATUS_MEANINGS = {
    "same": "The passage stands as it was cited.",
    "moved": "The passage is unchanged but stands elsewhere now.",
    "changed": "The text at this place has changed since; search again.",
    "deleted": "The document is gone.",
}


def _verify(call: ToolCall) -> ToolReply:
    given = call.arguments
    verdict = call.library.verify_citation(given["citation"], given["hash"], tool=given.get("tool"))
    found = {"status": verdict.status, "citation": verdict.citation}
    return ToolReply(f"{verdict.status}: {verdict.citation}. {_STATUS_MEANINGS[verdict.status]}", found)
