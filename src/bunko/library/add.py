"""Add folders and files as tools: name them after their paths, import them and describe them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import SettingsError, SourceError, UnknownName
from bunko.library.tools import catalog
from bunko.library.tools.nothing_found import explain_nothing
from bunko.library.tools.source_contents import SourceContents
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.sources.detect import DetectedSource
from bunko.types import Report, Tool
from bunko.types.tool_options import ToolOptions

if TYPE_CHECKING:
    from bunko.library.library import Library

_MAX_NAME_LENGTH = 40
_FALLBACK_NAMES = {"memos": "notes", "jsonl": "entries"}
_NO_FOLDERS = ("/*/",)
_COMPARED_DOCUMENTS = 1000
_SEPARATORS = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class Addition:
    """A source to add: the tool that it becomes, or already is, and what it holds."""

    source: DetectedSource
    tool: Tool  # its id is 0 if it is new
    contents: SourceContents
    is_part: bool = False  # whether the tool indexes the documents already, among others

    @property
    def is_new(self) -> bool:
        """Return whether the tool does not exist yet."""
        return not self.tool.id


def plan_addition(
    library: Library,
    source: DetectedSource,
    *,
    name: str | None = None,
    description: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    is_reserved: Callable[[str], bool] = lambda name: False,
    used_names: Sequence[str] = (),
) -> Addition:
    """Return what adding a source would do; raise if there is nothing to index. Nothing is stored.

    A source that is a tool already keeps its name and, unless others are given, its description and patterns.
    """
    existing, is_part = _find_existing(library, source)
    if existing is not None:
        if name is not None and catalog.find_tool([existing], name) is None:
            rename = shlex.join(["bunko", "tool", "rename", existing.name, name]) + library.paths.cli_flags()
            raise SettingsError(
                f"{source.label} is already the tool {existing.name!r}",
                hint=f"To update it, leave out -n. To rename it: {rename}",
            )
        options = existing.options
        if not is_part:
            options = replace(
                options, include=tuple(include) or options.include, exclude=tuple(exclude) or options.exclude
            )
        tool = replace(existing, options=options, description=description or existing.description)
        return Addition(source, tool, library.maintenance.inspect_source(tool), is_part)
    if name is not None:
        catalog.check_new_name(library.store, name)
    elif moved := _find_moved(library, source):
        path, flags = shlex.quote(source.label), library.paths.cli_flags()
        raise SettingsError(
            f"{source.label} has the documents of {moved.name}, whose folder {moved.source} is missing",
            hint=f"If it has moved: bunko tool update -n {shlex.quote(moved.name)} -s {path}{flags}\n"
            f"To add it as a tool of its own: bunko add {path} -n NAME{flags}",
        )
    options = ToolOptions(include=tuple(include), exclude=tuple(exclude))
    if source.files:
        # The folders beside a single document need not be searched for it.
        options = ToolOptions(include=source.patterns(), exclude=_NO_FOLDERS)
    tool = Tool(
        name or _choose_name(library, source, is_reserved, used_names),
        source.kind,
        description or _placeholder(source),
        str(source.path),
        options=options,
    )
    contents = library.maintenance.inspect_source(tool)
    if not contents.documents and source.kind == "folder" and not source.files:
        memos = replace(tool, kind="memos")  # a folder of ChangeLogs or JSON lines has no documents
        memo_contents = library.maintenance.inspect_source(memos)
        if memo_contents.documents:
            return Addition(source, memos, memo_contents)
    if not contents.documents:
        raise _nothing_error(library, source, tool, contents)
    return Addition(source, tool, contents)


def import_addition(
    library: Library, addition: Addition, *, observer: Observer = NO_OBSERVER
) -> tuple[Tool, Report, str]:
    """Import a planned addition; return its tool, the report, and a phrase to search for if the tool is new.

    A new tool of which no document can be read is deleted again. One without a description of its own gets one from
    its documents.
    """
    tool = addition.tool
    if addition.is_new:
        tool = library.tools.add(tool.name, tool.description, Path(tool.source), kind=tool.kind, options=tool.options)
    elif tool != library.tools.get(tool.name):
        tool = library.tools.update(
            tool.name,
            description=tool.description,
            include=tool.options.include,
            exclude=tool.options.exclude,
        )
    report = library.import_tools([tool.name], "update", observer=observer)
    if addition.is_new and not report.interrupted and not library.stats.totals(tool.id).documents:
        library.delete_tool(tool.name, observer=observer)
        reason = f": {report.problems[0].uri}: {report.problems[0].reason}" if report.problems else ""
        raise SourceError(f"Nothing in {addition.source.label} could be read{reason}", hint="Nothing was added.")
    phrase = ""
    if tool.description == _placeholder(addition.source) and not report.interrupted:
        tool, phrase = describe_from_documents(library, tool)
    return tool, report, phrase


def _find_existing(library: Library, source: DetectedSource) -> tuple[Tool | None, bool]:
    """Return the tool that indexes a source, and whether the source is only a part of it."""
    tools = library.tools()
    patterns = set(source.patterns())
    for tool in tools:
        is_alike = tool.source == str(source.path) and names_files(tool) == bool(patterns)
        if is_alike and patterns <= set(tool.options.include):
            return tool, bool(patterns) and len(patterns) < len(tool.options.include)
    for tool in tools:
        if patterns and tool.kind == "folder" and tool.source and source.path.is_relative_to(tool.source):
            folder = source.path.relative_to(tool.source)
            uris = [(folder / name).as_posix() for name in source.files]
            if all(library.documents.stored.get(tool.id, uri) for uri in uris):
                return tool, True
    return None, False


def _find_moved(library: Library, source: DetectedSource) -> Tool | None:
    """Return the tool whose folder is missing and most of whose documents are files of a new one."""
    if source.kind != "folder" or source.files:
        return None
    for tool in library.tools():
        if tool.kind != "folder" or not tool.source or Path(tool.source).exists():
            continue
        fingerprints = list(library.documents.stored.fingerprints(tool.id).items())[:_COMPARED_DOCUMENTS]
        same = sum(_file_size(source.path / uri) == fingerprint.size for uri, fingerprint in fingerprints)
        if same and same >= len(fingerprints) / 2:  # some may have changed since
            return tool
    return None


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return -1


def names_files(tool: Tool) -> bool:
    """Return whether a tool is for some documents of its folder, as `DetectedSource.patterns` names them."""
    return tool.kind == "folder" and bool(tool.options.include) and tool.options.exclude == _NO_FOLDERS


def _choose_name(
    library: Library, source: DetectedSource, is_reserved: Callable[[str], bool], used_names: Sequence[str]
) -> str:
    """Return a name for a new tool after its path: valid, and different from all others."""
    if len(source.files) == 1:
        stem = Path(source.files[0]).stem
    else:
        stem = source.path.name if source.kind == "folder" else source.path.stem
    plain = _SEPARATORS.sub("-", stem).strip("-_")[:_MAX_NAME_LENGTH].rstrip("-_")
    used = {name.casefold() for name in (*used_names, *(tool.name for tool in library.tools()))}

    def is_free(name: str) -> bool:
        try:
            catalog.check_new_name(library.store, name)
        except SettingsError:
            return False
        return name.casefold() not in used and not is_reserved(name)

    plain = plain or _FALLBACK_NAMES.get(source.kind, "documents")
    numbered_names = (f"{plain}-{number}" for number in range(2, 10_000))
    return next(name for name in (plain, *numbered_names) if is_free(name))


def _placeholder(source: DetectedSource) -> str:
    """Return the description of a tool until its documents are imported."""
    if source.files:
        return f"Documents: {', '.join(source.files)}"[: catalog.MAX_DESCRIPTION_LENGTH]
    return first_description(source.kind, source.path)


def first_description(kind: str, path: Path) -> str:
    """Return the description of a folder or file until its documents are imported."""
    return f"{'Documents' if kind == 'folder' else 'Entries'} in {path.name or path}"


def describe_from_documents(library: Library, tool: Tool) -> tuple[Tool, str]:
    """Give a tool a description made from its documents; return it and a phrase to search for, if they have any."""
    try:
        proposal = library.maintenance.propose_description(tool.name, with_count=False)
    except UnknownName:  # it has no text
        return tool, ""
    if not proposal.phrases:
        return tool, ""
    tool = library.tools.update(tool.name, description=proposal.description)
    return tool, proposal.phrases[0].text


def _nothing_error(library: Library, source: DetectedSource, tool: Tool, contents: SourceContents) -> SourceError:
    if contents.problems:
        problem = contents.problems[0]
        message = f"There is nothing to index in {source.label}: {problem.uri} {problem.reason}"
        return SourceError(message, hint="Correct this, then add it again.")
    if source.files or not source.path.is_dir():
        return SourceError(
            f"{source.label} is not read: .gitignore excludes it, or its name has no usable ending",
            hint="Rename it, or set scanner.respect_gitignore to false.",
        )
    command = f"bunko add {shlex.quote(source.label)}{library.paths.cli_flags()}"
    message, hint = explain_nothing(tool, contents.survey, command)
    for folder in contents.survey.skipped_folders[:1]:
        path = shlex.quote(str(Path(source.label, folder)))
        hint = f"{hint} To read {folder}, add it by itself: bunko add {path}{library.paths.cli_flags()}".lstrip()
    return SourceError(message, hint=hint or "Put documents into it, or add another folder.")
