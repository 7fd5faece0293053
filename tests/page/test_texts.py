"""The texts of the page: the same in both languages, each of them used, none missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bunko.interfaces.page.rendering import load_texts
from tests.page.sources import MODULES, SCRIPTS, TEMPLATES

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
# t("search.label"), t('search.label'), translate(language, "search.label")
_LOOKUP = re.compile(r"""\b(?:t|translate)\(\s*(?:\w+,\s*)?(["'])([\w.]+)\1\s*([~+]?)""")
# "search.label" wherever it stands, and "search.mode_" or `search.mode_${mode}` with something behind it.
_QUOTED = re.compile(r"""["'`](\w+\.\w*)(?:["'`]|\$\{|\{)""")


@pytest.mark.parametrize("name", sorted(load_texts("en").keys() | load_texts("ja").keys()))
def test_a_text_has_the_same_values_in_both_languages(name: str) -> None:
    english, japanese = load_texts("en").get(name), load_texts("ja").get(name)
    assert english, f"{name} has no English text"
    assert japanese, f"{name} has no Japanese text"
    assert set(_PLACEHOLDER.findall(english)) == set(_PLACEHOLDER.findall(japanese))
    # A brace that is no placeholder would be one for str.format.
    assert english.count("{") == len(_PLACEHOLDER.findall(english))
    assert japanese.count("{") == len(_PLACEHOLDER.findall(japanese))


@pytest.mark.parametrize("file", [*TEMPLATES, *SCRIPTS, *MODULES], ids=lambda file: file.name)
def test_every_text_that_is_looked_up_exists(file: Path) -> None:
    names = load_texts("en").keys()
    for _, name, joined in _LOOKUP.findall(file.read_text("utf-8")):
        if joined:
            assert any(other.startswith(name) for other in names), f"no text begins with {name}"
        else:
            assert name in names


def test_every_text_is_used() -> None:
    used = {name for file in [*TEMPLATES, *SCRIPTS, *MODULES] for name in _QUOTED.findall(file.read_text("utf-8"))}
    beginnings = tuple(name for name in used if name.endswith(("_", ".")))
    assert [name for name in load_texts("en") if name not in used and not name.startswith(beginnings)] == []
