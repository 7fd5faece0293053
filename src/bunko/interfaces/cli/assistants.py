"""The assistants that bunko can be connected to: where their configuration is and how a server is written in it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Assistant:
    """An assistant that starts MCP servers."""

    title: str
    config_file: Callable[[], Path]
    section: str = "mcpServers"  # of the configuration: servers by name
    build_entry: Callable[[Sequence[str]], dict[str, Any]] = lambda command: _command_and_args(command)
    is_toml: bool = False
    skills_folder: Callable[[], Path] | None = None  # None: it reads no skills from a folder
    add_command: str = ""  # its own command that adds a server; the name and the server's command follow

    def render(self, name: str, entry: dict[str, Any]) -> str:
        """Return the lines for the configuration file."""
        if self.is_toml:
            return toml_table(self.section, name, entry)
        return json.dumps({self.section: {name: entry}}, ensure_ascii=False, indent=2) + "\n"

    def shell_command(self, name: str, server_command: Sequence[str]) -> str:
        """Return a command that adds the server, or an empty text if the assistant has none."""
        return f"{self.add_command} {shlex.quote(name)} -- {shlex.join(server_command)}" if self.add_command else ""


def toml_table(section: str, name: str, entry: dict[str, Any]) -> str:
    """Return a server as a TOML table; strings and lists are written as in JSON."""
    key = name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    lines = [f"{field} = {json.dumps(value, ensure_ascii=False)}" for field, value in entry.items()]
    return "\n".join([f"[{section}.{key}]", *lines]) + "\n"


def _command_and_args(command: Sequence[str]) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:])}


def _stdio_entry(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_command_and_args(command)}


def _opencode_entry(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(command), "enabled": True}


def _zed_entry(command: Sequence[str]) -> dict[str, Any]:
    return {"source": "custom", **_command_and_args(command)}


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


def _codex_home() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"


def _zed_settings() -> Path:
    return _application_data("Zed", "settings.json")() if os.name == "nt" else _user_config("zed", "settings.json")()


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
        _codex_home,
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
        build_entry=_opencode_entry,
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
    "zed": Assistant("Zed", _zed_settings, section="context_servers", build_entry=_zed_entry),
}
