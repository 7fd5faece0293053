"""Remember which lists of MCP servers the user has allowed: a list names commands, and may come with a folder."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from bunko.interfaces.chat.private_files import write_private
from bunko.interfaces.chat.server_config import ServerConfig
from bunko.library.opening.paths import user_data_folder
from bunko.runtime.remote import strip_credentials

_log = logging.getLogger("bunko.chat")

Approve = Callable[[Path, Sequence[ServerConfig]], bool]  # asks the user whether a list may be used


def refuse(path: Path, servers: Sequence[ServerConfig]) -> bool:
    """Use no list that has not been allowed before: there is no user to ask."""
    return False


def is_allowed(path: Path, servers: Sequence[ServerConfig], approve: Approve) -> bool:
    """Return whether a list of servers may be used; a list that has changed since is asked about again."""
    if not servers:
        return True
    key, digest = os.path.realpath(path), hashlib.sha256(path.read_bytes()).hexdigest()
    allowed = _read_allowed()
    if allowed.get(key) == digest:
        return True
    if not approve(path, servers):
        return False
    try:
        write_private(_allowed_path(), json.dumps({**allowed, key: digest}, indent=1, sort_keys=True))
    except OSError as error:
        _log.warning("It was not stored that %s may be used: %s", path, error)
    return True


def describe_server(server: ServerConfig) -> list[str]:
    """Return what using a server means: the command that is run or the address that is called, and what it is given.

    Variables such as LD_PRELOAD change what a harmless command does, and a header may carry a key to another party.
    """
    lines = [strip_credentials(server.written) if server.transport == "http" else server.written]
    if server.cwd:
        lines.append(f"in the folder {server.cwd}")
    if server.env:
        lines.append(f"with its own values of {', '.join(server.env)}")
    if server.variables:
        lines.append(f"it is given your {', '.join(server.variables)}")
    return lines


def _allowed_path() -> Path:
    return user_data_folder() / "mcp-lists.json"


def _read_allowed() -> dict[str, str]:
    with suppress(OSError, ValueError):
        allowed = json.loads(_allowed_path().read_text("utf-8"))
        if isinstance(allowed, dict):
            return allowed
    return {}
