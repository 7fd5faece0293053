"""Look up the texts of the page in a language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from bunko.interfaces.sender import LANGUAGES
from bunko.messages import Language
from bunko.types.ranking import OPTIONS


@cache
def load_texts(language: Language) -> dict[str, str]:
    """Return the texts of the page in a language, by section and name: `search.placeholder`."""
    content = (files("bunko.interfaces.page") / "strings" / f"{language}.toml").read_text("utf-8")
    sections = tomllib.loads(content)
    texts = {f"{section}.{name}": text for section, texts in sections.items() for name, text in texts.items()}
    return texts | {f"ranking.{name}": option.labels[LANGUAGES.index(language)] for name, option in OPTIONS.items()}


def translate(language: Language, name: str, /, **values: object) -> str:
    """Return a text with its values."""
    text = load_texts(language)[name]
    return text.format(**values) if values else text


def script_texts(language: Language, *sections: str) -> dict[str, str]:
    """Return the texts that scripts need: those of some sections."""
    return {name: text for name, text in load_texts(language).items() if name.partition(".")[0] in sections}
