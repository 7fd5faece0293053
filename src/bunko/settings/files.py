"""Find and read config files and `.env` files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bunko.errors import SettingsError
from bunko.runtime.package_errors import package_errors
from bunko.settings.schema import CORE_SETTINGS, SECTIONS
from bunko.settings.validate import describe_type

if TYPE_CHECKING:
    from pathlib import Path

CONFIG_NAMES = ("bunko.toml", "config.yaml", "config.toml")
_DOTENV_LINE = r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)"
# A file of a documents folder may come from somebody else. TOML keys of many parts take time and memory that grow with
# the square of their length, so long lines are refused too.
_MAX_FOLDER_FILE_BYTES = 64_000
_MAX_FOLDER_LINE_BYTES = 1000
_UNREADABLE = object()
_QUOTED_VALUE = r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?"""


Table = dict[object, object]


class ConfigFile(NamedTuple):
    """A config file: its path and content, and whether it is the user's own."""

    path: Path
    table: Table
    trusted: bool


def read_config(path: Path) -> Table:
    """Read the config file given by the user."""
    if path.suffix.lower() not in (".toml", ".yaml", ".yml"):
        raise SettingsError(f"{path} is not a config file", hint="Name a .toml, .yaml or .yml file.")
    content = parse_config(path, _read_bytes(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path} contains {describe_type(content)}, not sections", hint="Write [section] tables.")
    return content


def find_configs(folders: Sequence[Path], is_untrusted: Callable[[Path], bool], notices: list[str]) -> list[ConfigFile]:
    """Return the first config file in the folders and, if it is not the user's own, the user's first one.

    Files of other programs are skipped, and those in folders that are not trusted also if they cannot be read.
    """
    configs: list[ConfigFile] = []
    for folder in folders:
        trusted = not is_untrusted(folder)
        if configs and not trusted:
            continue
        if config := _find_config(folder, trusted, notices):
            configs.append(config)
            if trusted:
                break
    return configs


def find_current_config(folder: Path, notices: list[str]) -> ConfigFile | None:
    """Return the config file of the current folder; one that has none of bunko's settings is another program's."""
    for path in (folder / name for name in CONFIG_NAMES):
        if _is_readable_file(path):
            content = _parse_untrusted(path, notices)
            if isinstance(content, dict) and (path.name == "bunko.toml" or _has_settings(content)):
                return ConfigFile(path, content, False)
    return None


# Sections that few other programs have: a key that is misspelled in one of them is meant for bunko.
_OWN_SECTIONS = ("embedding.", "chunker.", "chunking.", "scanner.", "chromadb.", "memos.")


def _has_settings(table: Table) -> bool:
    """Return whether a key of a config file is a setting, or may be one of an embedding provider."""
    names = {f"{setting.section}.{name}" for setting in CORE_SETTINGS.values() for name in setting.file_names}
    keys = {f"{section}.{key}" for section, content in table.items() if isinstance(content, dict) for key in content}
    return any(key in CORE_SETTINGS or key in names or key.startswith(_OWN_SECTIONS) for key in keys)


def _find_config(folder: Path, trusted: bool, notices: list[str]) -> ConfigFile | None:
    for name in CONFIG_NAMES:
        path = folder / name
        if not _is_readable_file(path):
            continue
        content = parse_config(path, _read_bytes(path)) if trusted else _parse_untrusted(path, notices)
        if content is _UNREADABLE:
            continue
        if isinstance(content, dict) and (name == "bunko.toml" or not SECTIONS.keys().isdisjoint(content)):
            return ConfigFile(path, content, trusted)
        notices.append(f"Skipped {path}: it has no section of bunko's settings.")
    return None


def _is_readable_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder without access has no config file for this user
        return False


def _parse_untrusted(path: Path, notices: list[str]) -> object:
    """Return what a config file in a folder that is not trusted says; `_UNREADABLE` with a notice if nothing."""
    try:
        return parse_config(path, _read_folder_file(path), trusted=False)
    except SettingsError as error:
        notices.append(f"Skipped {error.message}.")
        return _UNREADABLE


def parse_config(path: Path, data: bytes, *, trusted: bool = True) -> object:
    """Return what a config file with this path and content says."""
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
    with package_errors("PyYAML"):
        import yaml

        yaml.safe_load("a: b")  # what cannot work fails here
    try:
        # Aliases in aliases make a small file grow without limit.
        if not trusted and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise _syntax_error(path, "YAML for a documents folder", "it has aliases")
        return yaml.safe_load(text)
    except SettingsError:
        raise
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


def _read_folder_file(path: Path) -> bytes:
    """Read a file of a documents folder, which must be small."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_FOLDER_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror or error}", hint="Check its permissions."
        ) from error
    if len(data) > _MAX_FOLDER_FILE_BYTES or max(map(len, data.splitlines()), default=0) > _MAX_FOLDER_LINE_BYTES:
        raise SettingsError(
            f"{path} is too large for the settings of a documents folder",
            hint=f"Use at most {_MAX_FOLDER_FILE_BYTES:,} bytes, and {_MAX_FOLDER_LINE_BYTES:,} bytes in a line.",
        )
    return data


def read_dotenv(path: Path, notices: list[str], *, trusted: bool = True) -> dict[str, str]:
    """Return the names and values in a `.env` file, if it exists; skip invalid lines.

    One that is not trusted is skipped with a notice if it cannot be read.
    """
    if not _is_readable_file(path):
        return {}
    try:
        data = _read_bytes(path) if trusted else _read_folder_file(path)
    except SettingsError as error:
        if trusted:
            raise
        notices.append(f"Skipped {error.message}.")
        return {}
    values: dict[str, str] = {}
    invalid_lines: list[str] = []
    # bytes.splitlines splits at CR and LF only; str.splitlines would also split at U+2028 inside a value.
    for line_number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
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
