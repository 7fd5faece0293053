"""Import a file or folder of memos, or standard input, into the tool `memos`."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from bunko.errors import LibraryReadOnly, SettingsError, SourceError
from bunko.library.library import Library
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools.assistant_names import safe_name
from bunko.readers.line_stream import read_lines
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.sources.memos import EXTENSIONS
from bunko.types import Report, Tool
from bunko.types.tool_options import ToolOptions

MEMOS_TOOL = "memos"


def choose_tools(library: Library, sources: Sequence[Path | BinaryIO]) -> dict[str, Path | BinaryIO]:
    """Return sources by the names of their tools: the one they have, else `memos` for one and new ones for others.

    Raise SourceError if one of them does not exist.
    """
    for source in sources:
        if isinstance(source, Path) and not source.expanduser().exists():
            raise SourceError(f"There is no file or folder {source}", hint="Check the path.")
    by_path = {source.expanduser().resolve() if isinstance(source, Path) else None: source for source in sources}
    tools = [tool for tool in library.tools() if tool.kind == "memos"]
    names: dict[Path | None, str] = {}
    for path in by_path:
        if tool := next((tool for tool in tools if _has_source(library, tool, path)), None):
            names[path] = tool.name
    for path in [path for path in by_path if path not in names]:
        taken = names.values()
        names[path] = MEMOS_TOOL if MEMOS_TOOL not in taken else _free_name(library, path, taken)
    return {name: by_path[path] for path, name in names.items()}


def import_memos(
    library: Library,
    source: Path | BinaryIO,
    *,
    name: str = MEMOS_TOOL,
    vectors: bool = True,
    rebuild: bool = False,
    replace_source: bool = False,
    observer: Observer = NO_OBSERVER,
) -> Report:
    """Import the changes of a file or folder of memos, or everything if `rebuild` or a different `vectors` asks for it.

    The tool has the given name. A stream is copied into the library first. The memos of another source are removed
    only with `replace_source`; else that is an error. Whether the tool has vectors is stored with it, so that searches
    know it too.
    """
    path = source if isinstance(source, Path) else None
    tool = _find_tool(library, path, name)
    if tool is not None and tool.kind == "folder":
        raise SettingsError(
            f"The tool {tool.name!r} of this library indexes a folder of documents",
            hint="Choose another library with --output, or delete the tool: bunko tool delete -n memos.",
        )
    if not replace_source and (sentence := replaced_memos(library, path, name)):
        raise SettingsError(f"The tool {sentence}", hint=f"To replace them, add --yes. {keep_both_hint(library, path)}")
    description = _describe(path)
    path = source if isinstance(source, Path) else store_input(library.paths, source)
    embedder = "" if vectors else "none"
    if tool is None:
        options = ToolOptions(embedder=embedder or None)
        tool = library.tools.add(name, description, path, kind="memos", options=options)
    elif Path(tool.source) != path.expanduser().resolve():
        moved = replace(tool, source=str(path.expanduser().resolve()))
        if library.documents.stored.uris(tool.id, limit=1) and not library.maintenance.count_importable(moved):
            raise SourceError(
                f"No memos found in {path}, so those of {tool.source} are kept",
                hint=f"Give a file or folder with memos: {', '.join(EXTENSIONS)}, or a ChangeLog. Folders named in"
                " scanner.exclude_dirs are skipped.",
            )
        has_default_description = tool.description in (_describe(Path(tool.source)), _describe(None))
        tool = library.tools.update(
            tool.name, source=path, description=description if has_default_description else None
        )
    embedder_changed = (tool.options.embedder or "") != embedder
    report = library.import_tools(
        [tool.name],
        "replace" if rebuild or (embedder_changed and tool.is_built) else "update",
        options_of=lambda tool: replace(tool.options, embedder=embedder),
        observer=observer,
    )
    report.problems.sort(key=lambda problem: _file_position(problem.uri))
    return report


def replaced_memos(library: Library, source: Path | None, name: str = MEMOS_TOOL) -> str:
    """Return a sentence if importing a source would remove the memos of another; None is standard input."""
    tool = _find_tool(library, source, name)
    count = library.stats.totals(tool.id).documents if tool else 0
    if tool is None or not count or (source and not source.expanduser().exists()):
        return ""
    memos = "its only memo" if count == 1 else f"its {count:,} memos"
    return (
        ""
        if _has_source(library, tool, source)
        else f"{MEMOS_TOOL!r} indexes {tool.source}; {source or 'standard input'} would replace {memos}"
    )


def _has_source(library: Library, tool: Tool, source: Path | None) -> bool:
    """Return whether a tool holds the memos of a source; None is standard input."""
    if source is None:
        return Path(tool.source).parent == input_folder(library.paths).resolve()
    return Path(tool.source) == source.expanduser().resolve()


def keep_both_hint(library: Library, source: Path | None) -> str:
    """Return how to import a source without replacing another; None is standard input."""
    if source is None:
        return "To keep both, save standard input to a file and add it with: bunko tool add --kind memos."
    name = _free_name(library, source.expanduser().resolve())
    flags = library.paths.cli_arguments() if library.paths.from_flag else []
    add = ["bunko", "tool", "add", "--kind", "memos", "-n", name, "-d", _describe(source), "-s", str(source), *flags]
    commands = f"  {shlex.join(add)}\n  {shlex.join(['bunko', 'import', '-n', name, *flags])}"
    return f"To keep both, make the new ones a tool of their own:\n{commands}"


def _free_name(library: Library, path: Path | None, taken: Collection[str] = ()) -> str:
    """Return a name for the tool of a source that no other has; None is standard input."""
    names = {name.casefold() for name in (*(tool.name for tool in library.tools()), *taken)}
    plain = safe_name(path.stem if path else "stdin").lower() or "notes"
    return next(name for name in (plain, *(f"{plain}-{number}" for number in range(2, 1000))) if name not in names)


def _describe(source: Path | None) -> str:
    return f"Dated memos in {source.name}" if source else "Dated memos from standard input"


def _find_tool(library: Library, source: Path | None, name: str) -> Tool | None:
    """Return the tool of a name, else a tool of these memos, which may be that tool under a new name."""
    tools = library.tools()
    by_source = (tool for tool in tools if tool.kind == "memos" and _has_source(library, tool, source))
    return next((tool for tool in tools if tool.name == name), None) or next(by_source, None)


def _file_position(uri: str) -> tuple[str, int]:
    """Return the sort key of a problem by its line in its file: line 8 before line 21."""
    file, _, name = uri.rpartition("#")
    return (file, int(name[1:])) if file and name[:1] == "L" and name[1:].isdecimal() else (uri, 0)


INPUT_SUFFIXES = (".jsonl", ".md", ".txt")
_MAX_LINE_CHARS = 1_000_000  # of the lines that show the format
_PARTIAL_SUFFIX = ".partial"
_PARTIAL_SECONDS = 3600  # an older file was left by a process that was killed


def input_folder(paths: LibraryPaths) -> Path:
    """Return the folder for memos from standard input."""
    return paths.database.with_name(f"{paths.database.name}.stdin") if paths.is_file_path else paths.folder / "stdin"


def store_input(paths: LibraryPaths, stream: BinaryIO) -> Path:
    """Copy a stream to a file named by its format, in the place of the one before; raise SourceError if it is empty."""
    folder = input_folder(paths)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(suffix=_PARTIAL_SUFFIX, dir=folder)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                shutil.copyfileobj(stream, file)
                path = folder / f"stdin{_detect_suffix(file)}"
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        for other in folder.iterdir():
            is_left_over = other.suffix == _PARTIAL_SUFFIX and other.stat().st_mtime < time.time() - _PARTIAL_SECONDS
            if is_left_over or (other.stem == path.stem and other != path):
                other.unlink(missing_ok=True)
    except OSError as error:
        raise LibraryReadOnly(
            f"{folder} cannot be written: {error.strerror or error}",
            hint="Check who owns the folder and whether its disk is full, or choose another library with --output.",
        ) from error
    return path


def _detect_suffix(file: BinaryIO) -> str:
    """Return the suffix for the format of a file: JSON lines, Markdown, or text such as a changelog."""
    size = file.tell()
    file.seek(0)
    first_line = ""
    for line in read_lines(file, size, _MAX_LINE_CHARS).lines if size else ():
        stripped = line.strip()
        first_line = first_line or stripped
        if stripped and not stripped.startswith("#"):
            if stripped.startswith("{"):
                return ".jsonl"
            return ".md" if first_line.startswith(("#", "---", "+++")) else ".txt"
    if not first_line:
        raise SourceError("Standard input is empty", hint="Pipe memos into it: bunko build --input - < ~/ChangeLog.")
    return ".md"
