"""The `bunko connect` command: print or write the configuration of an assistant, each in its own form."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import click

from bunko.errors import BunkoError, SettingsError
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, say
from bunko.interfaces.tools.toolsets import ALL_TOOLSETS, TOOLSET_NAMES, parse_toolsets
from bunko.runtime.temporary_files import replace_text, write_text_file

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Assistant:
    """An assistant that starts MCP servers."""

    title: str
    config_file: Callable[[], Path]
    section: str = "mcpServers"  # of the configuration: servers by name
    build_entry: Callable[[Sequence[str]], dict[str, object]] = lambda command: _command_and_args(command)
    is_toml: bool = False
    skills_folder: Callable[[], Path] | None = None  # None: it reads no skills from a folder
    add_command: str = ""  # its own command that adds a server; the name and the server's command follow

    def render(self, name: str, entry: dict[str, object]) -> str:
        """Return the lines for the configuration file."""
        if self.is_toml:
            return toml_table(self.section, name, entry)
        return json.dumps({self.section: {name: entry}}, ensure_ascii=False, indent=2) + "\n"

    def shell_command(self, name: str, server_command: Sequence[str]) -> str:
        """Return a command that adds the server, or an empty text if the assistant has none."""
        return f"{self.add_command} {shlex.quote(name)} -- {shlex.join(server_command)}" if self.add_command else ""


def toml_table(section: str, name: str, entry: dict[str, object]) -> str:
    """Return a server as a TOML table; strings and lists are written as in JSON."""
    key = name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    lines = [f"{field} = {json.dumps(value, ensure_ascii=False)}" for field, value in entry.items()]
    return "\n".join([f"[{section}.{key}]", *lines]) + "\n"


def _command_and_args(command: Sequence[str]) -> dict[str, object]:
    return {"command": command[0], "args": list(command[1:])}


def _stdio_entry(command: Sequence[str]) -> dict[str, object]:
    return {"type": "stdio", **_command_and_args(command)}


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _project(*parts: str) -> Callable[[], Path]:
    return lambda: Path(*parts).absolute()


def _user_config(*parts: str) -> Callable[[], Path]:
    """Return the path of a file in the folder for configuration; on a Mac, where command-line programs have it."""
    return lambda: Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(*parts)


def _application_data(*parts: str) -> Callable[[], Path]:
    """Return the path of a file in the folder where desktop programs keep their data."""

    def path() -> Path:
        if sys.platform == "darwin":
            return Path.home().joinpath("Library", "Application Support", *parts)
        if os.name == "nt":
            return Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming")).joinpath(*parts)
        return _user_config(*parts)()

    return path


ASSISTANTS: dict[str, Assistant] = {
    "claude-code": Assistant(
        "Claude Code",
        _project(".mcp.json"),
        build_entry=_stdio_entry,
        skills_folder=_project(".claude", "skills"),
        add_command="claude mcp add",
    ),
    "claude-desktop": Assistant("Claude Desktop", _application_data("Claude", "claude_desktop_config.json")),
    "codex": Assistant(
        "Codex CLI",
        lambda: Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml",
        section="mcp_servers",
        is_toml=True,
        skills_folder=_home(".agents", "skills"),
        add_command="codex mcp add",
    ),
    "cursor": Assistant("Cursor", _home(".cursor", "mcp.json"), skills_folder=_home(".cursor", "skills")),
    "gemini": Assistant("Gemini CLI", _home(".gemini", "settings.json"), skills_folder=_home(".gemini", "skills")),
    "lm-studio": Assistant("LM Studio", _home(".lmstudio", "mcp.json")),
    "opencode": Assistant(
        "opencode",
        _user_config("opencode", "opencode.json"),
        section="mcp",
        build_entry=lambda command: {"type": "local", "command": list(command), "enabled": True},
        skills_folder=_user_config("opencode", "skills"),
    ),
    "vscode": Assistant(
        "VS Code",
        _project(".vscode", "mcp.json"),
        section="servers",
        build_entry=_stdio_entry,
        skills_folder=_project(".github", "skills"),
    ),
    "windsurf": Assistant(
        "Windsurf",
        _home(".codeium", "windsurf", "mcp_config.json"),
        skills_folder=_home(".codeium", "windsurf", "skills"),
    ),
    "zed": Assistant(
        "Zed",
        _application_data("Zed", "settings.json") if os.name == "nt" else _user_config("zed", "settings.json"),
        section="context_servers",
        build_entry=lambda command: {"source": "custom", **_command_and_args(command)},
    ),
}


_BY_HAND = "Add the lines above by hand."
_TOML_HEADER = re.compile(r"^\s*\[")


class Written(NamedTuple):
    """What a write did."""

    changed: bool
    backup: Path | None  # a file with the content before


def write_entry(path: Path, assistant: Assistant, name: str, entry: dict[str, object]) -> Written:
    """Write a server into a configuration file; the old content is backed up, unless a backup of it exists."""
    path = path.resolve()  # write through a symlink instead of replacing it with a file
    old_text = path.read_text(encoding="utf-8") if path.exists() else None
    merge = _merge_toml if assistant.is_toml else _merge_json
    new_text = merge(path, old_text or "", assistant.section, name, entry)
    if new_text == old_text:
        return Written(False, None)
    return Written(True, replace_text(path, new_text))


def _merge_json(path: Path, text: str, section: str, name: str, entry: dict[str, object]) -> str:
    try:
        config = parse_commented_json(text or "{}")
    except ValueError as error:
        raise SettingsError(f"{path} is not valid JSON: {error}", hint=_BY_HAND) from error
    if not isinstance(config, dict) or not isinstance(config.get(section, {}), dict):
        raise SettingsError(f"{path} has no object {section!r}", hint=_BY_HAND)
    if config.get(section, {}).get(name) == entry:
        return text
    expected = {**config, section: {**config.get(section, {}), name: entry}}
    with suppress(ValueError):
        json.loads(text or "{}")
        return json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    new_text = set_member(text, section, name, entry)  # Zed's own settings, for one, begin with comments
    if parse_commented_json(new_text) != expected:  # a name that occurs twice, for one
        raise SettingsError(f"{path} has a server {name!r} that cannot be replaced", hint=_BY_HAND)
    return new_text


def _merge_toml(path: Path, text: str, section: str, name: str, entry: dict[str, object]) -> str:
    """Append a table, or replace the one of that name; comments and all other lines stay as they are."""
    config = _parse_toml(path, text)
    servers = config.get(section, {})
    if not isinstance(servers, dict):
        raise SettingsError(f"{path} has no table {section!r}", hint=_BY_HAND)
    if servers.get(name) == entry:
        return text
    other_text = _without_table(text, section, name) if name in servers else text
    new_text = (other_text.rstrip("\n") + "\n\n" if other_text.strip() else "") + toml_table(section, name, entry)
    expected = {**config, section: {**servers, name: entry}}
    if _parse_toml(path, new_text) != expected:  # the old entry is written in a form that was not found
        raise SettingsError(f"{path} has a server {name!r} that cannot be replaced", hint=_BY_HAND)
    return new_text


def _parse_toml(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}", hint=_BY_HAND) from error


def _without_table(text: str, section: str, name: str) -> str:
    """Return a TOML text without the table of a server and the tables below it."""
    key = rf"(?:{re.escape(name)}|{re.escape(json.dumps(name, ensure_ascii=False))}|'{re.escape(name)}')"
    header = re.compile(rf"^\s*\[\s*{re.escape(section)}\s*\.\s*{key}\s*(?:\.[^\]]*)?\]")
    lines, skipping = [], False
    for line in text.splitlines(keepends=True):
        if _TOML_HEADER.match(line):
            skipping = bool(header.match(line))
        if not skipping:
            lines.append(line)
    return "".join(lines)


_STRING = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_SPACE = re.compile(r"\s*")
_INDENT = "  "


class _Member(NamedTuple):
    """Where the value of a member stands in a text."""

    start: int
    end: int


def parse_commented_json(text: str) -> Any:
    """Return the value of a text; invalid JSON raises ValueError."""
    return json.loads(_to_plain_json(text))


def set_member(text: str, section: str, name: str, value: Any) -> str:
    """Return an object's text in which a member of one of its objects has a value; both may be new."""
    plain = _to_plain_json(text)
    root = _Member(_skip_space(plain, 0), len(plain))
    found_section = _members(plain, root).get(section)
    if found_section is None:
        return _insert(text, plain, root, section, {name: value}, depth=1)
    if member := _members(plain, found_section).get(name):
        return text[: member.start] + _indented(value, 2) + text[member.end :]
    return _insert(text, plain, found_section, name, value, depth=2)


