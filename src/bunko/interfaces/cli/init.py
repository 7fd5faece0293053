"""`bunko init`: a place in, an empty library with a settings file to edit out."""

from __future__ import annotations

import shlex
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bunko.errors import LibraryReadOnly, SettingsError
from bunko.interfaces.cli.options import pop_shared_options, print_json, print_stderr, shared_options


@click.command()
@click.option("--force", is_flag=True, help="Write the settings file even if there is one; the old one is kept beside.")
@shared_options
def command(force: bool, **options: Any) -> None:
    """Begin a library: make it and write a settings file to edit.

    The file is bunko.toml in the library's folder. It names every setting with its meaning, commented out at its
    default, so that nothing changes until you change it. Keys and tokens belong into the environment or .env.

    \b
    Example:
      bunko init --library ~/knowledge
    """
    asked = pop_shared_options(options)
    home = asked.library_paths()
    from bunko.settings import CONFIG_NAMES

    path = home.folder / CONFIG_NAMES[0]
    there = [name for name in CONFIG_NAMES if (home.folder / name).exists()]
    if there and not force:
        raise SettingsError(
            f"There is {home.folder / there[0]} already",
            hint="Edit it, or write a new bunko.toml, which comes before all others, with --force.",
        )
    try:
        backup = _write_settings_file(path)
    except OSError as error:
        raise LibraryReadOnly(
            f"{path} cannot be written: {error.strerror or error}",
            hint="Check who owns the folder, or choose another place with --library.",
        ) from error
    with asked.open() as library:
        database, place = library.paths.database, shlex.join(library.paths.cli_arguments())
    if asked.as_json:
        print_json({"settings": str(path), "library": str(database), "backup": None if backup is None else str(backup)})
        return
    click.echo(f"Wrote {path}" + (f"; the old one is {backup}." if backup else "."))
    click.echo(f"Your library is {database}. Next:")
    click.echo(f"  bunko tool add -n NAME -d 'What the documents are about' -s FOLDER {place}")
    click.echo(f"  bunko import -n NAME {place}")
    click.echo(f"  bunko connect claude-code {place}")
    for name in there:
        if name != path.name:
            print_stderr(f"{name} in that folder is not read any more: {path.name} comes before it.")


def _write_settings_file(path: Path) -> Path | None:
    """Write the file, whole or not at all; return the old one's new name, if there was one."""
    from bunko.settings import starter_config

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.tmp")
    temporary.write_text(starter_config(), encoding="utf-8")
    backup = None
    if path.exists():
        backup = temporary.with_suffix(".backup")
        shutil.copy2(path, backup)
    temporary.replace(path)
    return backup
