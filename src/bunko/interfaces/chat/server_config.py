"""Read which MCP servers a chat may use, from a file such as `config/mcp_servers.json`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bunko.errors import SettingsError

Transport = Literal["stdio", "http", "builtin"]

# Other clients' names of the same transports.
_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "builtin": "builtin",
}
_MAX_FILE_BYTES = 1_000_000
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """An MCP server: a command to start, a URL, or this library in the same process."""

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # values may be secrets
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: str = ""  # its command or URL as the list has it, without the values of variables
    variables: tuple[str, ...] = ()  # of the user's environment that its entry names


class ServerConfigs(NamedTuple):
    """The servers of a file, and what is wrong with the entries that are left out."""

    servers: tuple[ServerConfig, ...]
    problems: tuple[str, ...] = ()


def load_server_configs(path: Path, environment: Mapping[str, str] = os.environ) -> ServerConfigs:
    """Read the servers of a file; an entry that is wrong is reported, and the others are used."""
    entries = _read_entries(path)
    servers, problems = [], []
    for name, entry in entries.items():
        try:
            server = _parse_entry(name, entry, environment)
            if server is not None:
                words = [str(entry.get("command", "")), *entry.get("args", [])]
                variables = tuple(sorted(set(_VARIABLE.findall(json.dumps(entry)))))
                server = replace(server, written=str(entry.get("url") or " ".join(words)), variables=variables)
        except ValueError as error:
            problems.append(f"The MCP server {name} is not used: {error}. See {path}.")
        else:
            servers += [server] if server else []
    return ServerConfigs(tuple(servers), tuple(problems))


def _read_entries(path: Path) -> dict[str, Any]:
    hint = 'It should look like: {"mcpServers": {"NAME": {"command": "…", "args": ["…"], "env": {}}}}'
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise SettingsError(f"{path} is larger than a list of MCP servers can be", hint=hint)
        content = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SettingsError(
            f"Cannot read the list of MCP servers: {error.strerror or error}: {path}",
            hint="Set MCP_SERVERS_CONFIG to the file, or MCP_ENABLED=false to do without other servers.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not JSON: {error}", hint=hint) from None
    entries = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise SettingsError(f"{path} has no mcpServers", hint=hint)
    return entries


def _parse_entry(name: str, entry: Any, environment: Mapping[str, str]) -> ServerConfig | None:
    """Return the server of an entry, or None if it is disabled; raise ValueError if it is wrong."""
    if not isinstance(entry, dict):
        raise ValueError("its entry is not an object")
    for key in ("disabled", "enabled"):  # a program that is switched off must not be started
        if not isinstance(entry.get(key, False), bool):
            raise ValueError(f"{key} is neither true nor false")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return None
    transport_name = entry.get("transport", entry.get("type", "http" if "url" in entry else "stdio"))
    transport = _TRANSPORTS.get(transport_name) if isinstance(transport_name, str) else None
    if transport is None:
        raise ValueError(f"transport is {transport_name!r}, and known are stdio, http and builtin")
    if transport == "builtin":
        return ServerConfig(name, transport)
    if transport == "http":
        url = _text(entry, "url", environment)
        if not url.startswith(("http://", "https://")):
            raise ValueError("url is not an http or https address")
        return ServerConfig(name, transport, url=url, headers=_texts_by_name(entry, "headers", environment))
    args = entry.get("args", [])
    if not isinstance(args, list) or not all(isinstance(argument, str) for argument in args):
        raise ValueError("args is not a list of texts")
    command, cwd = _text(entry, "command", environment), entry.get("cwd")
    if not command:
        raise ValueError("it has neither a command nor a url")
    if cwd is not None and not isinstance(cwd, str):
        raise ValueError("cwd is not a text")
    expanded = tuple(_expand(argument, environment) for argument in args)
    return ServerConfig(name, transport, command, expanded, _texts_by_name(entry, "env", environment), cwd)


def _text(entry: Mapping[str, Any], key: str, environment: Mapping[str, str]) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return _expand(value, environment)


def _texts_by_name(entry: Mapping[str, Any], key: str, environment: Mapping[str, str]) -> dict[str, str]:
    values = entry.get(key) or {}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ValueError(f"{key} is not an object of texts")
    return {name: _expand(value, environment) for name, value in values.items()}


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace `${NAME}` by the environment variable of that name, so that the file needs no secrets."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ValueError(f"the environment variable {match[1]} is not set")
        return environment[match[1]]

    return _VARIABLE.sub(value, text)