def _to_plain_json(text: str) -> str:
    """Return a text of the same length with spaces for comments and trailing commas."""
    for pattern in (_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(
            lambda match: match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0]), text
        )
    return text


def _members(plain: str, parent: _Member) -> dict[str, _Member]:
    """Return the members of an object of valid JSON."""
    decoder, members = json.JSONDecoder(), {}
    position = _skip_space(plain, parent.start + 1)
    while plain[position] != "}":
        name, position = decoder.raw_decode(plain, position)
        start = _skip_space(plain, _skip_space(plain, position) + 1)  # after the colon
        _, end = decoder.raw_decode(plain, start)
        members[name] = _Member(start, end)
        position = _skip_space(plain, end)
        if plain[position] == ",":
            position = _skip_space(plain, position + 1)
    return members


def _insert(text: str, plain: str, parent: _Member, name: str, value: Any, *, depth: int) -> str:
    """Return a text with a new first member of an object; its last one may be followed by a comment."""
    after_brace = parent.start + 1
    end = "," if _members(plain, parent) else f"\n{_INDENT * (depth - 1)}"
    if "\n" in plain[after_brace : _skip_space(plain, after_brace)]:
        end = end.rstrip()  # the closing brace has a line of its own already
    member = f"\n{_INDENT * depth}{json.dumps(name, ensure_ascii=False)}: {_indented(value, depth)}"
    return text[:after_brace] + member + end + text[after_brace:]


