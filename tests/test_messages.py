"""Error messages read alike: no period at the end of a message, and hints are sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bunko
from bunko import errors

SOURCE = Path(bunko.__file__).parent
ERRORS = {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.BunkoError)
}


def literal_end(node: ast.expr | None) -> str:
    """Return the end of a string literal, as far as it is written in the code."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return literal_end(node.values[-1])
    if isinstance(node, ast.BinOp):
        return literal_end(node.right)
    return ""


def raised_errors() -> Iterator[tuple[str, str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                hint = next((keyword.value for keyword in node.keywords if keyword.arg == "hint"), None)
                place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                yield place, literal_end(node.args[0] if node.args else None), literal_end(hint)


@pytest.mark.slow
def test_no_error_message_ends_with_a_period() -> None:
    calls = list(raised_errors())
    assert len(calls) > 100
    assert [place for place, message, _ in calls if message.rstrip().endswith((".", "。"))] == []


@pytest.mark.slow
def test_a_hint_is_a_sentence_or_ends_with_a_command() -> None:
    assert [place for place, _, hint in raised_errors() if hint.endswith((" ", ","))] == []
