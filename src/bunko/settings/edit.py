"""Change settings in a config file and keep everything else in it: comments, order and blank lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bunko.errors import SettingsError
from bunko.settings.files import Table, parse_config

_HEADER = re.compile(r"\s*\[\[?\s*([^\]]*?)\s*\]\]?\s*(?:#.*)?")
_YAML_SECTION = re.compile(r"([A-Za-z_]\w*)\s*:\s*(?:#.*)?")
_TRAILING_COMMENT = re.compile(r"""\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"'\[{]+)(\s+#.*)""")
_INDENT = "  "


def edit_config(path: Path, text: str, changes: Mapping[str, object]) -> str:
    """Return the text of a config file with some settings changed, or removed if their value is None.

    Raise an error if they are written in a way that cannot be changed without touching anything else.
    """
    is_yaml = path.suffix.lower() != ".toml"
    table = _parse(path, text)
    expected = {section: dict(content) if isinstance(content, dict) else content for section, content in table.items()}
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for key, value in changes.items():
        section, _, name = key.partition(".")
        content = expected.get(section) or {}
        if not isinstance(content, dict):
            raise _edit_error(path, changes)
        if value is None:
            content.pop(name, None)
        else:
            content[name] = value
        if content or section in expected:
            expected[section] = content
        lines = _edit_line(lines, section, name, value, is_yaml=is_yaml)
    new_text = "".join(lines)
    try:
        is_right = _without_empty(_parse(path, new_text)) == _without_empty(expected)
    except SettingsError:
        is_right = False
    if not is_right:
        raise _edit_error(path, changes)
    return new_text


def _parse(path: Path, text: str) -> Table:
    content = parse_config(path, text.encode())
    return content if isinstance(content, dict) else {}


def _without_empty(table: Table) -> Table:
    return {section: content for section, content in table.items() if content not in ({}, None)}


def _edit_error(path: Path, changes: Mapping[str, object]) -> SettingsError:
    lines = ", ".join(f"{key} = {_value_text('' if value is None else value)}" for key, value in changes.items())
    return SettingsError(
        f"{path} is written in a way that cannot be changed automatically",
        hint=f"Write one setting a line below the name of its section, or set by hand: {lines}",
    )


def _edit_line(lines: Sequence[str], section: str, name: str, value: object, *, is_yaml: bool) -> list[str]:
    """Return lines in which a setting has a value, or is not set if that is None."""
    start, end = _section_bounds(lines, section, is_yaml=is_yaml)
    sign = ":" if is_yaml else "="
    if start is None:
        if value is None:
            return list(lines)
        header = f"{section}:\n" if is_yaml else f"[{section}]\n"
        blank = ["\n"] if lines and lines[-1].strip() else []
        return [*lines, *blank, header, _setting_line(name, value, is_yaml=is_yaml)]
    pattern = re.compile(rf"(\s*){re.escape(name)}\s*{sign}")
    for position in range(start, end):
        if match := pattern.match(lines[position]):
            comment = _TRAILING_COMMENT.fullmatch(lines[position][match.end() :].rstrip("\r\n"))
            line = _setting_line(name, value, is_yaml=is_yaml, indent=match[1])
            new = [] if value is None else [f"{line.rstrip()}{comment[1] if comment else ''}\n"]
            return [*lines[:position], *new, *lines[position + 1 :]]
    if value is None:
        return list(lines)
    # Below the line of a starter file that shows the default, else at the end of the section.
    default = re.compile(rf"\s*#\s?{re.escape(name)}\s*{sign}")
    positions = [position for position in range(start, end) if default.match(lines[position])]
    position = positions[0] + 1 if positions else end
    while not positions and position > start and not lines[position - 1].strip():
        position -= 1
    settings = [line for line in lines[start:end] if line.strip() and not line.lstrip().startswith("#")]
    indent = settings[0][: len(settings[0]) - len(settings[0].lstrip())] if settings else None
    line = _setting_line(name, value, is_yaml=is_yaml, indent=indent)
    return [*lines[:position], line, *lines[position:]]


def _setting_line(name: str, value: object, *, is_yaml: bool, indent: str | None = None) -> str:
    text = _value_text(value)
    return f"{_INDENT if indent is None else indent}{name}: {text}\n" if is_yaml else f"{indent or ''}{name} = {text}\n"


def _value_text(value: object) -> str:
    # Texts, numbers, truth values and lists are written alike in JSON, TOML and YAML.
    return json.dumps(value, ensure_ascii=False)


def _section_bounds(lines: Sequence[str], section: str, *, is_yaml: bool) -> tuple[int | None, int]:
    """Return the positions of the first line after the header of a section and of the first line after the section."""
    start = None
    for position, line in enumerate(lines):
        match = (_YAML_SECTION if is_yaml else _HEADER).fullmatch(line.rstrip("\r\n"))
        is_other = is_yaml and bool(line.strip()) and not line.startswith((" ", "\t", "#"))
        if match is None and not is_other:
            continue
        if start is not None:
            return start, position
        if match is not None and match[1] == section:
            start = position + 1
    return start, len(lines)
