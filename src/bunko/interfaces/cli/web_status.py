"""Print the tools of web pages: their sites, unfinished crawls and problems."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bunko.interfaces.cli.language import translate_reason
from bunko.interfaces.cli.options import escape_controls, print_stderr, say
from bunko.interfaces.text import format_count

if TYPE_CHECKING:
    from bunko.library.web import UnfinishedCrawl, WebToolStatus

_MAX_PROBLEMS = 10
_MAX_HOSTS = 5


def show_web_tools(tools: Sequence[WebToolStatus], flags: str) -> None:
    """Show tools of web pages on a terminal."""
    from bunko.interfaces.cli.tables import Column, format_age, number, show_table

    if not tools:
        say("No web pages yet. Add one with: bunko web add URL")
        return
    columns = (
        Column("tool", min_width=24),
        number("pages"),
        number("chunks", 4),
        Column("sites", priority=2, min_width=20),
        Column("oldest check", "keep", 3),
    )
    rows = (
        (
            tool_status.tool.name,
            f"{tool_status.pages:,}",
            f"{tool_status.chunks:,}",
            format_hosts(tool_status),
            format_age(tool_status.oldest_check or "never"),
        )
        for tool_status in tools
    )
    show_table(columns, rows)
    for tool_status in tools:
        for line in web_remarks(tool_status, flags):
            print_stderr(line)


def format_hosts(tool_status: WebToolStatus) -> str:
    """Return the sites with most pages, and how many pages each has."""
    hosts = ", ".join(f"{escape_controls(host)} ({pages})" for host, pages in tool_status.hosts[:_MAX_HOSTS])
    return hosts + (", …" if len(tool_status.hosts) > _MAX_HOSTS else "")


def web_remarks(tool_status: WebToolStatus, flags: str) -> list[str]:
    """Return remarks about unfinished crawls and the first problems of a tool."""
    remarks = []
    for crawl in tool_status.unfinished_crawls:
        pages = format_count(crawl.waiting_pages, "page")
        command_line = f"{shlex.join(_crawl_arguments(crawl))} -n {shlex.quote(tool_status.tool.name)}{flags}"
        remarks.append(f"a crawl is unfinished, with {pages} to fetch; continue with: {command_line}")
    remarks += [
        f"{escape_controls(problem.uri)}: {translate_reason(problem.reason)}"
        for problem in tool_status.problems[:_MAX_PROBLEMS]
    ]
    if len(tool_status.problems) > _MAX_PROBLEMS:
        remarks.append(f"… and {len(tool_status.problems) - _MAX_PROBLEMS} more; use --json to list all.")
    return remarks


def _crawl_arguments(crawl: UnfinishedCrawl) -> list[str]:
    rules = crawl.rules
    arguments = ["bunko", "web", "crawl", crawl.url, *([rules["pattern"]] if rules.get("pattern") else [])]
    arguments += ["--max-pages", str(rules.get("max_pages", 50)), "--depth", str(rules.get("depth", 1))]
    return arguments + (["--sitemap"] if rules.get("sitemap") else [])
