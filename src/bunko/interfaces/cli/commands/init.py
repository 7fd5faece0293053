"""The `bunko init` command: create a library and a settings file."""

from __future__ import annotations

import shlex
import shutil
from datetime import datetime
from pathlib import Path

import click

from bunko.errors import LibraryReadOnly, SettingsError
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, say
from bunko.library.opening.paths import user_config_folder
from bunko.runtime.temporary_files import write_text_file
from bunko.settings import CONFIG_NAMES
from bunko.settings.starter import starter_config


@click.command()
@click.option("--force", is_flag=True, help="Overwrite an existing settings file; the old file is backed up.")
@shared_options
def command(force: bool, shared: SharedOptions) -> None:
    """Create a library and a settings file to edit.

    The settings file is bunko.toml in the library's folder. It lists every setting with its meaning, commented out at
    its default, so nothing changes until you edit it. Keys and tokens belong in the environment or in .env.

    \b
    Example:
      bunko init --library ~/knowledge
    """
    paths = shared.library_paths()
    folder = paths.folder
    path = folder / CONFIG_NAMES[0]
    existing = [name for name in CONFIG_NAMES if (folder / name).exists()]
    if existing and not force:
        raise SettingsError(
            f"{folder / existing[0]} already exists",
            hint="Edit it, or use --force to write a new bunko.toml, which takes precedence over other files.",
        )
    try:
        backup = _write_settings_file(path)
    except OSError as error:
        raise LibraryReadOnly(
            f"Cannot write {path}: {error.strerror or error}",
            hint="Check the permissions of the folder, or choose another one with --library.",
        ) from error
    with shared.open() as library:
        location, flags = library.storage.location, shlex.join(library.paths.cli_arguments())
    if shared.as_json:
        print_json({"settings": str(path), "library": location, "backup": None if backup is None else str(backup)})
        return
    say(f"Wrote {path}{f' (backup: {backup})' if backup else ''}.")
    say(f"The library is {location}. Next steps:")
    click.echo(f"  bunko reindex {flags}" if paths.docs_dir else f"  bunko add FOLDER {flags}")
    click.echo(f'  bunko search "…" {flags}')
    click.echo(f"  bunko connect claude-code {flags}")
    if paths.docs_dir is not None and folder.is_relative_to(paths.docs_dir):
        own = user_config_folder() / path.name
        print_stderr(f"A documents folder may come from somebody else: embedders, keys and the like belong in {own}.")
    for name in existing:
        if name != path.name:
            print_stderr(f"{folder / name} is now ignored: {path.name} takes precedence.")


def _write_settings_file(path: Path) -> Path | None:
    """Write the starter settings atomically; return the backup of an existing file."""

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    backup = None
    if path.exists():
        backup = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.backup")
        shutil.copy2(path, backup)
    write_text_file(path, starter_config())
    return backup
