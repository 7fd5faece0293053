"""Render tables for a terminal with Rich; each has a plain form for pipes elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from bunko.interfaces.cli.terminal.columns import Column, display_path, format_age, local_time, number
from bunko.interfaces.cli.terminal.printing import escape_controls
from bunko.interfaces.cli.terminal.status_text import (
    embedder_usage,
    index_text,
    last_import_text,
    length_summary,
    page_summary,
    problem_lines,
    problem_summary,
    source_text,
    state_text,
    tool_facts,
    tool_remarks,
    unused_lines,
)
from bunko.interfaces.cli.terminal.tables import cell_width, new_console, plain_text, print_message, show_table
from bunko.interfaces.text import format_count, format_size
from bunko.library.tools.assistant_names import shown_name
from bunko.messages import translate

if TYPE_CHECKING:
    from bunko.library.admin.doctor import Finding
    from bunko.library.admin.provider_status import ProviderStatus
    from bunko.library.admin.status import LibraryStatus, ToolDetails, ToolStatus
    from bunko.types import Tool
    from bunko.types.records import ListedDocument

# Of the width of a terminal: longer paths are printed whole, and their titles on the next line.
_PATH_SHARE = 0.4
_DATE_CELLS, _GAP, _MIN_TITLE_CELLS = 12, 2, 8
_MAX_BAR_CELLS = 40
_EIGHTHS: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")
_STATE_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}
# A name is typed into the next command, so it is cut only if it is much longer than others.
_TOOL_COLUMN = Column("tool", min_width=24)


def show_status(status: LibraryStatus, flags: str = "") -> None:
    """Show the tools and the size of a library."""
    console = new_console()
    console.print(plain_text(translate(f"Library {display_path(status.location)}"), "bold"), soft_wrap=True)
    if not status.tools:
        print_message("No tools yet. Add one with: bunko tool add", console=console)
        return
    columns = (
        _TOOL_COLUMN,
        Column("state", "keep"),
        number("documents", 2),
        number("chunks", 5),
        number("vectors", 7),
        number("size", 6),
        Column("last import", "keep", 3),
        Column("source", "path", 4, min_width=16),
    )
    console.print()
    rows = (
        (
            tool_status.tool.name,
            _styled_state(tool_status),
            f"{tool_status.totals.documents:,}",
            f"{tool_status.totals.chunks:,}",
            f"{tool_status.totals.vectors:,}",
            format_size(tool_status.bytes),
            format_age(last_import_text(tool_status)),
            display_path(_translate_source(source_text(tool_status.tool))),
        )
        for tool_status in status.tools
    )
    show_table(columns, rows, console=console)
    console.print()
    print_message(f"{format_size(status.bytes + status.derived_bytes)} on disk", "dim", console=console)
    if status.index_location:
        print_message(f"index: {index_text(status)}", "dim", console=console)
    for line in unused_lines(status):
        print_message(line, "dim", console=console)
    for name, usage in embedder_usage(status):
        print_message(f"{name}: {translate(usage)}", "dim", console=console)
    for tool_status in status.tools:
        for line in (*tool_remarks(tool_status, flags), *problem_summary(tool_status, flags)):
            print_message(f"{tool_status.tool.name}: {line}", "yellow", console=console)


def _styled_state(tool_status: ToolStatus) -> Text:
    if tool_status.source_state == "ok":
        return Text(translate(state_text(tool_status)), style="" if tool_status.tool.active else "yellow")
    state = f"source {tool_status.source_state}"
    style = "dim" if tool_status.source_state == "elsewhere" else "red"
    return Text(translate(state if tool_status.tool.active else f"disabled, {state}"), style=style)


def show_details(details: ToolDetails, flags: str = "") -> None:
    """Show a tool in detail: facts, chunk lengths, a page of its documents, and problems."""
    console = new_console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _readable_facts(details):
        facts.add_row(plain_text(translate(name)), plain_text(value))
    console.print(facts)
    if details.chunk_lengths:
        console.print()
        print_message(f"chunk lengths: {length_summary(details)}", console=console)
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right")
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(justify="right")
        highest = max(length_bin.count for length_bin in details.chunk_lengths.bins)
        for length_bin in details.chunk_lengths.bins:
            share = length_bin.count / highest
            # The smallest part of a bar is an eighth; one chunk among many must not look like none.
            cells, eighths = divmod(max(1 if share else 0, round(share * _MAX_BAR_CELLS * 8)), 8)
            bar = "█" * cells + _EIGHTHS[eighths]
            if console.options.ascii_only:
                bar = "#" * max(1 if share else 0, round(share * _MAX_BAR_CELLS))
            table.add_row(f"{length_bin.low:,}–{length_bin.high:,}", bar, f"{length_bin.count:,}")
        console.print(table)
    columns = (
        Column("document", "path", min_width=20),
        Column("title", priority=2),
        number("chunks", 3),
        number("characters", 5),
        Column("language", "keep", 4),
    )
    rows = (
        (
            escape_controls(document.uri),
            " ".join(document.title.split()),
            f"{document.chunks:,}",
            f"{document.characters:,}",
            document.language,
        )
        for document in details.documents
    )
    console.print()
    if details.documents:
        show_table(columns, rows, console=console)
    is_whole = details.page == details.pages == 1
    documents = format_count(details.status.totals.documents, "document", number_format=",")
    print_message(documents if is_whole else page_summary(details), "dim", console=console)
    for line in (*tool_remarks(details.status, flags), *problem_lines(details.status.problems)):
        print_message(line, "yellow", console=console)


def _readable_facts(details: ToolDetails) -> Iterator[tuple[str, str]]:
    for name, value in tool_facts(details):
        if name in ("created", "last import", "last check"):
            time, age = local_time(value), format_age(value)
            yield name, age if time == value else time if time.startswith(age) else f"{time} ({age})"
        elif name == "source":
            yield name, display_path(_translate_source(value))
        elif name == "built with":  # all of it is in the JSON
            chunker = details.status.tool.built.chunker or {}
            kind = str(chunker.get("kind", "unknown"))
            size, unit = (
                chunker.get("size" if kind == "tokens" else "max_chars"),
                "tokens" if kind == "tokens" else "characters",
            )
            yield "chunker", (translate(f"{kind}, at most {size:,} {unit} each") if isinstance(size, int) else kind)
        elif name == "changes":
            changed = [count for count in value.split(", ") if not count.startswith("0 ")]
            yield name, translate(", ".join(changed) or "none since the last import")
        else:
            yield name, value


def show_tools(tools: list[Tool]) -> None:
    """Show tools with the names that assistants see, their state, source and description."""
    columns = (
        _TOOL_COLUMN,
        Column("state", "keep", 2),
        Column("description", priority=3, min_width=20),
        Column("source", "path", 4, min_width=16),
        Column("last import", "keep", 5),
    )
    rows = (
        (
            shown_name(tool),
            translate("active") if tool.active else Text(translate("disabled"), style="yellow"),
            tool.description,
            display_path(_translate_source(source_text(tool))),
            format_age(tool.imported_at or "never"),
        )
        for tool in tools
    )
    show_table(columns, rows)


def show_findings(findings: list[Finding]) -> None:
    """Show the problems that the checks found, and for a subject without any how many checks passed."""
    console = new_console()
    columns = (Column("", "keep"), Column("check", min_width=24), Column("result", "wrap", min_width=30))
    show_table(columns, _finding_rows(findings), console=console)
    problems = [finding for finding in findings if finding.state != "ok"]
    console.print()
    for finding in problems:
        if finding.hint:
            print_message(f"{translate_subject(finding)}: {translate(finding.hint)}", console=console)
    counts = Counter(finding.state for finding in findings)
    totals = [format_count(counts[state], state) for state in ("error", "warning") if counts[state]]
    style = _STATE_STYLES["error" if counts["error"] else "warning" if problems else "ok"]
    print_message(f"{', '.join(totals) or 'No problems'}; --json lists all checks.", style, console=console)


def _finding_rows(findings: list[Finding]) -> Iterator[tuple[str | Text, ...]]:
    for subject in dict.fromkeys(finding.subject for finding in findings):
        own_findings = [finding for finding in findings if finding.subject == subject]
        passed = [finding.message for finding in own_findings if finding.state == "ok"]
        if len(passed) == len(own_findings):
            message = passed[0] if len(passed) == 1 else f"{len(passed)} checks passed"
            yield plain_text("ok", _STATE_STYLES["ok"]), translate_subject(own_findings[0]), translate(message)
        for finding in own_findings:
            if finding.state != "ok":
                state = plain_text(translate(finding.state), _STATE_STYLES[finding.state])
                yield state, translate_subject(finding), display_path(translate(finding.message))


def translate_subject(finding: Finding) -> str:
    """Return what a finding is about: a tool, or the library or the packages in the user's language."""
    return translate(finding.subject) if finding.subject in ("library", "packages") else finding.subject


