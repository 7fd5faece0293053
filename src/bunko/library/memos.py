"""A library and a place of memos in, its tool `memos` up to date with them out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bunko.errors import SettingsError
from bunko.ingest.pipeline import ImportProgress
from bunko.library import catalog
from bunko.library.library import Library
from bunko.sources.memos import EXTENSIONS
from bunko.types import Report

MEMOS_TOOL = "memos"
_CHUNKER_OPTIONS = ("chunker", "chunk_size", "chunk_overlap")


def import_memos(
    library: Library,
    source: Path,
    *,
    vectors: bool = True,
    rebuild: bool = False,
    progress: Callable[[ImportProgress], None] = lambda _: None,
    waiting: Callable[[str], None] = lambda _: None,
) -> Report:
    """Import what changed in a file or folder of memos, or everything; a change of `vectors` means everything.

    Whether there are vectors is remembered with the tool, so that a search knows it too.
    """
    embedder = "" if vectors else "none"
    tool = next((one for one in library.tools() if one.name == MEMOS_TOOL), None)
    if tool is None:
        tool = catalog.add_tool(
            library.store, MEMOS_TOOL, f"Dated memos in {source.name}", source, kind="memos", embedder=embedder
        )
    elif tool.kind == "folder":
        raise SettingsError(
            f"The tool {MEMOS_TOOL!r} of this library is a folder of documents",
            hint="Name another library with --output, or remove the tool: bunko tool delete -n memos.",
        )
    elif Path(tool.source) != source.expanduser().resolve():
        tool = catalog.update_tool(library.store, MEMOS_TOOL, source=source)
    other = tool.options.get("embedder", "") != embedder
    cutting = {name: tool.options[name] for name in _CHUNKER_OPTIONS if name in tool.options} | {"embedder": embedder}
    report = library.import_tools(
        [MEMOS_TOOL],
        "replace" if rebuild or (other and tool.built) else "update",
        chunker_options=lambda _: cutting,
        progress=progress,
        waiting=waiting,
    )
    report.problems.sort(key=lambda problem: _file_position(problem.uri))
    if not report.problems and not report.added + report.updated + report.moved + report.unchanged:
        report.notices.append(
            f"There are no memos in {source}: files ending in {', '.join(EXTENSIONS)}, or a ChangeLog."
        )
    return report


def _file_position(uri: str) -> tuple[str, int]:
    """Return what orders problems as they stand in their files: line 8 before line 21."""
    file, _, name = uri.rpartition("#")
    return (file, int(name[1:])) if file and name[:1] == "L" and name[1:].isdecimal() else (uri, 0)
