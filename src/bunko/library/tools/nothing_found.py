"""Say why an import of a folder found nothing, and what reads the files that are there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bunko import readers, sources
from bunko.library.opening.paths import LibraryPaths
from bunko.readers import code
from bunko.sources import jsonl, memos
from bunko.sources.survey import Survey, is_text, survey_folder
from bunko.text.labels import clean_label
from bunko.types import Report, Tool

if TYPE_CHECKING:
    from bunko.library.tools.build_config import ToolConfig

_MAX_ENDINGS = 6
_MAX_FOLDERS = 3
_MAX_NAME_LENGTH = 80


def survey_source(config: ToolConfig, tool: Tool, paths: LibraryPaths) -> Survey:
    """Count the files of a tool's folder by whether they are read."""
    scanner, kind = config.scan_settings(tool), sources.find_kind(tool.kind)
    endings = scanner.endings() if kind is None or kind.uses_extensions else memos.EXTENSIONS
    return survey_folder(Path(tool.source), endings=endings, exclude_dirs=scanner.exclude_dirs, own_folder=paths.folder)


def notices_about_nothing(config: ToolConfig, tool: Tool, report: Report, paths: LibraryPaths) -> list[str]:
    """Return why a tool has no documents after an import; problems with its files are reported already."""
    if report.problems or report.interrupted or not Path(tool.source or "-").is_dir():
        return []
    command = "" if paths.docs_dir else f"bunko tool update -n {shlex.quote(tool.name)}{paths.cli_flags()}"
    message, hint = explain_nothing(tool, survey_source(config, tool, paths), command)
    return [f"{message}. {hint}".rstrip()]


def explain_nothing(tool: Tool, survey: Survey, command: str) -> tuple[str, str]:
    """Return why nothing of a folder is read, and what to do; `command` takes --include, or is empty."""
    kind = sources.find_kind(tool.kind)
    is_folder = kind is None or kind.uses_extensions
    opening = f"There is nothing to index in {tool.source}" if is_folder else f"No memos found in {tool.source}"
    reasons = []
    if survey.unread:
        reasons.append(f"its files are not read: {count_endings(survey)}")
    if survey.readable:
        files = "1 file is" if survey.readable == 1 else f"{survey.readable:,} files are"
        has_patterns = tool.options.include or tool.options.exclude
        reasons.append(f"{files} {'left out by --include, --exclude or' if has_patterns else 'ignored by'} .gitignore")
    if survey.skipped_folders:
        names = _join([clean_label(name, _MAX_NAME_LENGTH) for name in survey.skipped_folders[:_MAX_FOLDERS]])
        folders, are = ("folder", "is") if len(survey.skipped_folders) == 1 else ("folders", "are")
        reasons.append(f"the {folders} {names} {are} skipped (scanner.exclude_dirs)")
    if not is_folder:
        hint = f"Memos are in files ending in {', '.join(memos.EXTENSIONS)}, or in a ChangeLog."
    else:
        hint = " ".join(_reading_hints(survey, command))
    return f"{opening}: {'; '.join(reasons) or 'it has no files'}", hint


def count_endings(survey: Survey) -> str:
    """Return how many files of each ending are not read."""
    ordered = sorted(survey.unread.items(), key=lambda item: (not item[0], -item[1], item[0]))
    counts = [f"{count:,} {ending or 'without an ending'}" for ending, count in ordered[:_MAX_ENDINGS]]
    more = len(ordered) - len(counts)
    return ", ".join(counts) + (f" and {more} more endings" if more > 1 else ", …" if more else "")


def describe_unread(survey: Survey) -> str:
    """Return how many files of each ending are not read, and what reads those of a known format."""
    hints = list(_format_hints(survey, ""))
    return f"{count_endings(survey)}. {' '.join(hints)}" if hints else count_endings(survey)


def _reading_hints(survey: Survey, command: str) -> Iterable[str]:
    """Yield what reads the endings that were seen; nothing about files that are not text."""
    yield from _format_hints(survey, command)
    readable_endings = {*jsonl.EXTENSIONS, *code.suffixes(), *_reader_suffixes()}
    texts = [
        ending for ending in _endings(survey) if ending not in readable_endings and is_text(survey.examples[ending])
    ]
    if texts:
        yield _hint(texts, " as plain text", command)


def _format_hints(survey: Survey, command: str) -> Iterable[str]:
    """Yield what reads the endings of entries, source code and other known formats."""
    endings = _endings(survey)
    for ending in [ending for ending in endings if ending in jsonl.EXTENSIONS][:1]:
        yield f"Read {ending}: bunko add {shlex.quote(str(survey.examples[ending]))}."
    programs = [ending for ending in endings if ending in code.suffixes() and ending not in jsonl.EXTENSIONS]
    if programs:
        yield _hint(programs, "", command, "set scanner.source_code to true")
    others = {*jsonl.EXTENSIONS, *programs}
    formats = [ending for ending in endings if ending in _reader_suffixes() and ending not in others]
    if formats:
        yield _hint(formats, "", command)


def _endings(survey: Survey) -> list[str]:
    return sorted(filter(None, survey.unread))


def _reader_suffixes() -> set[str]:
    all_readers = (*readers.builtin_readers().values(), *readers.plugin_readers().values())
    return {suffix for reader in all_readers for suffix in reader.suffixes}


def _hint(endings: Sequence[str], manner: str, command: str, setting: str = "") -> str:
    endings = endings[:_MAX_ENDINGS]
    setting = setting or f"add {'it' if len(endings) == 1 else 'them'} to scanner.file_extensions"
    patterns = "".join(f" --include '*{ending}'" for ending in endings)
    return f"Read {_join(endings)}{manner}: {f'{command}{patterns}, or ' if command else ''}{setting}."


def _join(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