def _translate_source(source: str) -> str:
    return translate(source) if source in ("the web", "no folder") else source


def show_settings(rows: list[tuple[str, str, str]]) -> None:
    """Show settings and their origins."""
    columns = (
        Column("setting", "keep"),
        Column("value", "wrap", min_width=20),
        Column("origin", "path", 2, min_width=14),
    )
    rows_in_language = (
        (
            key,
            translate(value) if value == "not set" else value,
            plain_text(display_path(translate(origin)), "dim" if origin == "default" else "cyan"),
        )
        for key, value, origin in rows
    )
    show_table(columns, rows_in_language)


def show_providers(statuses: list[ProviderStatus]) -> None:
    """Show the embedding providers, then what those that cannot be used need."""
    console = new_console()
    columns = (
        Column("embedder", min_width=16),
        Column("state", "keep"),
        Column("model", priority=2, min_width=36),
        Column("description", priority=3, min_width=40),
        Column("key", "keep", 4),
        Column("install", "keep", 5),
    )
    states = {  # whether it is used, and whether it can be
        (True, False): Text(translate("in use, not ready"), style="red"),
        (False, False): Text(translate("not ready"), style="dim"),
        (True, True): Text(translate("in use"), style="green"),
        (False, True): Text(translate("ready")),
    }
    rows = (
        (
            status.name,
            states[status.is_used, not status.unavailable_reason],
            "" if status.model.isdecimal() else status.model,  # the bundled model has only a version
            translate(status.description),
            status.key_name,
            status.install_command,
        )
        for status in statuses
    )
    show_table(columns, rows, console=console)
    unavailable = [status for status in statuses if status.unavailable_reason]
    if unavailable:
        console.print()
    for status in unavailable:
        reason = " ".join(translate(status.unavailable_reason).split())
        print_message(f"{status.name}: {reason}", "yellow" if status.is_used else "", console=console)


