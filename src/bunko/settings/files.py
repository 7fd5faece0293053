"""Takes folders and files; gives the tables of config files and the names and values of `.env` files."""

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
    """Read the config file that the user named."""
    if path.suffix.lower() not in (".toml", ".yaml", ".yml"):
        raise SettingsError(f"{path} is not a config file.", hint="Name a .toml, .yaml or .yml file.")
    content = _parse_config(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path} holds {describe_type(content)}, not sections.", hint="Write [section] tables.")
    return content


def find_config(folders: Sequence[Path], notices: list[str]) -> tuple[Path, dict[object, object]] | None:
    """Read the first config file in the folders; one that belongs to another program is passed over."""
    for folder in folders:
        for name in CONFIG_NAMES:
            path = folder / name
            if not _is_readable_file(path):
                continue
            content = _parse_config(path)
            if isinstance(content, dict) and (name == "bunko.toml" or not SECTIONS.keys().isdisjoint(content)):
                return path, content
            notices.append(f"{path} was skipped: it has none of bunko's sections.")
    return None


def _is_readable_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be entered holds no config file for this user
        return False


def _parse_config(path: Path) -> object:
    data = _read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path} is not UTF-8 (line {line}).", hint="Save it as UTF-8.") from error
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
        # The error's own text quotes the line, which may hold a key.
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _syntax_error(path, "YAML", f"{error.problem} (line {line})") from error
    except Exception as error:  # the constructors let KeyError, AttributeError and others through
        raise _syntax_error(path, "YAML", f"it cannot be read as values ({type(error).__name__})") from error


def _syntax_error(path: Path, language: str, problem: str) -> SettingsError:
    return SettingsError(
        f"{path} is not valid {language}: {problem[:200]}",
        hint="Correct it, or name another file with --config.",
    )


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror or error}.", hint="Check the name and the permissions."
        ) from error


def read_dotenv(path: Path, notices: list[str]) -> dict[str, str]:
    """Read names and values from a `.env` file, if there is one; lines that make no sense are passed over."""
    if not _is_readable_file(path):
        return {}
    values: dict[str, str] = {}
    strange: list[str] = []
    # Splitting bytes ends lines at CR and LF only; str.splitlines would also cut at U+2028 inside a value.
    for number, raw in enumerate(_read_bytes(path).removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if not raw.strip() or raw.lstrip().startswith(b"#"):
            continue
        try:
            match = re.fullmatch(_DOTENV_LINE, raw.decode())
        except UnicodeDecodeError:
            match = None
        value = _dotenv_value(match[2]) if match else None
        if match and value is not None:
            values[match[1]] = value
        else:
            strange.append(str(number))
    if strange:
        lines = ", ".join(strange[:10]) + (", …" if len(strange) > 10 else "")
        notices.append(f"{path}: not NAME=value, skipped: line {lines}.")
    return values


def _dotenv_value(text: str) -> str | None:
    if text.lstrip()[:1] in ("'", '"'):
        match = re.fullmatch(_QUOTED_VALUE, text.strip())
        if not match:
            return None
        # Only quotes and backslashes are escaped, so that "C:\new" keeps its n.
        return match[1] if match[1] is not None else re.sub(r'\\(["\\])', r"\1", match[2])
    return re.split(r"\s#", text, maxsplit=1)[0].strip()
