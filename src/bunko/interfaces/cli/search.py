"""`bunko search`: a question in, hits with their places out."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import chosen, is_terminal, on_one_line, print_json, say, shared, tool_names, visible

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
    shell_complete=tool_names,
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
@shared
def command(query: str, **options: Any) -> None:
    """Find text in Japanese or English.

    \b
    Example:
      bunko search "環境構築の方法" --docs-dir ~/notes
      bunko search "form validation" --docs-dir ./docs --mode bm25 --explain
      bunko search "予算" -n memos --since 6m --extract snippet --summary
    """
    asked = chosen(options)
    from bunko.interfaces.serialize import answer as payload

    with asked.open(create=asked.docs_dir is not None) as library:
        answer = library.search(
            query,
            tool=options["name"],
            mode=options["mode"],
            top_k=options["top_k"],
            where=_filter(options, library.now()),
            explain=options["explain"],
            refresh=not options["no_refresh"],
            rewrite=options["rewrite"],
        )
        library.remember(query, options["name"])
        common = library.summary(answer) if options["summary"] else None
        extract, most = options["extract"], options["max_chars"]
        answer.hits = library.widened(answer.hits, extract, query=answer.searched, max_chars=most)
        if most is not None and extract != "snippet":
            extract = "full"  # where anything may be cut, it is said how much was left out
        for notice in answer.notices:
            if notice not in library.notices:
                say(notice)
        # Two folders may both hold a README.md.
        named = options["name"] is None and len(library.tools()) > 1
        if answer.freshness.missing and library.is_importing():
            say(f"This command ends here; index the rest with: bunko reindex {shlex.join(library.home.arguments())}")
        if asked.as_json:
            print_json(payload(answer, library.document_of, extract=extract, summary=common))
            return
        answer.hits = library.quoted(answer.hits, extract, query=answer.searched)
        if answer.rewritten:
            click.echo(f"searched: {on_one_line(answer.rewritten)}\n")
        if common is not None and answer.hits:
            from bunko.search.summaries import written

            click.echo(visible(written(common)) + "\n")
        if is_terminal():
            from bunko.interfaces.cli.render import answer as show

            show(answer, named=named)
        else:
            click.echo(visible(plain(answer, named=named)))


def plain(answer: Answer, *, named: bool = False) -> str:
    """Return an answer as lines for a pipe, hits named after their tools where there are several."""
    from bunko.interfaces.serialize import citation, reasons

    if not answer.hits:
        return f"No results among {answer.total_chunks} chunks."
    blocks = []
    for rank, hit in enumerate(answer.hits, 1):
        place = on_one_line(citation(hit))
        lines = [f"[{rank}] {place}  score={hit.score:.4f}" + (f"  tool={on_one_line(hit.tool)}" if named else "")]
        if hit.trust:
            lines.append(f"trust: {hit.trust}, fetched {hit.fetched_at}")
        if hit.chunk.heading_path:
            lines.append(on_one_line(" > ".join(hit.chunk.heading_path)))
        if hit.why is not None:
            lines.append(f"why: {reasons(hit.why)}")
        lines.append(hit.chunk.text.replace("\r\n", "\n"))  # a lone carriage return would steer a terminal
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _filter(options: dict[str, Any], now: datetime) -> Any:
    from bunko.records import Filter
    from bunko.text.dates import moment
    from bunko.text.tags import tag

    return Filter(
        options["path"] or "",
        tuple(tag(one) for one in options["tags"]),
        moment(options["since"], now) if options["since"] else "",
        moment(options["until"], now) if options["until"] else "",
    )
