"""Say messages in the language of the user, by a catalogue; what has no entry stays English."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from bunko.errors import BunkoError

Language = Literal["en", "ja"]

_VARIABLE = "BUNKO_DISPLAY_LANGUAGE"
# A value in a message may be a message, such as a count in a report, but not a whole page.
_MAX_DEPTH = 3
_language: Language = "en"


class _Template(NamedTuple):
    parts: tuple[str, ...]  # the English text around its values
    translation: str  # with {0}, {1} … for the values


def set_language(language: str | None) -> None:
    """Choose the language of messages; None is English."""
    global _language
    _language = "ja" if language == "ja" else "en"


def language() -> Language:
    """Return the language of messages."""
    return _language


def detect_language() -> None:
    """Choose the language by the environment or the user's own config file, before a library is open."""
    set_language(os.environ.get(_VARIABLE) or _language_of_user())


def _language_of_user() -> str | None:
    """Return the language in the user's own config file; one that cannot be read is reported when it is loaded."""
    from bunko.library.paths import user_config_folder

    folder = user_config_folder()
    try:
        texts = [path.read_bytes() for path in folder.iterdir() if path.suffix in (".toml", ".yaml")]
    except OSError:
        return None
    if not any(b"language" in text for text in texts):
        return None  # the settings take time to load, and `--help` should not
    from bunko.settings.files import CONFIG_NAMES, read_config

    path = next((path for name in CONFIG_NAMES if (path := folder / name).is_file()), folder)
    try:
        display = read_config(path).get("display")
    except BunkoError:
        return None
    return display.get("language") if isinstance(display, dict) else None


def translate(text: str) -> str:
    """Return a message in the user's language; unchanged if the catalogue does not have it."""
    if _language == "en" or not text:
        return text
    found = _translate(text)
    if found is None and "\n" in text:
        return "\n".join(_translate(line) or line for line in text.split("\n"))
    return found or text


def _translate(text: str, depth: int = 0) -> str | None:
    exact, templates = _catalogue()
    stripped = text.strip()
    if (found := exact.get(stripped)) is not None:
        return text.replace(stripped, found)
    for template in templates:
        if (values := _match(template.parts, stripped)) is not None:
            if depth < _MAX_DEPTH:
                values = [_translate(value, depth + 1) or value for value in values]
            return text.replace(stripped, template.translation.format(*values))
    return None


def _match(parts: tuple[str, ...], text: str) -> list[str] | None:
    """Return the values between the parts of a template, or None if it does not match."""
    first, *middle, last = parts
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return None
    values, position, end = [], len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, position, end)
        if found < 0:
            return None
        values.append(text[position:found])
        position = found + len(part)
    return [*values, text[position:end]]


@cache
def _catalogue() -> tuple[dict[str, str], list[_Template]]:
    """Return the translations of whole messages, and those of messages with values, the most specific first."""
    exact, templates = {}, []
    for english, translation in read_catalogue():
        if "{}" in english:
            templates.append(_Template(tuple(english.split("{}")), translation))
        else:
            exact[english] = translation
    templates.sort(key=lambda template: -sum(map(len, template.parts)))
    return exact, templates


def read_catalogue() -> Iterator[tuple[str, str]]:
    """Yield the English messages, with {} for values, and their translations."""
    for name in ("help.toml", "messages.toml"):
        text = files("bunko.interfaces.cli").joinpath("japanese", name).read_text(encoding="utf-8")
        for section in tomllib.loads(text).values():
            yield from section.items()