def _indented(value: Any, depth: int) -> str:
    return json.dumps(value, ensure_ascii=False, indent=_INDENT).replace("\n", f"\n{_INDENT * depth}")


def _skip_space(plain: str, position: int) -> int:
    match = _SPACE.match(plain, position)
    return match.end() if match else position


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
        if shell_command := assistant.shell_command(name, server_command):
            say(f"Run this once:\n\n  {shell_command}\n")
            say(f"Or add this to {target} (--write does it for you):\n")
        else:
            say(f"Add this to {target} (--write does it for you):\n")
        click.echo(assistant.render(name, assistant.build_entry(server_command)), nl=False)
    if skill_file is not None:
        text = (files("bunko") / "skill" / "SKILL.md").read_text(encoding="utf-8")
        try:
            skill_file.parent.mkdir(parents=True, exist_ok=True)
            write_text_file(skill_file, text, mode=0o666)
        except OSError as error:
            raise SettingsError(
                f"{skill_file} cannot be written: {error.strerror or error}",
                hint="Check its permissions and the free space.",
            ) from error
        print_stderr(f"Installed the skill: {skill_file}")
    if not shared.library_paths().database.exists():
        return
    with suppress(BunkoError), shared.open(create=False, read_only=True) as library:
        active_names = {tool.name for tool in library.tools() if tool.active}
        for tool_name, seen_name in library.assistant_names().items():
            if tool_name in active_names and seen_name != tool_name:
                print_stderr(f"The assistant sees {tool_name} as {seen_name}.")


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
