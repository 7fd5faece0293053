"""Collect the texts in the source code of bunko, with {} for values, as a person may read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

import bunko

ROOT = Path(bunko.__file__).parent
# Words with a space between them, of which one may be a value.
_PROSE = re.compile(r"[A-Za-z]{2,},? [a-z]|\{\},? [a-z]{2,}|[A-Za-z]{2,} \{\}")
_LOG_VALUE = re.compile(r"%(?:\.\d)?[sdgf]")
# A line of details, which --verbose prints and a program may read.
_LOG_METHODS = {"debug", "info", "exception"}
# One text with several conditions in it is several messages; more than this are not one message any more.
_MAX_FORMS = 24


@dataclass(frozen=True)
class SourceText:
    """A text with {} for its values, and where it stands."""

    text: str
    file: str
    line: int

    @property
    def is_prose(self) -> bool:
        """Whether it looks like words for people: no regular expression, SQL or name."""
        return bool(_PROSE.search(self.text))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r}"


def collect_texts(paths: Iterable[Path]) -> Iterator[SourceText]:
    """Yield the texts of modules, without docstrings, decorators, help and log messages of details."""
    for path in paths:
        for text, line in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            yield SourceText(text.strip(), path.relative_to(ROOT).as_posix(), line)


def collect_column_names(paths: Iterable[Path]) -> Iterator[SourceText]:
    """Yield the headings of tables."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in ("Column", "number") and node.args:
                for text in _forms(node.args[0]):
                    if text and text != "{}":
                        yield SourceText(text, path.relative_to(ROOT).as_posix(), node.lineno)


def _texts(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        body = node.body
        if isinstance(body[0] if body else None, ast.Expr) and isinstance(body[0].value, ast.Constant):  # type: ignore[attr-defined]
            body = body[1:]
        for statement in body:
            yield from _texts(statement)
    elif isinstance(node, ast.JoinedStr) or _is_text(node):
        for form in _forms(node):
            yield form, node.lineno  # type: ignore[attr-defined]
        for value in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(value, ast.FormattedValue) and _forms(value.value) == ["{}"]:
                yield from _texts(value.value)
    elif isinstance(node, ast.Call):
        yield from _call_texts(node)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def _call_texts(call: ast.Call) -> Iterator[tuple[str, int]]:
    name = _name(call.func)
    if name in _LOG_METHODS:
        return
    if name == "format_count":
        nouns = [form for argument in call.args[1:] for form in _forms(argument) if form != "{}"]
        for noun in nouns if len(nouns) == 2 else [form for noun in nouns for form in (noun, f"{noun}s")]:
            yield f"{{}} {noun}", call.lineno
        return
    for argument in call.args:
        for text, line in _texts(argument):
            yield _LOG_VALUE.sub("{}", text) if name == "warning" else text, line
    for keyword in call.keywords:
        if keyword.arg != "help":
            yield from _texts(keyword.value)
    yield from _texts(call.func)


def _forms(node: ast.AST) -> list[str]:
    """Return the texts that an expression may have: a condition between texts gives several, anything else is {}."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        forms = _forms(node.body) + _forms(node.orelse)
        return ["{}"] if "{}" in forms else forms
    if isinstance(node, ast.JoinedStr):
        parts = [
            _forms(value.value) if isinstance(value, ast.FormattedValue) and value.format_spec is None
            else ["{}"] if isinstance(value, ast.FormattedValue) else _forms(value)
            for value in node.values
        ]  # fmt: skip
        return ["".join(form) for form in islice(product(*parts), _MAX_FORMS)]
    return ["{}"]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
