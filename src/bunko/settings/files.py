"""Find and read config files and `.env` files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bunko.errors import SettingsError
from bunko.settings.schema import SECTIONS
from bunko.settings.validate import describe_type

if TYPE_CHECKING:
    from pathlib import Path

CONFIG_NAMES = ("bunko.toml", "config.yaml", "config.toml")
_DOTENV_LINE = r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)"
_QUOTED_VALUE = r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?"""


def read_config(path: Path) -> dict[object, object]:
    """Read the config file given by the user."""
    if path.suffix.lower() not in (".toml", ".yaml", ".yml"):
        raise SettingsError(f"{path} is not a config file", hint="Name a .toml, .yaml or .yml file.")
    content = _parse_config(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path} contains {describe_type(content)}, not sections", hint="Write [section] tables.")
    return content


def find_config(folders: Sequence[Path], notices: list[str]) -> tuple[Path | None, dict[object, object]]:
    """Return path and content of the first config file in the folders; skip files of other programs."""
    for folder in folders:
        for name in CONFIG_NAMES:
            path = folder / name
            if not _is_readable_file(path):
                continue
            content = _parse_config(path)
            if isinstance(content, dict) and (name == "bunko.toml" or not SECTIONS.keys().isdisjoint(content)):
                return path, content
            notices.append(f"Skipped {path}: it has no section of bunko's settings.")
    return None, {}


def _is_readable_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder without access has no config file for this user
        return False


def _parse_config(path: Path) -> object:
    data = _read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path} is not UTF-8 (line {line})", hint="Save it as UTF-8.") from error
    if path.suffix.lower() == ".toml":
        import tomllib

        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise _syntax_error(path, "TOML", str(error)) from error
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        # The message of the error quotes the line, which may contain a key.
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _syntax_error(path, "YAML", f"{error.problem} (line {line})") from error
    except Exception as error:  # the constructors raise KeyError, AttributeError and others
        raise _syntax_error(path, "YAML", f"a value cannot be parsed ({type(error).__name__})") from error


def _syntax_error(path: Path, language: str, problem: str) -> SettingsError:
    return SettingsError(
        f"{path} is not valid {language}: {problem[:200]}",
        hint="Fix the file, or name another one with --config.",
    )


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror or error}", hint="Check the name and the permissions."
        ) from error


def read_dotenv(path: Path, notices: list[str]) -> dict[str, str]:
    """Return the names and values in a `.env` file, if it exists; skip invalid lines."""
    if not _is_readable_file(path):
        return {}
    values: dict[str, str] = {}
    invalid_lines: list[str] = []
    # bytes.splitlines splits at CR and LF only; str.splitlines would also split at U+2028 inside a value.
    for line_number, line in enumerate(_read_bytes(path).removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        try:
            match = re.fullmatch(_DOTENV_LINE, line.decode())
        except UnicodeDecodeError:
            match = None
        value = _dotenv_value(match[2]) if match else None
        if match and value is not None:
            values[match[1]] = value
        else:
            invalid_lines.append(str(line_number))
    if invalid_lines:
        lines = ", ".join(invalid_lines[:10]) + (", …" if len(invalid_lines) > 10 else "")
        notices.append(f"{path}: skipped lines that are not NAME=value: {lines}.")
    return values


def _dotenv_value(text: str) -> str | None:
    if text.lstrip()[:1] in ("'", '"'):
        match = re.fullmatch(_QUOTED_VALUE, text.strip())
        if not match:
            return None
        # Only quotes and backslashes are escaped, so that "C:\new" keeps its n.
        return match[1] if match[1] is not None else re.sub(r'\\(["\\])', r"\1", match[2])
    return re.split(r"\s#", text, maxsplit=1)[0].strip()
