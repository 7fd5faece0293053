"""The `bunko ask` command: answer a question from the library, with sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from bunko.interfaces.answers import answer_to_dict, is_answered
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.options import SharedOptions, gather_options, names_option, read_words, shared_options
from bunko.interfaces.cli.terminal.answers import print_answer
from bunko.interfaces.cli.terminal.notices import print_empty_library, print_notices
from bunko.interfaces.cli.terminal.printing import print_json
from bunko.interfaces.cli.terminal.progress import show_search_progress
from bunko.search.request import SearchRequest

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.types.answers import CheckedAnswer

# As for a search: scripts can tell "the library does not say" from an answer.
NOTHING_FOUND_EXIT_CODE = 1


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What `bunko ask` was asked for, beside the question."""

    names: tuple[str, ...]
    strict: bool
    no_model: bool
    no_refresh: bool


@click.command()
@click.argument("question", nargs=-1, required=True, metavar="QUESTION...")
@names_option("Answer only from this tool")
@click.option("--strict", is_flag=True, help="Leave out sentences that the sources do not support.")
@click.option("--no-model", is_flag=True, help="Quote the documents, even if a chat model is set.")
@click.option("--no-refresh", is_flag=True, help="Do not check for changed files first.")
@gather_options(AskOptions)
@shared_options
def command(question: tuple[str, ...], options: AskOptions, shared: SharedOptions) -> None:
    """Answer a question from your documents, with sources.

    Without a chat model, the answer is the sentences of your documents that fit best. With one (chat.provider), the
    model searches with the tools of your library and of your MCP servers until it can answer; then each of its
    sentences is compared with the passages that it cites, and what they do not say is marked.

    A single - reads the question from standard input. The exit code is 1 if the library does not answer the question.

    \b
    Example:
      bunko ask "有給休暇は何日もらえますか"
      bunko ask "How long are backups kept?" -n notes
      bunko ask "Who approves refunds?" --strict --json
      bunko ask - < question.txt
    """
    words = read_words(question)
    with shared.open(create=shared.docs_dir is not None) as library:
        is_quoted = options.no_model or library.settings.chat.provider is None
        answer = (_quote if is_quoted else _ask_model)(library, words, options)
        print_notices(library, answer.notices)
        if not answer.sources:
            print_empty_library(library, words)
        if shared.as_json:
            print_json(answer_to_dict(answer, strict=options.strict))
        else:
            print_answer(answer, {tool.name: tool for tool in library.tools()}, strict=options.strict)
    if not is_answered(answer, strict=options.strict):
        click.get_current_context().exit(NOTHING_FOUND_EXIT_CODE)


def _quote(library: Library, question: str, options: AskOptions) -> CheckedAnswer:
    names = options.names
    request = SearchRequest(question, names[0] if len(names) == 1 else names or None, refresh=not options.no_refresh)
    with show_search_progress() as observer:
        return library.answers.ask(request, use_model=False, observer=observer)


def _ask_model(library: Library, question: str, options: AskOptions) -> CheckedAnswer:
    """Let the chat model answer; at a terminal, its words are shown until they have been checked."""
    import anyio

    from bunko.interfaces.chat.answering import open_answerer
    from bunko.interfaces.chat.server_connection import mute_server_log
    from bunko.interfaces.chat.setup import build_chat_server

    mute_server_log()

    async def ask() -> CheckedAnswer:
        model = build_chat_server(library.settings)
        async with open_answerer(library, model, names=options.names, refresh=not options.no_refresh) as answerer:
            with show_search_progress() as observer:
                await answerer.prepare(question, observer)
            with terminal.render_answer.show_draft() as events:
                answer = await answerer.ask(question, events)
            answer.notices += answerer.tools.problems
            return answer

    return anyio.run(ask)
