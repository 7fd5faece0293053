"""The `bunko index` commands: show, update, rebuild and drop the index that answers searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import (
    names_option,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    say,
    shared_options,
)
from bunko.interfaces.cli.status import index_state_text, index_state_to_dict
from bunko.interfaces.text import format_count
from bunko.observer import Observer

if TYPE_CHECKING:
    from bunko.library.index_care import ToolIndexState
    from bunko.library.library import Library


@click.group(name="index")
def command() -> None:
    """Look after the index that answers searches.

    An index is derived from the library and follows it. It can be dropped and built again at any time; no vector is
    computed again.

    \b
    Example:
      bunko index status
      bunko index sync
      bunko index rebuild -n api-docs
    """


@command.command()
@names_option("Only this tool")
@shared_options
def status(names: Sequence[str], **options: Any) -> None:
    """Show which index answers, and how far it has come.

    \b
    Example:
      bunko index status
    """
    shared = pop_shared_options(options)
    with shared.open(create=False) as library:
        states = [state for name in _selected(library, names) for state in library.index.status(name)]
        generation = library.store.generation()
        place = f"{library.index.kind} {library.index.location}".rstrip()
        if shared.as_json:
            print_json(_to_dict(library, states) | {"generation": generation})
            return
    say(f"index: {place}, library at generation {generation}")
    for item in states:
        _print_state(item)


@command.command()
@names_option("Only this tool")
@shared_options
def sync(names: Sequence[str], **options: Any) -> None:
    """Bring the index up to date with the library.

    Every import does this itself. Use it after a server was away, or after index.kind was changed.

    \b
    Example:
      bunko index sync
    """
    _run("sync", names, options)


@command.command()
@names_option("Only this tool")
@shared_options
def rebuild(names: Sequence[str], **options: Any) -> None:
    """Build the index anew from the library.

    Use it after a change of the settings of an engine.

    \b
    Example:
      bunko index rebuild -n api-docs
    """
    _run("rebuild", names, options)


@command.command()
@names_option("Only this tool")
@click.option("--all", "everything", is_flag=True, help="All tools.")
@shared_options
def drop(names: Sequence[str], everything: bool, **options: Any) -> None:
    """Delete the index of tools.

    Documents and vectors stay in the library.

    \b
    Example:
      bunko index drop --all
    """
    if bool(names) == everything:
        raise click.UsageError("Give either --name or --all")
    shared = pop_shared_options(options)
    with shared.open(create=False) as library:
        selected = _selected(library, names)
        for name in selected:
            library.index.drop(name, observer=_observer())
    if shared.as_json:
        print_json({"dropped": selected})
    else:
        tools = format_count(len(selected), "tool")
        say(f"Dropped the index of {tools}. Build it again with: bunko index sync")


def _run(action: str, names: Sequence[str], options: dict[str, Any]) -> None:
    shared = pop_shared_options(options)
    states = []
    with shared.open(create=False) as library:
        for name in _selected(library, names):
            act = library.index.rebuild if action == "rebuild" else library.index.sync
            states.append(act(name, observer=_observer()))
            if not shared.as_json:
                _print_state(states[-1])
        if shared.as_json:
            print_json(_to_dict(library, states))


def _selected(library: Library, names: Sequence[str]) -> list[str]:
    return list(names) or [tool.name for tool in library.tools()]


def _observer() -> Observer:
    return Observer(on_wait=print_stderr)


def _print_state(item: ToolIndexState) -> None:
    click.echo(replace_controls(f"{item.tool.name}: {translate(index_state_text(item.state))}"))


def _to_dict(library: Library, states: Sequence[ToolIndexState]) -> dict[str, Any]:
    return {
        "index": {"kind": library.index.kind, "location": library.index.location},
        "tools": [{"name": item.tool.name, **index_state_to_dict(item.state)} for item in states],
    }
