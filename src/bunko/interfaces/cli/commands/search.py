"""The `bunko search` command: print the passages that match a query."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.options import (
    SharedOptions,
    current_folder,
    filter_options,
    gather_options,
    names_option,
    read_words,
    shared_options,
)
from bunko.interfaces.cli.terminal.columns import display_path
from bunko.interfaces.cli.terminal.notices import print_empty_library
from bunko.interfaces.cli.terminal.printing import (
    escape_controls,
    is_terminal,
    print_json,
    print_stderr,
    replace_controls,
)
from bunko.interfaces.cli.terminal.progress import show_search_progress
from bunko.interfaces.cli.terminal.result_formats import paths, to_csv, to_json, to_markdown, to_text
from bunko.library.tools.suggested_commands import enable_command
from bunko.messages import translate
from bunko.search.request import SearchRequest, parse_options

if TYPE_CHECKING:
    from bunko.interfaces.result_fields import Tools
    from bunko.library.library import Library
    from bunko.library.searching.page import Page
    from bunko.types import Mode
    from bunko.types.records import Filter
    from bunko.types.tool_options import Extract

# Like grep: scripts can tell "nothing found" from an answer. Errors have codes of their own.
NOTHING_FOUND_EXIT_CODE = 1
# More results of one document hide the others on the first screen.
RESULTS_PER_DOCUMENT = 2


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What `bunko search` was asked for, beside the query."""

    mode: Mode | None
    top_k: int | None
    per_document: int | None
    also: tuple[str, ...]
    passage: str
    names: tuple[str, ...]
    min_score: float | None
    path: str | None
    where: Filter
    extract: Extract | None
    max_chars: int | None
    summary: bool
    rewrite: bool | None
    ranking: tuple[str, ...]
    explain: bool
    no_refresh: bool
    everything: bool
    lines: int | None
    output_format: str | None
    null_ends: bool


@click.command()
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "--mode",
    type=click.Choice(["bm25", "semantic", "hybrid"]),
    help="Search by keywords, vectors, or both. [hybrid]",
)
@click.option(
    "--top-k", "-k", type=click.IntRange(1, 1000), metavar="N", help="Number of results. [5; memos 10, web 3]"
)
@click.option(
    "--per-document",
    type=click.IntRange(0),
    metavar="N",
    help="At most N results of one document; 0 for no limit. [2, if other documents match too]",
)
@click.option(
    "--also",
    multiple=True,
    metavar="WORDS",
    help="Another wording of the question, as the documents may say it; may be repeated.",
)
@click.option("--passage", metavar="TEXT", default="", help="A sentence as it might stand in the answer.")
@names_option("Search only this tool")
@click.option("--min-score", type=float, metavar="N", help="Leave out results with a lower score.")
@click.option("--path", metavar="GLOB", help="Only documents whose path matches: 'guide/**', '*.md'.")
@filter_options
@click.option(
    "--extract",
    type=click.Choice(["chunk", "snippet", "entry", "section", "full"]),
    help="Text to print for each result: its chunk, a snippet around the match, the memo entry, the section, or the"
    " full document. [from the tool, else chunk]",
)
@click.option("--max-chars", type=click.IntRange(20), metavar="N", help="Cut longer texts at the end of a sentence.")
@click.option(
    "--summary",
    is_flag=True,
    help="Print a summary of the results first; by rules, or by a chat model if one is set.",
)
@click.option(
    "--rewrite/--no-rewrite",
    default=None,
    help="Rewrite the query with a chat model first. [from the settings: no]",
)
@click.option(
    "--set",
    "ranking",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of ranking, such as k1=0.9; may be repeated.",
)
@click.option("--explain", is_flag=True, help="Show why each result matches.")
@click.option("--no-refresh", is_flag=True, help="Do not check for changed files first.")
@click.option(
    "--all", "everything", is_flag=True, help="Search all tools, not only the one whose folder is the current folder."
)
@click.option(
    "--lines",
    type=click.IntRange(1),
    metavar="N",
    help="At a terminal, show each result on at most N rows. [6, with --explain 14, with --extract all]",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "paths", "csv", "md"]),
    help="Print text, JSON (as --json does), one path per document, CSV, or a Markdown list of links. [text]",
)
@click.option("--null", "-0", "null_ends", is_flag=True, help="With --format paths: end paths with NUL, for xargs -0.")
@gather_options(SearchOptions)
@shared_options
def command(query: tuple[str, ...], options: SearchOptions, shared: SharedOptions) -> None:
    """Search documents in Japanese and English.

    A "quoted phrase" must be in the text as it is written; a -word or -"phrase" must not be in it. To search for a word
    with a hyphen before it, quote it: "-Wall". The hyphens of re-render, --amend and -x have no special meaning.

    Inside a folder that is indexed, search that folder. A single - reads the query from standard input. The exit code
    is 1 if nothing is found.

    \b
    Example:
      bunko search "環境構築の方法" --docs-dir ~/notes
      bunko search "form validation" --docs-dir ./docs --mode bm25 --explain
      bunko search "予算" -n memos -n notes --since 6m --extract snippet --summary
      bunko search '"form validation" react -angular'
      bunko search "release notes" --format paths -0 | xargs -0 wc -w
    """
    if shared.as_json and options.output_format not in (None, "json"):
        raise click.UsageError(f"--json cannot be used with --format {options.output_format}.")
    output_format = "json" if shared.as_json else options.output_format or "text"
    if options.null_ends and output_format != "paths":
        raise click.UsageError("--null is for --format paths.")
    words = read_words(query)
    if options.everything and options.names:
        raise click.UsageError("--all cannot be used with --name.")
    # The current folder chooses what is searched if no option does.
    use_folder = not (options.everything or options.names or shared.names_library())
    folder = current_folder() if use_folder else None
    if folder and shared.config is None and not shared.library_paths().is_explicit:
        from bunko.library.current_folder import find_indexed_folder

        shared = replace(shared, docs_dir=find_indexed_folder(folder))  # or that of a folder above it
    with shared.open(create=shared.docs_dir is not None) as library:
        library.local_time()  # a wrong search.timezone is an error even if no date is given
        request = _build_request(words, options)
        if folder:
            request = _limit_to_folder(library, request, folder)
        with show_search_progress() as observer:
            page = library.page(request, observer=observer)
        for notice in page.notices:
            if notice not in library.notices:
                print_stderr(notice)
        if page.freshness.pending_changes and library.is_importing():
            location = shlex.join(library.paths.cli_arguments())
            print_stderr(f"Changes are not all indexed yet. Index them with: bunko reindex {location}")
        if not page.results:
            print_empty_library(library, words)
        tools = {tool.name: tool for tool in library.tools()}
        if output_format == "text":
            # Two tools may both have a README.md.
            show_tool_names = not isinstance(request.tool, str) and len(tools) > 1
            _print_page(page, tools, options, show_tool_names=show_tool_names)
        else:
            _print_formatted(page, tools, output_format, null_ends=options.null_ends)
    if not page.results:
        click.get_current_context().exit(NOTHING_FOUND_EXIT_CODE)


