"""The `bunko move` command: move a library to another store."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, say
from bunko.interfaces.cli.terminal.progress import show_steps
from bunko.interfaces.text import format_count, format_size
from bunko.library.moving.move import Mover

if TYPE_CHECKING:
    from bunko.library.moving.move import MovePlan, MoveResult


@click.command()
@click.option("--to", metavar="PLACE", help="postgresql://USER@HOST/DATABASE?schema=NAME, or sqlite:FILE.")
@click.option("--dry-run", is_flag=True, help="Show what would be copied, and change nothing.")
@click.option("--undo", is_flag=True, help="Use a library again that has moved, if its new place is lost.")
@shared_options
def command(to: str | None, dry_run: bool, undo: bool, shared: SharedOptions) -> None:
    """Move the library to another database or file.

    Copies everything, compares all rows and the results of sample searches, and only then writes the new place into
    bunko.toml. No vector is computed again. Searches go on meanwhile; imports wait. The old library stays as it was,
    but nobody can write to it any more. After an interruption, run the same command again. The way back is the same
    command.

    A password comes from BUNKO_STORAGE_PASSWORD, storage.password_file or ~/.pgpass, never from the URL.

    \b
    Example:
      bunko move --to postgresql://bunko@db.example/team --dry-run
      bunko move --to postgresql://bunko@db.example/team
      bunko move --to sqlite:~/knowledge/library.db
    """
    if (to is None) != undo:
        raise click.UsageError("Give --to, or --undo alone")
    located = shared.library_paths()
    with shared.open(create=False, allow_moved=undo) as library:
        mover = Mover(library, located, shared.load_settings(), shared.config)
        if to is None:
            place = mover.undo()
            if shared.as_json:
                print_json({"library": library.storage.location, "had_moved_to": place})
            else:
                say(f"{library.storage.location} is used again, as it was when it moved to {place}.")
        elif dry_run:
            plan, location = mover.plan(to), library.storage.location
            if shared.as_json:
                print_json(_to_dict(plan, location) | {"dry_run": True})
                return
            for name, totals in plan.tools.items():
                counts = f"{totals.documents:,} documents, {totals.chunks:,} chunks, {totals.vectors:,} vectors"
                say(f"{name}: {counts}")
            new_place, size = plan.destination.display, format_size(plan.bytes)
            say(f"{plan.rows:,} rows, {size}, would be copied from {location} to {new_place}.")
            if plan.content != "empty":
                say("There is an earlier copy of this library; only what differs would be written.")
            if plan.settings is not None:
                say(f"Then {plan.settings.path} would name the new place.")
        else:
            with show_steps() as observer:
                result = mover.move(to, observer=observer)
            _print_result(result, library.storage.location, shared, located.cli_flags())


def _print_result(result: MoveResult, location: str, shared: SharedOptions, flags: str) -> None:
    plan, comparison = result.plan, result.comparison
    if shared.as_json:
        print_json(
            _to_dict(plan, location)
            | {
                "dry_run": False,
                "rows": result.rows,
                "searches_compared": comparison.searches,
                "backup": None if result.backup is None else str(result.backup),
                "notices": result.notices,
            }
        )
        return
    for notice in result.notices:
        print_stderr(notice)
    tools = format_count(len(plan.tools), "tool")
    say(f"Moved {tools} to {plan.destination.display}.")
    say(f"All {result.rows:,} rows are equal, and all {comparison.searches:,} sample searches rank the same.")
    if plan.settings is None:
        say(f"Name it with --database {shlex.quote(str(plan.destination.address.location))} from now on.")
    elif plan.settings.copied_from is not None:
        other = plan.settings.copied_from
        say(f"Wrote {plan.settings.path} with the other settings of {other}, which it replaces for this library.")
    else:
        say(f"Wrote {plan.settings.path}{f' (backup: {result.backup})' if result.backup else ''}.")
    say("Start servers and watchers again: until then they search the old library, and cannot write to it.")
    server = plan.source.server
    delete = f"DROP SCHEMA {server.schema} CASCADE;" if server else shlex.join(["rm", str(plan.source.location)])
    say(f"The old library is still in {location}. When you no longer need it: {delete}")
    say(f"The way back: bunko move --to {shlex.quote(plan.way_back)}{flags}")


def _to_dict(plan: MovePlan, location: str) -> dict[str, object]:
    return {
        "from": location,
        "to": plan.destination.display,
        "destination": plan.content,
        "settings": None if plan.settings is None else str(plan.settings.path),
        "way_back": plan.way_back,
        "bytes": plan.bytes,
        "rows": plan.rows,
        "tools": [
            {"name": name, "documents": totals.documents, "chunks": totals.chunks, "vectors": totals.vectors}
            for name, totals in plan.tools.items()
        ],
    }