def show_documents(documents: Sequence[tuple[Tool, ListedDocument]], count: str) -> None:
    """Show each document with its date, its whole path, and as much of title and tags as fits, in columns."""
    console = new_console()
    paths = [escape_controls(document.uri) for _, document in documents]
    longest = max(map(cell_width, paths))
    title_start = _DATE_CELLS + min(longest, int(console.width * _PATH_SHARE)) + _GAP
    if console.width - title_start < _MIN_TITLE_CELLS:
        title_start = _DATE_CELLS  # below each path
    several_tools = len({tool.name for tool, _ in documents}) > 1
    for path, (tool, document) in zip(paths, documents, strict=True):
        line = Text.assemble((f"{document.date[:10]:{_DATE_CELLS}}", "green"), (path, "bold"))
        details = Text.assemble(
            escape_controls(" ".join(document.title.split())),
            ("  " + " ".join(f"#{escape_controls(tag)}" for tag in document.tags) if document.tags else "", "cyan"),
            (f"  {escape_controls(tool.name)}" if several_tools else "", "magenta"),
        )
        if details:
            is_beside = line.cell_len + _GAP <= title_start
            line.append(" " * (title_start - line.cell_len) if is_beside else "\n" + " " * title_start)
            details.truncate(max(0, console.width - title_start), overflow="ellipsis")
            line.append_text(details)
        console.print(line, soft_wrap=True)
    console.print(Text(translate(count), style="dim"))
