"""Collect the texts in the source code of bunko, with {} for values, as a person may read them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

import bunko

ROOT = Path(bunko.__file__).parent
# Words with a space between them, of which one may be a value.
_PROSE = re.compile(r"[A-Za-z]{2,},? [a-z]|\{\},? [a-z]{2,}|[A-Za-z]{2,} \{\}")
_LOG_VALUE = re.compile(r"%(?:\.\d)?[sdgf]")
# Details that --verbose prints, the descriptions of settings, patterns, and lists of words in one text.
_OTHER_CALLS = {"debug", "info", "exception", "ProviderOption", "Setting", "compile", "split"}
# One text with several conditions in it is several messages; more than this are not one message any more.
_MAX_FORMS = 24
_VALUE = ["{}"]


@dataclass(frozen=True)
class _Names:
    """The variables of a function that hold texts, and those of them that stand in other texts only."""

    forms: Mapping[str, list[str]]
    inner: frozenset[str] = frozenset()


_NO_NAMES = _Names({})


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
        for text, line in _texts(ast.parse(path.read_text(encoding="utf-8")), _NO_NAMES):
            yield SourceText(text.strip(), path.relative_to(ROOT).as_posix(), line)


def collect_column_names(paths: Iterable[Path]) -> Iterator[SourceText]:
    """Yield the headings of tables."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in ("Column", "number") and node.args:
                for text in _forms(node.args[0], _NO_NAMES):
                    if text and text != "{}":
                        yield SourceText(text, path.relative_to(ROOT).as_posix(), node.lineno)


def collect_provider_summaries(paths: Iterable[Path]) -> Iterator[SourceText]:
    """Yield what users see of each embedder: the first sentence of its module."""
    for path in paths:
        module = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.Assign) and _single_name(node) == "PROVIDER" for node in module.body):
            summary = (ast.get_docstring(module) or "").partition("\n\n")[0]
            yield SourceText(" ".join(summary.split()), path.relative_to(ROOT).as_posix(), 1)


def _texts(node: ast.AST, names: _Names) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = _variables(node)
            for default in filter(None, (*node.args.defaults, *node.args.kw_defaults)):
                yield from _texts(default, _NO_NAMES)
        for statement in node.body[1:] if ast.get_docstring(node) is not None else node.body:
            yield from _texts(statement, names)
    elif isinstance(node, ast.Assign) and _single_name(node) in names.inner:
        # It is part of the texts that contain the variable, but the calls in it have texts of their own.
        for call in (child for child in ast.walk(node.value) if isinstance(child, ast.Call)):
            yield from _call_texts(call, names)
    elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        for form in _forms(node, names):
            yield form, node.lineno
        for value in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(value, ast.FormattedValue) and _forms(value.value, names) == _VALUE:
                yield from _texts(value.value, names)
    elif isinstance(node, ast.Call):
        yield from _call_texts(node, names)
    elif not isinstance(node, ast.Compare):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child, names)


def _call_texts(call: ast.Call, names: _Names) -> Iterator[tuple[str, int]]:
    name = _name(call.func)
    if name in _OTHER_CALLS:
        return
    if name == "format_count":
        nouns = [form for argument in call.args[1:] for form in _forms(argument, names) if form != "{}"]
        plurals = [f"{noun}s" for noun in nouns] if len(nouns) == 1 else []
        yield from ((f"{{}} {noun}", call.lineno) for noun in (*nouns, *plurals))
        return
    for argument in call.args:
        for text, line in _texts(argument, names):
            yield _LOG_VALUE.sub("{}", text) if name in ("warning", "error") else text, line
    for keyword in call.keywords:
        if keyword.arg != "help":
            yield from _texts(keyword.value, names)
    yield from _texts(call.func, names)


def _variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> _Names:
    """Return the variables that a text of a function contains, and the texts that they may hold."""
    assigned: dict[str, list[ast.expr]] = {}
    others = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    used, loaded = Counter[str](), Counter[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and (target := _single_name(node)):
            assigned.setdefault(target, []).append(node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.setdefault(node.id, [])
        elif isinstance(node, ast.AugAssign):
            others |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
            used[node.value.id] += 1
        elif isinstance(node, ast.Name):
            loaded[node.id] += 1
    forms: dict[str, list[str]] = {}
    for name in sorted(used.keys() & assigned.keys() - others):
        alternatives = [_forms(value, _NO_NAMES) for value in assigned[name]]
        is_extended = any(
            isinstance(part, ast.Name) and part.id == name for value in assigned[name] for part in ast.walk(value)
        )
        if alternatives and _VALUE not in alternatives and not is_extended:
            forms[name] = [form for texts in alternatives for form in texts]
    return _Names(forms, frozenset(name for name in forms if loaded[name] == used[name]))


def _forms(node: ast.AST, names: _Names) -> list[str]:
    """Return the texts that an expression may have: a condition between texts gives several, anything else is {}."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Name):
        return names.forms.get(node.id, _VALUE)
    if isinstance(node, ast.IfExp):
        forms = [*_forms(node.body, names), *_forms(node.orelse, names)]
        return _VALUE if "{}" in forms else forms
    if isinstance(node, ast.JoinedStr):
        parts = [_forms(value, names) for value in node.values]
        return list(dict.fromkeys("".join(form) for form in islice(product(*parts), _MAX_FORMS)))
    if isinstance(node, ast.FormattedValue) and node.format_spec is None and node.conversion == -1:
        return _forms(node.value, names)
    return _VALUE


def _single_name(assignment: ast.Assign) -> str:
    target = assignment.targets[0]
    return target.id if len(assignment.targets) == 1 and isinstance(target, ast.Name) else ""


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
