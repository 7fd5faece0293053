"""The `bunko search` command: print the passages that match a query."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.import_report import show_search_progress
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import (
    SharedOptions,
    escape_controls,
    is_terminal,
    names_option,
    pop_shared_options,
    print_json,
    print_stderr,
    read_words,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.interfaces.cli.result_fields import Tools
    from bunko.library.library import Library
    from bunko.library.page import Page
    from bunko.search.request import SearchRequest

# Like grep: scripts can tell "nothing found" from an answer. Errors have codes of their own.
NOTHING_FOUND_EXIT_CODE = 1
# More results of one document hide the others on the first screen.
_PER_DOCUMENT = 2


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
@names_option("Search only this tool")
@click.option("--min-score", type=float, metavar="N", help="Leave out results with a lower score.")
@click.option("--path", metavar="GLOB", help="Only documents whose path matches: 'guide/**', '*.md'.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; may be repeated.")
@click.option(
    "--since",
    metavar="DATE",
    help="Only documents from this date on: 2024-01-15, 2024-01, today, or 2w for two weeks ago.",
)
@click.option("--until", metavar="DATE", help="Only documents up to this date.")
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
@click.option("--explain", is_flag=True, help="Show why each result matches.")
@click.option("--no-refresh", is_flag=True, help="Do not check for changed files first.")
@click.option(
    "--all", "everything", is_flag=True, help="Search all tools, not only the one whose folder is the current folder."
)
@click.option(
    "--lines",
    type=click.IntRange(1),
    metavar="N",
    help="At a terminal, show each result on at most N rows. [6, with --explain 9, with --extract all]",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "paths", "csv", "md"]),
    help="Print text, JSON (as --json does), one path per document, CSV, or a Markdown list of links. [text]",
)
@click.option("--null", "-0", "null_ends", is_flag=True, help="With --format paths: end paths with NUL, for xargs -0.")
@shared_options
def command(query: tuple[str, ...], **options: Any) -> None:
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
    shared = pop_shared_options(options)
    output_format = _output_format(options["output_format"], as_json=shared.as_json)
    if options["null_ends"] and output_format != "paths":
        raise click.UsageError("--null is for --format paths.")
    words = read_words(query)
    use_folder = _may_use_folder(shared, options)
    if use_folder:
        shared = _use_folder_index(shared)
    with shared.open(create=shared.docs_dir is not None) as library:
        library.local_time()  # a wrong search.timezone is an error even if no date is given
        request = _build_request(words, options)
        if use_folder and (folder := _current_folder()):
            request = _limit_to_folder(library, request, folder)
        with show_search_progress() as observer:
            page = library.page(request, observer=observer)
        _print_notices(library, page)
        tools = {tool.name: tool for tool in library.tools()}
        if output_format == "text":
            # Two tools may both have a README.md.
            show_tool_names = not isinstance(request.tool, str) and len(tools) > 1
            _print_page(page, tools, options, show_tool_names=show_tool_names)
        else:
            _print_formatted(page, tools, output_format, null_ends=options["null_ends"])
    if not page.results:
        click.get_current_context().exit(NOTHING_FOUND_EXIT_CODE)


def _output_format(output_format: str | None, *, as_json: bool) -> str:
    if as_json and output_format not in (None, "json"):
        raise click.UsageError(f"--json cannot be used with --format {output_format}.")
    return "json" if as_json else output_format or "text"


def _max_rows(options: dict[str, Any]) -> int | None:
    """Return how many rows a result may take; a text of an extent that was asked for is shown whole."""
    from bunko.interfaces.cli.render_results import DEFAULT_LINES, EXPLANATION_LINES

    if options["lines"] is not None:
        lines: int = options["lines"]
        return lines
    if options["extract"] or options["max_chars"]:
        return None
    return DEFAULT_LINES + (EXPLANATION_LINES if options["explain"] else 0)


def _may_use_folder(shared: SharedOptions, options: dict[str, Any]) -> bool:
    """Return whether the current folder chooses what is searched: if no option does."""
    if options["everything"] and options["names"]:
        raise click.UsageError("--all cannot be used with --name.")
    return not (options["everything"] or options["names"] or shared.names_library())


def _use_folder_index(shared: SharedOptions) -> SharedOptions:
    """Return the options with --docs-dir if the current folder, or one above it, has its own index."""
    from bunko.library.current_folder import find_indexed_folder

    if shared.config is not None or shared.library_paths().is_explicit:
        return shared
    folder = _current_folder()
    return replace(shared, docs_dir=find_indexed_folder(folder)) if folder else shared


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was deleted
        return None


def _limit_to_folder(library: Library, request: SearchRequest, folder: Path) -> SearchRequest:
    """Return a request for the documents in a folder, and say so; --path chooses among all documents of the tool."""
    from bunko.interfaces.cli.tables import display_path
    from bunko.library.current_folder import disabled_tool_of, find_scope

    scope = find_scope(library.store, folder)
    if scope is None:
        if disabled := disabled_tool_of(library.store, folder):
            from bunko.library.commands import enable_command

            command = enable_command(library.paths, disabled)
            print_stderr(f"{disabled.name} is disabled, so this folder is not searched. To enable it: {command}")
        return request
    print_stderr(f"Searching this folder: {display_path(str(scope.folder))}. Search everything with --all.")
    where = request.where if request.where.path else replace(request.where, path=scope.path)
    return replace(request, tool=scope.tool, where=where)


def _print_notices(library: Library, page: Page) -> None:
    for notice in page.notices:
        if notice not in library.notices:
            print_stderr(notice)
    if page.freshness.pending_changes and library.is_importing():
        location = shlex.join(library.paths.cli_arguments())
        print_stderr(f"Changes are not all indexed yet. Index them with: bunko reindex {location}")


def _print_page(page: Page, tools: Tools, options: dict[str, Any], *, show_tool_names: bool) -> None:
    if page.rewritten_query:
        label = translate("searched") if is_terminal() else "searched"
        click.echo(f"{label}: {escape_controls(page.rewritten_query)}\n")
    if page.summary is not None and page.results:
        from bunko.search.summaries import format_summary

        # What comes first is ours; the sentences after it are those of documents or of a chat model.
        head, *sentences = re.split(
            r"^(?=- )|(?<=:\n)", replace_controls(format_summary(page.summary)), flags=re.MULTILINE
        )
        click.echo((translate(head) if is_terminal() else head) + "".join(sentences) + "\n")
    if is_terminal():
        from bunko.interfaces.cli.render_results import show_page

        show_page(page, tools=tools, show_tool_names=show_tool_names, max_rows=_max_rows(options))
    else:
        from bunko.interfaces.cli.result_formats import to_text

        click.echo(to_text(page, tools=tools, show_tool_names=show_tool_names))


def _translate_head(summary: str) -> str:
    """Return a summary with its facts in the user's language; after them are sentences of documents or of a model."""
    head, *sentences = re.split(r"^(?=- )|(?<=:\n)", summary, maxsplit=1, flags=re.MULTILINE)
    return translate(head) + "".join(sentences)