def _max_rows(options: SearchOptions) -> int | None:
    """Return how many rows a result may take; a text of an extent that was asked for is shown whole."""
    if options.lines is not None:
        return options.lines
    if options.extract or options.max_chars:
        return None
    return terminal.render_results.DEFAULT_LINES + (terminal.render_results.EXPLANATION_LINES if options.explain else 0)


def _limit_to_folder(library: Library, request: SearchRequest, folder: Path) -> SearchRequest:
    """Return a request for the documents in a folder, and say so; --path chooses among all documents of the tool."""
    from bunko.library.current_folder import disabled_tool_of, find_scope

    scope = find_scope(library, folder)
    if scope is None:
        if disabled := disabled_tool_of(library, folder):
            command = enable_command(library.paths, disabled)
            print_stderr(f"{disabled.name} is disabled, so this folder is not searched. To enable it: {command}")
        return request
    print_stderr(f"Searching this folder: {display_path(str(scope.folder))}. Search everything with --all.")
    where = request.where if request.where.path else replace(request.where, path=scope.path)
    return replace(request, tool=scope.tool, where=where)


def _print_page(page: Page, tools: Tools, options: SearchOptions, *, show_tool_names: bool) -> None:
    if page.rewritten_query:
        click.echo(f"{translate('searched')}: {escape_controls(page.rewritten_query)}\n")
    if page.summary is not None and page.results:
        from bunko.search.summaries import format_summary

        # What comes first is ours; the sentences after it are those of documents or of a chat model.
        head, *sentences = re.split(
            r"^(?=- )|(?<=:\n)", replace_controls(format_summary(page.summary)), flags=re.MULTILINE
        )
        click.echo(translate(head) + "".join(sentences) + "\n")
    if is_terminal():
        terminal.render_results.show_page(
            page, tools=tools, show_tool_names=show_tool_names, max_rows=_max_rows(options)
        )
    else:
        click.echo(to_text(page, tools=tools, show_tool_names=show_tool_names))


def _print_formatted(page: Page, tools: Tools, output_format: str, *, null_ends: bool) -> None:
    if output_format == "json":
        print_json(to_json(page, tools))
        return
    if output_format == "paths":
        for path in paths(page, tools):
            click.echo(f"{path}\0" if null_ends else path, nl=not null_ends)
    elif text := {"csv": to_csv, "md": to_markdown}[output_format](page, tools):
        click.echo(text)


def _build_request(query: str, options: SearchOptions) -> SearchRequest:
    names, per_document = options.names, options.per_document
    return SearchRequest(
        query,
        names[0] if len(names) == 1 else names or None,
        also=options.also,
        passage=options.passage,
        mode=options.mode,
        top_k=options.top_k,
        ranking=parse_options(options.ranking),
        per_document=RESULTS_PER_DOCUMENT if per_document is None else per_document or None,
        fill_up=per_document is None,
        min_score=options.min_score,
        where=replace(options.where, path=options.path or ""),
        explain=options.explain,
        refresh=not options.no_refresh,
        rewrite=options.rewrite,
        extract=options.extract,
        max_chars=options.max_chars,
        join_chunks=False,
        summary=options.summary,
        continue_past_top_k=False,
    )
