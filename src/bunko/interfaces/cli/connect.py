"""`bunko connect`: an assistant's name in, its configuration for this machine out, printed or merged."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bunko.errors import SettingsError
from bunko.interfaces.cli.options import pop_shared_options, print_json, print_stderr, shared_options

CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode")


@click.command()
@click.argument("client", type=click.Choice(CLIENTS))
@click.option(
    "--name", default="bunko", show_default=True, metavar="NAME", help="What the assistant calls this server."
)
@click.option("--write", is_flag=True, help="Merge it into the assistant's file, after a backup.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The assistant's file, if not the usual one.",
)
@shared_options
def command(client: str, name: str, write: bool, path: Path | None, **options: Any) -> None:
    """Tell an assistant about bunko: print or write its configuration.

    \b
    Example:
      bunko connect claude-code --docs-dir ~/notes
      bunko connect cursor --docs-dir ~/notes --write
    """
    asked = pop_shared_options(options)
    home = asked.library_paths()
    place = home.cli_arguments()
    place += ["--config", str(asked.config.expanduser().absolute())] if asked.config else []
    program = launch_command()
    entry = server_entry(client, [*program, "serve", *place])
    target = path or default_config_file(client)
    root = "servers" if client == "vscode" else "mcpServers"
    if write:
        backup = merge_entry(target, root, name, entry)
        print_stderr(
            f"Wrote {target}" + (f"; the old one is {backup}" if backup else "") + ". Restart the assistant to see it."
        )
        return
    if asked.as_json:
        print_json({root: {name: entry}})
        return
    if client == "claude-code":
        click.echo("Run this once:\n")
        click.echo(f"  claude mcp add {shlex.quote(name)} -- {shlex.join([*program, 'serve', *place])}\n")
        click.echo(f"or put this into {target} (add --write to have it done):\n")
    else:
        click.echo(f"Put this into {target} (add --write to have it done):\n")
    print_json({root: {name: entry}})


def launch_command() -> list[str]:
    """Return how another program starts this bunko: by full path, since assistants do not share our PATH."""
    beside = Path(sys.executable).with_name("bunko.exe" if os.name == "nt" else "bunko")
    if beside.exists():
        return [str(beside)]
    found = shutil.which("bunko")
    return [found] if found else [sys.executable, "-m", "bunko"]


def server_entry(client: str, arguments: list[str]) -> dict[str, Any]:
    """Return a server's entry in the form the assistant reads."""
    entry: dict[str, Any] = {"command": arguments[0], "args": arguments[1:]}
    return {"type": "stdio", **entry} if client in ("vscode", "claude-code") else entry


def default_config_file(client: str) -> Path:
    """Return where an assistant keeps its configuration on this machine."""
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
    """Put an entry into a file and leave everything else as it is; return the backup, if there was something."""
    path = path.resolve()  # where a link leads, or it would be replaced by a file
    whole: dict[str, Any] = {}
    backup = None
    if path.exists():
        try:
            whole = json.loads(path.read_text(encoding="utf-8") or "{}")
        except ValueError as error:
            raise SettingsError(f"{path} is not plain JSON: {error}", hint="Add the printed lines by hand.") from error
        if not isinstance(whole, dict) or not isinstance(whole.get(section, {}), dict):
            raise SettingsError(f"{path} has no object {section!r}", hint="Add the printed lines by hand.")
        backup = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.backup")
        shutil.copy2(path, backup)
    whole.setdefault(section, {})[name] = entry
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(whole, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if backup is not None:
        shutil.copymode(path, temporary)
    temporary.replace(path)
    return backup
