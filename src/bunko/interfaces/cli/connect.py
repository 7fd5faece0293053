"""The `bunko connect` command: print or write the configuration of an assistant."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bunko.errors import SettingsError
from bunko.interfaces.cli.options import pop_shared_options, print_json, print_stderr, shared_options
from bunko.temporary_files import write_text_file

CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode")


@click.command()
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--name", default="bunko", show_default=True, metavar="NAME", help="Server name in the assistant.")
@click.option("--write", is_flag=True, help="Write to the assistant's configuration file; the old file is backed up.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Configuration file to use instead of the assistant's default.",
)
@shared_options
def command(client: str, name: str, write: bool, path: Path | None, **options: Any) -> None:
    """Print or write the configuration that connects an assistant to bunko.

    \b
    Example:
      bunko connect claude-code --docs-dir ~/notes
      bunko connect cursor --docs-dir ~/notes --write
    """
    shared = pop_shared_options(options)
    arguments = ["serve", *shared.library_paths().cli_arguments()]
    arguments += ["--config", str(shared.config.expanduser().absolute())] if shared.config else []
    server_command = [*launch_command(), *arguments]
    entry = server_entry(client, server_command)
    target = path or default_config_file(client)
    section = "servers" if client == "vscode" else "mcpServers"
    if write:
        try:
            backup = merge_entry(target, section, name, entry)
        except OSError as error:
            raise SettingsError(
                f"{target} cannot be written: {error.strerror or error}",
                hint="Check its permissions and the free space, or choose another file with --file.",
            ) from error
        saved_as = f" (backup: {backup})" if backup else ""
        print_stderr(f"Wrote {target}{saved_as}. Restart the assistant to load it.")
        return
    if shared.as_json:
        print_json({section: {name: entry}})
        return
    if client == "claude-code":
        click.echo("Run this once:\n")
        click.echo(f"  claude mcp add {shlex.quote(name)} -- {shlex.join(server_command)}\n")
        click.echo(f"Or add this to {target} (--write does it for you):\n")
    else:
        click.echo(f"Add this to {target} (--write does it for you):\n")
    print_json({section: {name: entry}})


def launch_command() -> list[str]:
    """Return the command that starts this bunko, with its full path: assistants do not share our PATH."""
    installed = Path(sys.executable).with_name("bunko.exe" if os.name == "nt" else "bunko")
    if installed.exists():
        return [str(installed)]
    program = shutil.which("bunko")
    return [program] if program else [sys.executable, "-m", "bunko"]


def server_entry(client: str, arguments: list[str]) -> dict[str, Any]:
    """Return the server entry in the format of the assistant."""
    entry: dict[str, Any] = {"command": arguments[0], "args": arguments[1:]}
    return {"type": "stdio", **entry} if client in ("vscode", "claude-code") else entry


def default_config_file(client: str) -> Path:
    """Return the path of an assistant's configuration file on this machine."""
    home = Path.home()
    if client == "claude-code":
        return Path(".mcp.json").absolute()
    if client == "cursor":
        return home / ".cursor" / "mcp.json"
    if client == "vscode":
        return Path(".vscode/mcp.json").absolute()
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif os.name == "nt":
        base = Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
    return base / "Claude" / "claude_desktop_config.json"


def merge_entry(path: Path, section: str, name: str, entry: dict[str, Any]) -> Path | None:
    """Add an entry to a configuration file and keep everything else; return the backup, if the file existed."""
    path = path.resolve()  # write through a symlink instead of replacing it with a file
    config: dict[str, Any] = {}
    backup = None
    if path.exists():
        try:
            config = json.loads(path.read_text(encoding="utf-8") or "{}")
        except ValueError as error:
            raise SettingsError(f"{path} is not plain JSON: {error}", hint="Add the printed lines by hand.") from error
        if not isinstance(config, dict) or not isinstance(config.get(section, {}), dict):
            raise SettingsError(f"{path} has no object {section!r}", hint="Add the printed lines by hand.")
        backup = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.backup")
        shutil.copy2(path, backup)
    config.setdefault(section, {})[name] = entry
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o666 if backup is None else stat.S_IMODE(backup.stat().st_mode)
    write_text_file(path, json.dumps(config, ensure_ascii=False, indent=2) + "\n", mode=mode)
    if backup is not None:
        shutil.copymode(backup, path)
    return backup
