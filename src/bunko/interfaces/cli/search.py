"""`bunko search`: a question in, hits with their places out."""

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
    from bunko.types import Answer


@click.command()
@click.argument("query")
@click.option(
    "--mode", type=click.Choice(["bm25", "semantic", "hybrid"]), help="By words, by vectors, or both. [hybrid]"
)
@click.option("--top-k", "-k", type=click.IntRange(1, 1000), metavar="N", help="How many results. [5, memos 10, web 3]")
@click.option(
    "--name",
    "-n",
    metavar="TOOL",
    help="Search one tool of the library instead of all.",
    shell_complete=complete_tool_names,
)
@click.option("--path", metavar="GLOB", help="Only documents whose path matches: 'guide/**', '*.md'.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; may be repeated.")
@click.option(
    "--since",
    metavar="DATE",
    help="Only documents from then on: 2024-01-15, 2024-01, today, or 2w for two weeks ago.",
)
@click.option("--until", metavar="DATE", help="Only documents up to then.")
@click.option(
    "--extract",
    type=click.Choice(["chunk", "snippet", "entry", "section", "full"]),
    help="How much of each result: itself, what stands around the match, a memo with its heading, its chapter, its"
    " document. [as the tool says, else chunk]",
)
@click.option("--max-chars", type=click.IntRange(20), metavar="N", help="Cut longer texts after a sentence.")
@click.option(
    "--summary",
    is_flag=True,
    help="First say what the results have in common; by rules, or by a chat model if the settings say so.",
)
@click.option(
    "--rewrite/--no-rewrite",
    default=None,
    help="Let a chat model put the query in better words first. [as the settings say: no]",
)
@click.option("--explain", is_flag=True, help="Show why each result was found.")
@click.option("--no-refresh", is_flag=True, help="Do not look for changed files first.")
@shared_options
def command(query: str, **options: Any) -> None:
    """Find text in Japanese or English.

    \b
    Example:
      bunko search "環境構築の方法" --docs-dir ~/notes
      bunko search "form validation" --docs-dir ./docs --mode bm25 --explain
      bunko search "予算" -n memos --since 6m --extract snippet --summary
    """
    asked = pop_shared_options(options)
    from bunko.interfaces.serialize import answer_to_dict as payload

    with asked.open(create=asked.docs_dir is not None) as library:
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
        common = library.summarize_answer(answer) if options["summary"] else None
        extract, most = options["extract"], options["max_chars"]
        answer.hits = library.expand_hits(answer.hits, extract, query=answer.searched_query, max_chars=most)
        if most is not None and extract != "snippet":
            extract = "full"  # where anything may be cut, it is said how much was left out
        for notice in answer.notices:
            if notice not in library.notices:
                print_stderr(notice)
        # Two folders may both hold a README.md.
        named = options["name"] is None and len(library.tools()) > 1
        if answer.freshness.pending_changes and library.is_importing():
            print_stderr(
                f"This command ends here; index the rest with: bunko reindex {shlex.join(library.paths.cli_arguments())}"  # noqa: E501
            )
        if asked.as_json:
            print_json(payload(answer, library.document_of, extract=extract, summary=common))
            return
        answer.hits = library.highlight_hits(answer.hits, extract, query=answer.searched_query)
        if answer.rewritten_query:
            click.echo(f"searched: {escape_controls(answer.rewritten_query)}\n")
        if common is not None and answer.hits:
            from bunko.search.summaries import format_summary

            click.echo(replace_controls(format_summary(common)) + "\n")
        if is_terminal():
            from bunko.interfaces.cli.render import show_answer as show

            show(answer, show_tool_names=named)
        else:
            click.echo(replace_controls(format_answer(answer, show_tool_names=named)))


def format_answer(answer: Answer, *, show_tool_names: bool = False) -> str:
    """Return an answer as lines for a pipe, hits named after their tools where there are several."""
    from bunko.interfaces.serialize import explanation_text, hit_citation

    if not answer.hits:
        return f"No results among {answer.total_chunks} chunks."
    blocks = []
    for rank, hit in enumerate(answer.hits, 1):
        place = escape_controls(hit_citation(hit))
        lines = [
            f"[{rank}] {place}  score={hit.score:.4f}"
            + (f"  tool={escape_controls(hit.tool)}" if show_tool_names else "")
        ]
        if hit.trust:
            lines.append(f"trust: {hit.trust}, fetched {hit.fetched_at}")
        if hit.chunk.heading_path:
            lines.append(escape_controls(" > ".join(hit.chunk.heading_path)))
        if hit.explanation is not None:
            lines.append(f"why: {explanation_text(hit.explanation)}")
        lines.append(hit.chunk.text.replace("\r\n", "\n"))  # a lone carriage return would steer a terminal
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _build_filter(options: dict[str, Any], now: datetime) -> Any:
    from bunko.records import Filter
    from bunko.text.dates import resolve_date
    from bunko.text.tags import normalise_tag

    return Filter(
        options["path"] or "",
        tuple(normalise_tag(one) for one in options["tags"]),
        resolve_date(options["since"], now) if options["since"] else "",
        resolve_date(options["until"], now) if options["until"] else "",
    )
