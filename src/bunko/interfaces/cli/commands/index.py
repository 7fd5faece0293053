"""The `bunko index` commands: show, update, rebuild and drop the index that answers searches."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.options import SharedOptions, names_option, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, replace_controls, say
from bunko.interfaces.cli.terminal.progress import show_steps
from bunko.interfaces.cli.terminal.status_text import index_state_text
from bunko.interfaces.serialize_state import IndexStateFields
from bunko.interfaces.text import format_count
from bunko.library.moving.index_switch import IndexSwitcher
from bunko.messages import translate
from bunko.runtime.observer import Observer

if TYPE_CHECKING:
    from bunko.library.admin.index_care import ToolIndexState
    from bunko.library.library import Library


@click.group(name="index", cls=CommandGroup)
def command() -> None:
    """Look after the index that answers searches.

    An index is derived from the library and follows it. It can be dropped and built again at any time; no vector is
    computed again.

    \b
    Example:
      bunko index status
      bunko index sync
      bunko index rebuild -n api-docs
      bunko index use milvus:http://127.0.0.1:19530
    """


@command.command()
@names_option("Only this tool")
@shared_options
def status(names: Sequence[str], shared: SharedOptions) -> None:
    """Show which index answers, and how far it has come.

    \b
    Example:
      bunko index status
    """
    with shared.open(create=False) as library:
        states = [state for name in _selected(library, names) for state in library.index.status(name)]
        generation = library.storage.generation()
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
def sync(names: Sequence[str], shared: SharedOptions) -> None:
    """Bring the index up to date with the library.

    Every import does this itself. Use it after a server was away, or after index.kind was changed.

    \b
    Example:
      bunko index sync
    """
    _run("sync", names, shared)


@command.command()
@names_option("Only this tool")
@shared_options
def rebuild(names: Sequence[str], shared: SharedOptions) -> None:
    """Build the index anew from the library.

    Use it after a change of the settings of an engine.

    \b
    Example:
      bunko index rebuild -n api-docs
    """
    _run("rebuild", names, shared)


@command.command()
@names_option("Only this tool")
@click.option("--all", "everything", is_flag=True, help="All tools.")
@click.option("--engine", metavar="ENGINE", help="An index that is no longer in use, as `bunko index use` names it.")
@shared_options
def drop(names: Sequence[str], everything: bool, engine: str | None, shared: SharedOptions) -> None:
    """Delete the index of tools.

    Documents and vectors stay in the library.

    \b
    Example:
      bunko index drop --all
      bunko index drop --all --engine chroma
    """
    if bool(names) == everything:
        raise click.UsageError("Give either --name or --all")
    if engine is not None and not everything:
        raise click.UsageError("--engine requires --all")
    if engine is not None:
        with _switcher(shared) as switcher:
            dropped = switcher.drop(engine, observer=_observer())
        if shared.as_json:
            print_json({"dropped": dropped})
        else:
            say(f"Dropped {engine}, which was not in use.")
        return
    with shared.open(create=False) as library:
        selected = _selected(library, names)
        for name in selected:
            library.index.drop(name, observer=_observer())
    if shared.as_json:
        print_json({"dropped": selected})
    else:
        tools = format_count(len(selected), "tool")
        say(f"Dropped the index of {tools}. Build it again with: bunko index sync")


@command.command()
@click.argument("engine", metavar="ENGINE")
@shared_options
def use(engine: str, shared: SharedOptions) -> None:
    """Let another index answer searches.

    ENGINE is embedded, chroma, chroma:URL, chroma:DIR, milvus, milvus:URL or milvus:FILE. The index is filled from
    the library, its answers to sample searches are compared with those of the old one, and only then bunko.toml is
    changed. No stored vector is computed again; for Chroma, sentences are embedded as questions. A token comes from
    BUNKO_MILVUS_TOKEN or CHROMADB_TOKEN.

    \b
    Example:
      bunko index use milvus:http://127.0.0.1:19530
      bunko index use chroma
      bunko index use embedded
    """
    with _switcher(shared) as switcher, show_steps() as observer:
        switch = switcher.use(engine, observer=observer)
        flags = shared.library_flags(switcher.library)
    if shared.as_json:
        print_json(
            {
                "from": switch.old,
                "to": switch.new,
                "location": switch.location,
                "settings": str(switch.settings.path),
                "backup": None if switch.backup is None else str(switch.backup),
                "searches_compared": switch.comparison.searches,
                "same_first_hit": switch.comparison.same_first,
                "recall": round(switch.comparison.recall, 4),
                "notices": switch.notices,
            }
        )
        return
    for notice in switch.notices:
        print_stderr(notice)
    comparison = switch.comparison
    say(f"{switch.new} answers searches now.")
    if comparison.searches:
        equal, searches = comparison.searches - comparison.close, comparison.searches
        say(f"By words, {equal:,} of {searches:,} sample searches rank as with {switch.old}.")
        if comparison.close:
            say("In the others, chunks of nearly equal scores have changed places.")
        say(f"The first hit is the same in {comparison.same_first:,} of {searches:,}.")
        say(f"{comparison.recall:.1%} of the nearest vectors were found.")
    say(f"Wrote {switch.settings.path}{f' (backup: {switch.backup})' if switch.backup else ''}.")
    say("Start servers and watchers again: until then they search the old index.")
    say(f"The way back: bunko index use {shlex.quote(switch.old)}{flags}")
    if switch.old != "embedded" or not switch.new.startswith("chroma"):
        say(f"When you no longer need the old index: bunko index drop --all --engine {shlex.quote(switch.old)}{flags}")


@contextmanager
def _switcher(shared: SharedOptions) -> Iterator[IndexSwitcher]:
    with shared.open(create=False) as library:
        yield IndexSwitcher(library, shared.library_paths(), shared.load_settings(), shared.config)


def _run(action: str, names: Sequence[str], shared: SharedOptions) -> None:
    states = []
    with shared.open(create=False) as library:
        for name in _selected(library, names):
            act = library.index.rebuild if action == "rebuild" else library.index.sync
            with show_steps() as observer:
                states.append(act(name, observer=observer))
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


def _to_dict(library: Library, states: Sequence[ToolIndexState]) -> dict[str, object]:
    return {
        "index": {"kind": library.index.kind, "location": library.index.location},
        "tools": [{"name": item.tool.name, **IndexStateFields.fill(item.state)} for item in states],
    }
