"""One folder: search it, bring its index up to date, check a citation."""

from __future__ import annotations

from bunko.interfaces import serialize
from bunko.interfaces.tools.answers import SEARCH_OUTPUT
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import TEXT, WHOLE, Call, Reply, Tool, listed
from bunko.interfaces.tools.toolsets import search_tool


def tools(about: str, top_k: int, *, choose: tuple[str, ...] = ()) -> list[Tool]:
    """Return the tools over a folder; with `choose` a search can be narrowed to one tool of the library."""
    which = (Param("tool", "string", "Search this one only", choices=choose),) if choose else ()
    return [
        Tool(
            "search",
            "Search documents",
            f"Search {about}. Finds Japanese and English by words, identifiers and meaning, in either language, and "
            "answers with passages, scores and citations (path:L12-L30). Use it before answering questions about them.",
            (
                search_tool.QUERY,
                search_tool.top_k(top_k),
                *which,
                *search_tool.FILTERS,
                search_tool.extract(),
                *search_tool.SHAPE,
            ),
            SEARCH_OUTPUT,
            lambda call: search_tool.search(call, call.arguments.get("tool")),
        ),
        Tool(
            "reindex",
            "Update the index",
            f"Bring the index of {about} up to date now. Searches do this by themselves; use it after large changes.",
            (Param("background", "boolean", "Return a job id at once", default=False),),
            listed(dict.fromkeys(("added", "updated", "deleted", "unchanged", "total_chunks"), WHOLE) | {"job": TEXT}),
            _reindex,
            read_only=False,
            slow=True,
        ),
        Tool(
            "verify",
            "Check a citation",
            "Check whether a cited passage still stands: same, moved, changed or deleted.",
            (
                Param("citation", "string", "path:L12-L30", required=True),
                Param("hash", "string", "As returned by search", required=True),
                *which,
            ),
            listed({"status": TEXT, "citation": TEXT}, "status", "citation"),
            _verify,
        ),
    ]


def _reindex(call: Call) -> Reply:
    report = call.library.reindex(
        progress=lambda done: call.progress(done.files, done.total_files, f"{done.chunks} chunks"),
        waiting=lambda sentence: call.progress(0, 1, sentence),
        stopped=call.stop.is_set,
    )
    found = serialize.report(report)
    counts = ", ".join(f"{found[name]} {name}" for name in ("added", "updated", "deleted", "unchanged", "moved"))
    lines = [f"{counts}, {found['total_chunks']} chunks in all."]
    if report.interrupted:
        lines.append("It was stopped before the end; what was written stays. Call reindex again to go on.")
    lines += report.notices
    lines += [f"Not indexed: {one.uri}: {' '.join(one.reason.split())}" for one in report.problems[:20]]
    if len(report.problems) > 20:
        lines.append(f"… and {len(report.problems) - 20} more.")
    return Reply("\n".join(lines), found)


_MEANINGS = {
    "same": "The passage stands as it was cited.",
    "moved": "The passage is unchanged but stands elsewhere now.",
    "changed": "The text at this place has changed since; search again.",
    "deleted": "The document is gone.",
}


def _verify(call: Call) -> Reply:
    given = call.arguments
    verdict = call.library.verify(given["citation"], given["hash"], tool=given.get("tool"))
    found = {"status": verdict.status, "citation": verdict.citation}
    return Reply(f"{verdict.status}: {verdict.citation}. {_MEANINGS[verdict.status]}", found)
