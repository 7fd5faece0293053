"""Import a file or folder of memos into the tool `memos`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bunko.errors import SettingsError
from bunko.library import catalog
from bunko.library.library import Library
from bunko.observer import NO_OBSERVER, Observer
from bunko.sources.memos import EXTENSIONS
from bunko.types import Report
from bunko.types.tool_options import ToolOptions

MEMOS_TOOL = "memos"


def import_memos(
    library: Library,
    source: Path,
    *,
    vectors: bool = True,
    rebuild: bool = False,
    observer: Observer = NO_OBSERVER,
) -> Report:
    """Import the changes of a file or folder of memos, or everything if `rebuild` or a different `vectors` asks for it.

    Whether the tool has vectors is stored with it, so that searches know it too.
    """
    embedder = "" if vectors else "none"
    tool = next((tool for tool in library.tools() if tool.name == MEMOS_TOOL), None)
    if tool is None:
        tool = catalog.add_tool(
            library.store,
            MEMOS_TOOL,
            f"Dated memos in {source.name}",
            source,
            kind="memos",
            options=ToolOptions(embedder=embedder or None),
        )
    elif tool.kind == "folder":
        raise SettingsError(
            f"The tool {MEMOS_TOOL!r} of this library indexes a folder of documents",
            hint="Choose another library with --output, or delete the tool: bunko tool delete -n memos.",
        )
    elif Path(tool.source) != source.expanduser().resolve():
        tool = catalog.update_tool(library.store, MEMOS_TOOL, source=source)
    embedder_changed = (tool.options.embedder or "") != embedder
    report = library.import_tools(
        [MEMOS_TOOL],
        "replace" if rebuild or (embedder_changed and tool.is_built) else "update",
        options_of=lambda tool: replace(tool.options, embedder=embedder),
        observer=observer,
    )
    report.problems.sort(key=lambda problem: _file_position(problem.uri))
    if not report.problems and not report.added + report.updated + report.moved + report.unchanged:
        report.notices.append(
            f"No memos found in {source}: expected files ending in {', '.join(EXTENSIONS)}, or a ChangeLog."
        )
    return report


def _file_position(uri: str) -> tuple[str, int]:
    """Return the sort key of a problem by its line in its file: line 8 before line 21."""
    file, _, name = uri.rpartition("#")
    return (file, int(name[1:])) if file and name[:1] == "L" and name[1:].isdecimal() else (uri, 0)
