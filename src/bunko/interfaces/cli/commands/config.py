"""The `bunko config` and `bunko init` commands: show the settings and their origins, change them, and write a file."""

from __future__ import annotations

import shlex
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from bunko.errors import LibraryReadOnly, SettingsError
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import is_terminal, print_json, print_stderr, say
from bunko.library.opening.paths import user_config_folder
from bunko.library.opening.user_settings import describe_override, set_setting, unset_setting, user_config_file
from bunko.messages import translate
from bunko.runtime.temporary_files import write_text_file
from bunko.settings import CONFIG_NAMES, all_settings
from bunko.settings.starter import starter_config

if TYPE_CHECKING:
    pass


class ConfigCommands(CommandGroup):
    """The commands about settings; without one, what is set is shown."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; those without a command are for showing what is set."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["show", "--changed", *args]
        return super().parse_args(ctx, args)


def complete_key(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a setting."""
    settings = all_settings().items()
    return [CompletionItem(key, help=setting.meaning) for key, setting in settings if key.startswith(incomplete)]


@click.group(name="config", cls=ConfigCommands)
def command() -> None:
    """Show the settings and where each comes from, or change one.

    Without a command, what is set is shown. Flags override the environment, the environment overrides .env, and .env
    overrides the settings file.

    \b
    Example:
      bunko config
      bunko config set chat.provider ollama
      bunko config unset chat.provider
    """


@command.command()
@click.argument("key", required=False, shell_complete=complete_key)
@click.option("--changed", is_flag=True, help="Only what is set: leave out the defaults.")
@shared_options
def show(key: str | None, changed: bool, shared: SharedOptions) -> None:
    """Print each setting with its value and origin. Secrets are masked.

    \b
    Example:
      bunko config show --docs-dir ~/notes
      bunko config show search
    """
    loaded = shared.load_all_settings()
    rows = [row for row in loaded.rows() if key is None or row[0] == key or row[0].startswith(f"{key}.")]
    if not rows:
        raise click.UsageError(f"No such setting or section: {key!r}")
    rows = [row for row in rows if not changed or row[2] != "default"]
    if shared.as_json:
        print_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
        return
    if rows and is_terminal():
        terminal.render.show_settings(rows)
    elif rows:
        for name, value, origin in rows:
            click.echo(f"{name} = {translate(value) if value == 'not set' else value}  ({translate(origin)})")
    else:
        print_stderr("Nothing is set: every setting has its default.")
    if changed:
        print_stderr("Change one with: bunko config set KEY VALUE")


# A value may be a negative number.
@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key", shell_complete=complete_key)
@click.argument("value")
@shared_options
def set_value(key: str, value: str, shared: SharedOptions) -> None:
    """Change a setting in your settings file, or in the one that --config names.

    Comments and other settings in the file stay. A list has commas, and an empty VALUE removes an optional setting. A
    secret is not written: name a file that contains it with KEY_file.

    \b
    Example:
      bunko config set chat.model qwen3
      bunko config set search.top_k 20
      bunko config set embedding.gemini_api_key_file ~/.config/gemini.key
    """
    path = _file(shared)
    try:
        loaded = shared.load_all_settings()
    except SettingsError:
        loaded = None
    set_setting(key, value, path, loaded)
    _report(shared, key, path, f"Set {key} in {path}.")


@command.command()
@click.argument("key", shell_complete=complete_key)
@shared_options
def unset(key: str, shared: SharedOptions) -> None:
    """Remove a setting from your settings file, or from the one that --config names.

    \b
    Example:
      bunko config unset search.top_k
    """
    path = _file(shared)
    was_set = unset_setting(key, path)
    _report(shared, key, path, f"Removed {key} from {path}." if was_set else f"{key} is not set in {path}.")


def _file(shared: SharedOptions) -> Path:
    return shared.config or user_config_file()


def _report(shared: SharedOptions, key: str, path: Path, message: str) -> None:
    """Say what was changed, and what the setting is now if another source sets it."""
    if not shared.as_json:
        say(message)
    loaded = shared.load_settings(all_providers=True)
    values = {name: (value, origin) for name, value, origin in loaded.rows()}
    value, origin = values.get(key) or values.get(key.removesuffix("_file"), ("", "default"))
    if shared.as_json:
        print_json({"setting": key, "file": str(path), "value": value, "origin": origin})
    elif override := describe_override(key, path, loaded):
        print_stderr(override)


@click.command()
@click.option("--force", is_flag=True, help="Overwrite an existing settings file; the old file is backed up.")
@shared_options
def init(force: bool, shared: SharedOptions) -> None:
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
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        backup = None
        if path.exists():
            backup = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.backup")
            shutil.copy2(path, backup)
        write_text_file(path, starter_config())
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
