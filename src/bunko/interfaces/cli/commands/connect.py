"""The `bunko connect` command: print or write the configuration of an assistant."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import click

from bunko.errors import BunkoError, SettingsError
from bunko.interfaces.cli.commands.assistants import ASSISTANTS, Assistant, write_entry
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, say
from bunko.interfaces.tools.toolsets import ALL_TOOLSETS, TOOLSET_NAMES, parse_toolsets
from bunko.runtime.temporary_files import write_text_file

# Environments of `uvx` and `pipx run`, which the next cleaning of the cache removes.
_UV_CACHE = re.compile(r"[/\\](?:archive|environments|builds)-v\d+[/\\]")
_PIPX_CACHE = re.compile(r"[/\\]pipx[/\\](?:\.cache|cache)[/\\]|[/\\]\.cache[/\\]pipx[/\\]")


@click.command()
@click.argument("client", type=click.Choice(tuple(ASSISTANTS)))
@click.option("--name", default="bunko", show_default=True, metavar="NAME", help="Server name in the assistant.")
@click.option(
    "--toolsets",
    metavar="NAMES",
    help=f"For the server; comma-separated: {', '.join(TOOLSET_NAMES)}, or {ALL_TOOLSETS}.",
)
@click.option("--read-only", is_flag=True, help="Let the server offer no tool that changes the library.")
@click.option("--write", is_flag=True, help="Write to the assistant's configuration file; the old file is backed up.")
@click.option("--skill", is_flag=True, help="Also install the skill that tells the assistant how to use bunko.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Configuration file to use instead of the assistant's default.",
)
@shared_options
def command(
    client: str,
    name: str,
    toolsets: str | None,
    read_only: bool,
    write: bool,
    skill: bool,
    path: Path | None,
    shared: SharedOptions,
) -> None:
    """Connect an assistant: print or write its configuration.

    \b
    Example:
      bunko connect claude-code --docs-dir ~/notes
      bunko connect cursor --docs-dir ~/notes --write
      bunko connect codex --toolsets all --read-only --write --skill
    """
    assistant = ASSISTANTS[client]
    arguments = ["serve", *shared.library_paths().cli_arguments()]
    arguments += ["--config", str(shared.config.expanduser().absolute())] if shared.config else []
    if toolsets and parse_toolsets([toolsets]):  # reports an unknown one now
        arguments += ["--toolsets", toolsets]
    arguments += ["--read-only"] if read_only else []
    server_command = [*launch_command(), *arguments]
    target = path or assistant.config_file()
    skill_file = _skill_file(assistant) if skill else None
    if write:
        _write(target, assistant, name, server_command)
    elif shared.as_json:
        print_json({assistant.section: {name: assistant.build_entry(server_command)}})
    else:
        _print_configuration(target, assistant, name, server_command)
    if skill_file is not None:
        _install_skill(skill_file)
    _print_assistant_names(shared)


def _print_assistant_names(shared: SharedOptions) -> None:
    """Say which tools the assistant sees by another name; a library that cannot be opened has none."""
    if not shared.library_paths().database.exists():
        return
    with suppress(BunkoError), shared.open(create=False, read_only=True) as library:
        active_names = {tool.name for tool in library.tools() if tool.active}
        for name, seen_name in library.assistant_names().items():
            if name in active_names and seen_name != name:
                print_stderr(f"The assistant sees {name} as {seen_name}.")


def _write(target: Path, assistant: Assistant, name: str, server_command: list[str]) -> None:
    entry = assistant.build_entry(server_command)
    try:
        written = write_entry(target, assistant, name, entry)
    except SettingsError:
        click.echo(assistant.render(name, entry), nl=False)  # the lines to add by hand
        raise
    except OSError as error:
        raise SettingsError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="Check its permissions and the free space, or choose another file with --file.",
        ) from error
    if not written.changed:
        print_stderr(f"{target} has this server already.")
        return
    saved_as = f" (backup: {written.backup})" if written.backup else ""
    print_stderr(f"Wrote {target}{saved_as}. Restart {assistant.title} to load it.")


def _print_configuration(target: Path, assistant: Assistant, name: str, server_command: list[str]) -> None:
    if shell_command := assistant.shell_command(name, server_command):
        say(f"Run this once:\n\n  {shell_command}\n")
        say(f"Or add this to {target} (--write does it for you):\n")
    else:
        say(f"Add this to {target} (--write does it for you):\n")
    click.echo(assistant.render(name, assistant.build_entry(server_command)), nl=False)


def launch_command() -> list[str]:
    """Return the command that starts this bunko, with its full path: assistants do not share our PATH."""
    if _UV_CACHE.search(sys.prefix) or _PIPX_CACHE.search(sys.prefix):
        uvx, pipx = shutil.which("uvx"), shutil.which("pipx")
        if pipx and not uvx and _PIPX_CACHE.search(sys.prefix):
            return [pipx, "run", "bunko"]
        return [uvx or "uvx", "bunko"]
    installed = Path(sys.executable).with_name("bunko.exe" if os.name == "nt" else "bunko")
    if installed.exists():
        return [str(installed)]
    program = shutil.which("bunko")
    return [program] if program else [sys.executable, "-m", "bunko"]


def _skill_file(assistant: Assistant) -> Path:
    if assistant.skills_folder is None:
        names = ", ".join(name for name, other in ASSISTANTS.items() if other.skills_folder)
        raise SettingsError(
            f"{assistant.title} reads no skills from a folder",
            hint=f"Leave out --skill, or choose one of: {names}.",
        )
    return assistant.skills_folder() / "bunko" / "SKILL.md"


def _install_skill(path: Path) -> None:
    text = (files("bunko") / "skill" / "SKILL.md").read_text(encoding="utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_file(path, text, mode=0o666)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {error.strerror or error}", hint="Check its permissions and the free space."
        ) from error
    print_stderr(f"Installed the skill: {path}")
