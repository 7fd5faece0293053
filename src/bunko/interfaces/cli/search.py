"""The `bunko search` command: print the passages that match a query."""

from __future__ import annotations

import shlex
from datetime import datetime
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
    from bunko.records import Filter
    from bunko.search.summaries import Summary
    from bunko.types import Answer


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
    "--name",
    "-n",
    metavar="TOOL",
    help="Search only this tool.",
    shell_complete=complete_tool_names,
)
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

    \b
    Example:
      bunko search "環境構築の方法" --docs-dir ~/notes
      bunko search "form validation" --docs-dir ./docs --mode bm25 --explain
      bunko search "予算" -n memos --since 6m --extract snippet --summary
    """
    shared = pop_shared_options(options)
    with shared.open(create=shared.docs_dir is not None) as library:
        answer = library.search(
            query,
            tool=options["name"],
            mode=options["mode"],
            top_k=options["top_k"],
            where=_build_filter(options, library.local_time()),
            explain=options["explain"],
            refresh=not options["no_refresh"],
            rewrite=options["rewrite"],
        )
        library.log_search(query, options["name"])
        summary = library.summarize_answer(answer) if options["summary"] else None
        extract, max_chars = options["extract"], options["max_chars"]
        answer.hits = library.expand_hits(answer.hits, extract, query=answer.searched_query, max_chars=max_chars)
        if max_chars is not None and extract != "snippet":
            extract = "full"  # any text may have been cut, and "full" reports how much is omitted
        _print_notices(library, answer)
        if shared.as_json:
            from bunko.interfaces.serialize import answer_to_dict

            print_json(answer_to_dict(answer, library.document_of, extract=extract, summary=summary))
            return
        answer.hits = library.highlight_hits(answer.hits, extract, query=answer.searched_query)
        # Two tools may both have a README.md.
        _print_answer(answer, summary, show_tool_names=options["name"] is None and len(library.tools()) > 1)


def _print_notices(library: Library, answer: Answer) -> None:
    for notice in answer.notices:
        if notice not in library.notices:
            print_stderr(notice)
    if answer.freshness.pending_changes and library.is_importing():
        location = shlex.join(library.paths.cli_arguments())
        print_stderr(f"Changes are not all indexed yet. Index them with: bunko reindex {location}")


def _print_answer(answer: Answer, summary: Summary | None, *, show_tool_names: bool) -> None:
    if answer.rewritten_query:
        click.echo(f"searched: {escape_controls(answer.rewritten_query)}\n")
    if summary is not None and answer.hits:
        from bunko.search.summaries import format_summary

        click.echo(replace_controls(format_summary(summary)) + "\n")
    if is_terminal():
        from bunko.interfaces.cli.render import show_answer

        show_answer(answer, show_tool_names=show_tool_names)
    else:
        click.echo(replace_controls(format_answer(answer, show_tool_names=show_tool_names)))


def format_answer(answer: Answer, *, show_tool_names: bool = False) -> str:
    """Return an answer as text for a pipe, with the names of tools if there are several."""
    from bunko.interfaces.serialize import explanation_text, hit_citation

    if not answer.hits:
        return f"No results among {answer.total_chunks} chunks."
    blocks = []
    for rank, hit in enumerate(answer.hits, 1):
        tool = f"  tool={escape_controls(hit.tool)}" if show_tool_names else ""
        lines = [f"[{rank}] {escape_controls(hit_citation(hit))}  score={hit.score:.4f}{tool}"]
        if hit.trust:
            lines.append(f"trust: {hit.trust}, fetched {hit.fetched_at}")
        if hit.chunk.heading_path:
            lines.append(escape_controls(" > ".join(hit.chunk.heading_path)))
        if hit.explanation is not None:
            lines.append(f"why: {explanation_text(hit.explanation)}")
        lines.append(hit.chunk.text.replace("\r\n", "\n"))  # a lone carriage return would move a terminal's cursor
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _build_filter(options: dict[str, Any], now: datetime) -> Filter:
    from bunko.records import Filter
    from bunko.text.dates import resolve_date
    from bunko.text.tags import normalise_tag

    return Filter(
        options["path"] or "",
        tuple(normalise_tag(tag) for tag in options["tags"]),
        resolve_date(options["since"], now) if options["since"] else "",
        resolve_date(options["until"], now) if options["until"] else "",
    )
