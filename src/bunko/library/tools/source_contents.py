"""Scan the source of a tool before its first import, and say what is in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools.nothing_found import survey_source
from bunko.readers import format_label
from bunko.sources import plugin_errors, section_of
from bunko.sources.survey import Survey
from bunko.types import ExcerptEntry, Problem, Tool

if TYPE_CHECKING:
    from bunko.library.tools.build_config import ToolConfig


@dataclass(frozen=True, slots=True)
class SourceContents:
    """The documents of a source."""

    documents: int
    formats: dict[str, int]  # documents by what people call their format, most frequent first; empty for entries
    first_date: str  # of entries; empty if they have no dates
    last_date: str
    survey: Survey  # of the files that are not read; empty for a file, and for files that were chosen by patterns
    problems: list[Problem]


def inspect_source(config: ToolConfig, tool: Tool, paths: LibraryPaths) -> SourceContents:
    """Return what an import of a tool's source would find; nothing is stored."""
    source = config.source(tool)
    with plugin_errors(tool.kind):
        scan = source.scan({})
    is_worth_counting = Path(tool.source).is_dir() and not (tool.options.include and scan.added)
    survey = survey_source(config, tool, paths) if is_worth_counting else Survey()
    if section_of(tool.kind) == "memos":
        count, problems = 0, [*scan.problems]
        for entry in scan.added:
            if isinstance(entry, ExcerptEntry):
                if entry.problem:
                    problems.append(Problem(entry.uri, entry.problem))
                else:
                    count += 1
        return SourceContents(count, {}, *scan.dates, survey, problems)
    suffixes = Counter(
        ".mbox" if isinstance(entry, ExcerptEntry) else PurePosixPath(entry.uri).suffix.lower() for entry in scan.added
    )
    formats = Counter[str]()
    for suffix, count in suffixes.items():
        formats[format_label(f"x{suffix}")] += count
    ordered = dict(sorted(formats.items(), key=lambda item: (-item[1], item[0].casefold())))
    return SourceContents(len(scan.added), ordered, "", "", survey, scan.problems)