def _print_formatted(page: Page, tools: Tools, output_format: str, *, null_ends: bool) -> None:
    from bunko.interfaces.cli.result_formats import paths, to_csv, to_json, to_markdown

    if output_format == "json":
        print_json(to_json(page, tools))
        return
    if output_format == "paths":
        for path in paths(page, tools):
            click.echo(f"{path}\0" if null_ends else path, nl=not null_ends)
    elif text := {"csv": to_csv, "md": to_markdown}[output_format](page, tools):
        click.echo(text)


def _build_request(query: str, options: dict[str, Any]) -> SearchRequest:
    from bunko.records import Filter
    from bunko.search.request import SearchRequest
    from bunko.text.tags import normalise_tag

    names, per_document = options["names"], options["per_document"]
    return SearchRequest(
        query,
        names[0] if len(names) == 1 else names or None,
        mode=options["mode"],
        top_k=options["top_k"],
        per_document=_PER_DOCUMENT if per_document is None else per_document or None,
        fill_up=per_document is None,
        min_score=options["min_score"],
        where=Filter(
            options["path"] or "",
            tuple(normalise_tag(tag) for tag in options["tags"]),
            options["since"] or "",
            options["until"] or "",
        ),
        explain=options["explain"],
        refresh=not options["no_refresh"],
        rewrite=options["rewrite"],
        extract=options["extract"],
        max_chars=options["max_chars"],
        join_chunks=False,
        summary=options["summary"],
        continue_past_top_k=False,
    )
