"""Print the summary and problems of an import."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.cli.terminal.printing import escape_controls, print_json, print_stderr, say
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.text import format_count
from bunko.messages import translate, translate_reason

if TYPE_CHECKING:
    from bunko.types import Report

_MAX_PROBLEMS = 10
_MAX_SKIPPED = 3


def print_report(report: Report, *, as_json: bool) -> None:
    """Print the summary to stdout and problems to stderr; exit with an error code if a tool failed."""
    if as_json:
        print_json(report_to_dict(report))
    else:
        say(summary_line(report))
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)


def exit_on_failures(report: Report) -> None:
    """Print why tools failed, and exit with the code of the first failure if there is one."""
    for failure in report.failures:
        print_stderr(f"{translate('Error')}: {failure.tool}: {translate(failure.message)}")
        if failure.hint:
            print_stderr(failure.hint)
    if report.failures:
        sys.exit(EXIT_CODES[report.failures[0].code])


def summary_line(report: Report) -> str:
    """Return the counts of an import in one line."""
    parts = [f"{report.added} added", f"{report.updated} updated", f"{report.deleted} deleted"]
    if report.moved:
        parts.append(f"{report.moved} moved")
    parts += [f"{report.unchanged} unchanged", f"{format_count(report.total_chunks, 'chunk')} in total"]
    return ", ".join(parts)


def problem_lines(report: Report) -> Iterator[str]:
    """Yield the notices and the first problems of an import, and the number of further problems."""
    yield from report.notices
    if report.problems:
        count = sum(problem.files for problem in report.problems)
        yield f"{format_count(count, 'document', number_format=',')} not indexed, or only in part:"
    for problem in report.problems[:_MAX_PROBLEMS]:
        tool = f"{problem.tool}: " if problem.tool else ""
        yield f"  {tool}{escape_controls(problem.uri)}: {translate_reason(problem.reason)}"
    if len(report.problems) > _MAX_PROBLEMS:
        yield f"  … and {len(report.problems) - _MAX_PROBLEMS} more; use --json to list all."
    if report.skipped_folders:
        yield skipped_line(report.skipped_folders)


def skipped_line(folders: Sequence[str]) -> str:
    """Return how many folders were skipped by their names, the first of them, and how to read one."""
    named = ", ".join(escape_controls(folder) for folder in folders[:_MAX_SKIPPED])
    more = f", … and {len(folders) - _MAX_SKIPPED} more" if len(folders) > _MAX_SKIPPED else ""
    count = "1 folder by its name" if len(folders) == 1 else f"{len(folders):,} folders by their names"
    return (
        f"Skipped {count} (scanner.exclude_dirs): {named}{more}."
        f" To read one, add it by itself: bunko add {shlex.quote(escape_controls(folders[0]))}"
    )
