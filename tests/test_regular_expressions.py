"""Regular expressions match alike on every Python that bunko runs on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bunko

SOURCE = Path(bunko.__file__).parent
VALUE = "(value)"  # of an f-string, which may be a group
CHARACTER = re.compile(r"\\[^1-9]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # or a class of characters
POSSESSIVE = re.compile(r"[*+?}]\+")
POSSESSIVE_GROUP = re.compile(r"(?:(?<!\()\)|\\[1-9]\d?)(?:[*+?]|\{\d*,?\d*\})\+")


def literals() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(code)) if POSSESSIVE.search(code) else ():
            place = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield place, node.value
            elif isinstance(node, ast.JoinedStr):
                yield (
                    place,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values),
                )


def has_possessive_group(pattern: str) -> bool:
    return bool(POSSESSIVE_GROUP.search(CHARACTER.sub("x", pattern)))


def test_no_pattern_repeats_a_group_possessively() -> None:
    patterns = [(place, text) for place, text in literals() if POSSESSIVE.search(text)]
    assert len(patterns) > 20
    places = [f"{place}: {text!r}" for place, text in patterns if has_possessive_group(text)]
    assert not places, (
        "Python 3.11.0 to 3.11.4 match groups with *+, ++, ?+ and {m,n}+ wrongly: (?:ab?c)?+ matches a. Write "
        "it with single characters, which may have *+, or (?>(?:ab?c)?), which takes memory each time it repeats:\n"
        + "\n".join(places)
    )


@pytest.mark.parametrize(
    "pattern", [r"(?:ab?)*+", r"(a)?+", r"(?:[)]b){2,3}+", r"(a)\1*+", rf"{VALUE}++", r"\\(?:a)++"]
)
def test_a_possessive_group_is_recognized(pattern: str) -> None:
    assert has_possessive_group(pattern)


@pytest.mark.parametrize("pattern", [r"[^)]*+", r"\)*+", r"[]()]++", r"\d{2,}+", r"(?>(?:ab?)*)", r"[\])]?+", "'()*+,"])
def test_characters_may_be_repeated_possessively(pattern: str) -> None:
    assert not has_possessive_group(pattern)
