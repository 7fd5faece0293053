"""Choose the language of the page by what the browser prefers, and look its texts up."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from starlette.requests import Request

Language = Literal["en", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "ja")


def choose_language(request: Request) -> Language:
    """Return the language that a browser prefers; `?lang=` overrides it."""
    if (language_parameter := request.query_params.get("lang")) in LANGUAGES:
        return "ja" if language_parameter == "ja" else "en"
    best: tuple[float, Language] = (0.0, "en")
    for part in request.headers.get("accept-language", "").split(","):
        tag, _, weight = part.strip().lower().partition(";q=")
        language = tag.partition("-")[0]
        if language in LANGUAGES and (quality := _quality(weight)) > best[0]:
            best = (quality, "ja" if language == "ja" else "en")
    return best[1]


def _quality(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0


@cache
def load_texts(language: Language) -> dict[str, str]:
    """Return the texts of the page in a language, by section and name: `search.placeholder`."""
    content = (files("bunko.interfaces.page") / "strings" / f"{language}.toml").read_text("utf-8")
    sections = tomllib.loads(content)
    return {f"{section}.{name}": text for section, texts in sections.items() for name, text in texts.items()}


def translate(language: Language, name: str, /, **values: object) -> str:
    """Return a text with its values."""
    text = load_texts(language)[name]
    return text.format(**values) if values else text


def script_texts(language: Language, *sections: str) -> dict[str, str]:
    """Return the texts that scripts need: those of some sections."""
    return {name: text for name, text in load_texts(language).items() if name.partition(".")[0] in sections}
