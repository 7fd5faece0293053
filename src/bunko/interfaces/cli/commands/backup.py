"""The `bunko backup` and `bunko restore` commands: the library in one file."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.options import PATH, SharedOptions, library_options
from bunko.interfaces.cli.terminal.columns import local_time
from bunko.interfaces.cli.terminal.printing import escape_controls, print_json, say
from bunko.interfaces.cli.terminal.progress import show_steps
from bunko.interfaces.text import format_count, format_size
from bunko.library.moving.backup import read_backup, restore_backup, write_backup

if TYPE_CHECKING:
    from bunko.library.moving.backup import Backup


@click.command()
@click.argument("file", type=PATH)
@click.option("--check", is_flag=True, help="Check a file that is there, and write nothing.")
@library_options
def command(file: Path, check: bool, shared: SharedOptions) -> None:
    """Write the library to one file, as a backup.

    FILE is a new file, or a folder in which it is named by date and time. Searches and imports go on meanwhile: the
    file has the state of the moment at which the command began, whether the library is a file or on a server. It has
    all tools, documents, vectors, web pages, tokens (as digests) and logs, and the settings in the library's folder
    without secrets. It has neither the folders that tools follow nor the index, which is built again. Only you may read
    it; it contains all texts.

    \b
    Example:
      bunko backup ~/backups
      bunko backup --check ~/backups/bunko-20261119T190000Z.zip
      bunko restore ~/backups/bunko-20261119T190000Z.zip --library ~/restored
    """
    file = file.expanduser()
    if check:
        with show_steps() as observer:
            backup = read_backup(file, observer=observer)
        if shared.as_json:
            print_json(_to_dict(file, backup) | {"complete": True})
        else:
            say(f"{file} is complete. {_describe(file, backup)}")
        return
    if file.is_dir():
        file /= f"bunko-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip"
    located = shared.library_paths()
    with shared.open(create=False, read_only=True) as library, show_steps() as observer:
        backup, rows = write_backup(library, located, file, observer)
    if shared.as_json:
        print_json(_to_dict(file, backup) | {"rows": rows})
    else:
        say(f"Wrote {rows:,} rows to {file} ({format_size(file.stat().st_size)}).")
        say(f"Restore it with: bunko restore {shlex.quote(str(file))} --library DIR")


@click.command()
@click.argument("file", type=PATH)
@click.option("--settings", is_flag=True, help="Restore all settings in a backup of your own.")
@library_options
def restore(file: Path, settings: bool, shared: SharedOptions) -> None:
    """Make an empty place the library of a backup.

    The place is named as in all commands: --library, --database, or the settings, which may name a server. All of the
    file is checked before anything is written, and all rows afterwards. A place that holds a library is refused. After
    an interruption, run the same command again; until it has ended, no other command opens the library.

    A backup has the power of whoever made it: its tools name the folders that are read, and its tokens let people in.
    Of its settings, only those are restored that a documents folder may set; those of a backup of your own need
    --settings.

    \b
    Example:
      bunko restore ~/backups/bunko-20261119T190000Z.zip --library ~/restored
      bunko restore ~/backups/bunko-20261119T190000Z.zip --library ~/library --settings
    """
    file = file.expanduser()
    located, loaded = shared.library_paths(), shared.load_settings()
    with show_steps() as observer:
        restored = restore_backup(file, located, loaded, observer, with_settings=settings)
    written = restored.settings
    if shared.as_json:
        fields = {
            "library": restored.place,
            "rows": restored.rows,
            "tools": restored.tools,
            "tokens": restored.tokens,
            "settings": None if written.path is None else str(written.path),
            "settings_left_out": list(written.left_out),
        }
        print_json(_to_dict(file, restored.backup) | fields)
        return
    tools = format_count(len(restored.tools), "tool")
    say(f"Restored {tools} to {restored.place}; all {restored.rows:,} rows are equal.")
    say(_describe(file, restored.backup))
    if restored.tokens:
        say(f"Tokens that are valid again: {', '.join(map(escape_controls, restored.tokens))}.")
        say(f"Revoke again what was revoked since: bunko token revoke NAME{located.cli_flags()}")
    if written.path is not None:
        say(f"Wrote {written.path}; it names neither a server nor an index engine.")
    elif written.replaced_by is not None:
        say(f"The settings in the backup were not written, because there is {written.replaced_by}.")
    elif restored.backup.has_settings:
        say("The settings in the backup were not written.")
    if written.left_out:
        say(f"Not restored, because a backup may come from somebody else: {', '.join(written.left_out)}.")
        say("If it is your own, --settings restores them too, to an empty place.")
    say(f"The first search builds the index. Look at what there is: bunko status{located.cli_flags()}")


def _describe(file: Path, backup: Backup) -> str:
    return f"It was made on {local_time(backup.made_at)} by bunko {backup.bunko} ({format_size(file.stat().st_size)})."


def _to_dict(file: Path, backup: Backup) -> dict[str, object]:
    return {
        "file": str(file),
        "bytes": file.stat().st_size,
        "made_at": backup.made_at,
        "made_by": backup.bunko,
        "files": sorted(backup.sha256),
    }
