"""Add a server to the configuration file of an assistant and keep everything else."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from bunko.errors import SettingsError
from bunko.interfaces.cli.assistants import Assistant, toml_table
from bunko.interfaces.cli.commented_json import parse_commented_json, set_member
from bunko.temporary_files import replace_text

_BY_HAND = "Add the lines above by hand."
_TOML_HEADER = re.compile(r"^\s*\[")


class Written(NamedTuple):
    """What a write did."""

    changed: bool
    backup: Path | None  # a file with the content before


def write_entry(path: Path, assistant: Assistant, name: str, entry: dict[str, Any]) -> Written:
    """Write a server into a configuration file; the old content is backed up, unless a backup of it exists."""
    path = path.resolve()  # write through a symlink instead of replacing it with a file
    old_text = path.read_text(encoding="utf-8") if path.exists() else None
    merge = _merge_toml if assistant.is_toml else _merge_json
    new_text = merge(path, old_text or "", assistant.section, name, entry)
    if new_text == old_text:
        return Written(False, None)
    return Written(True, replace_text(path, new_text))


def _merge_json(path: Path, text: str, section: str, name: str, entry: dict[str, Any]) -> str:
    try:
        config = parse_commented_json(text or "{}")
    except ValueError as error:
        raise SettingsError(f"{path} is not valid JSON: {error}", hint=_BY_HAND) from error
    if not isinstance(config, dict) or not isinstance(config.get(section, {}), dict):
        raise SettingsError(f"{path} has no object {section!r}", hint=_BY_HAND)
    if config.get(section, {}).get(name) == entry:
        return text
    expected = {**config, section: {**config.get(section, {}), name: entry}}
    if _is_plain_json(text):
        return json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    new_text = set_member(text, section, name, entry)  # Zed's own settings, for one, begin with comments
    if parse_commented_json(new_text) != expected:  # a name that occurs twice, for one
        raise SettingsError(f"{path} has a server {name!r} that cannot be replaced", hint=_BY_HAND)
    return new_text


def _is_plain_json(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def _merge_toml(path: Path, text: str, section: str, name: str, entry: dict[str, Any]) -> str:
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


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
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
