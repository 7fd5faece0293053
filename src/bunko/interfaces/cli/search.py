"""The `bunko search` command: print the passages that match a query."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    complete_tool_names,
    escape_controls,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.page import Page
    from bunko.search.request import SearchRequest


# More results of one document hide the others on the first screen.
_PER_DOCUMENT = 2


@click.command()
@click.argument("query")
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
    "--name",
    "-n",
    "names",
    multiple=True,
    metavar="TOOL",
    help="Search only this tool; may be repeated.",
    shell_complete=complete_tool_names,
)
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
@shared_options
def command(query: str, **options: Any) -> None:
    """Search documents in Japanese and English.

    A "quoted phrase" must be in the text as it is written; a -word or -"phrase" must not be in it. To search for a word
    with a hyphen before it, quote it: "-Wall". The hyphens of re-render, --amend and -x have no special meaning.

    \b
    Example:
      bunko search "環境構築の方法" --docs-dir ~/notes
      bunko search "form validation" --docs-dir ./docs --mode bm25 --explain
      bunko search "予算" -n memos -n notes --since 6m --extract snippet --summary
      bunko search '"form validation" react -angular'
    """
    shared = pop_shared_options(options)
    with shared.open(create=shared.docs_dir is not None) as library:
        library.local_time()  # a wrong search.timezone is an error even if no date is given
        page = library.page(_build_request(query, options))
        _print_notices(library, page)
        if shared.as_json:
            from bunko.interfaces.serialize import page_to_dict

            print_json(page_to_dict(page))
            return
        # Two tools may both have a README.md.
        _print_page(page, show_tool_names=len(options["names"]) != 1 and len(library.tools()) > 1)


def _print_notices(library: Library, page: Page) -> None:
    for notice in page.notices:
        if notice not in library.notices:
            print_stderr(notice)
    if page.freshness.pending_changes and library.is_importing():
        location = shlex.join(library.paths.cli_arguments())
        print_stderr(f"Changes are not all indexed yet. Index them with: bunko reindex {location}")


def _print_page(page: Page, *, show_tool_names: bool) -> None:
    if page.rewritten_query:
        click.echo(f"searched: {escape_controls(page.rewritten_query)}\n")
    if page.summary is not None and page.results:
        from bunko.search.summaries import format_summary

        click.echo(replace_controls(format_summary(page.summary)) + "\n")
    if is_terminal():
        from bunko.interfaces.cli.render_results import show_page

        show_page(page, show_tool_names=show_tool_names)
    else:
        click.echo(replace_controls(format_page(page, show_tool_names=show_tool_names)))


def format_page(page: Page, *, show_tool_names: bool = False) -> str:
    """Return a page of results as text for a pipe, with the names of tools if there are several."""
    from bunko.interfaces.serialize import explanation_text

    if not page.results:
        return f"No results among {page.total_chunks} chunks."
    blocks = []
    for rank, (item, text) in enumerate(zip(page.results, page.display_texts(), strict=True), 1):
        hit = item.passage.hit
        tool = f"  tool={escape_controls(hit.tool)}" if show_tool_names else ""
        lines = [f"[{rank}] {escape_controls(item.passage.citation)}  score={hit.score:.4f}{tool}"]
        if hit.trust:
            lines.append(f"trust: {hit.trust}, fetched {hit.fetched_at}")
        if hit.chunk.heading_path:
            lines.append(escape_controls(" > ".join(hit.chunk.heading_path)))
        if hit.explanation is not None:
            lines.append(f"why: {explanation_text(hit.explanation)}")
        lines.append(text.replace("\r\n", "\n"))  # a lone carriage return would move a terminal's cursor
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


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
