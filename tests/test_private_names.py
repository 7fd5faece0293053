"""A leading underscore means "only this file": tests use public names of modules, as every other file does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
_PRIVATE = re.compile(r"(?:.*\.)?_(?!_)\w*")
# Parsing all files takes seconds; most have none of these.
_CANDIDATE = re.compile(r"[.\"]_[A-Za-z]|\bimport\b.*\b_[A-Za-z]|^ +_\w+,$", re.M)


def imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what a file imports from bunko: the name in the file and the name in bunko."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bunko":
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or "bunko", alias.name) for alias in node.names if alias.name.startswith("bunko"))


def private_names(text: str) -> set[str]:
    """Return the private names of modules of bunko that a file imports, reads or patches."""
    if not _CANDIDATE.search(text):
        return set()
    tree = ast.parse(text)
    imported = dict(imported_names(tree))
    modules = {name for name, original in imported.items() if original.rpartition(".")[2].islower()}
    found = {original for original in imported.values() if _PRIVATE.fullmatch(original)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules and _PRIVATE.fullmatch(name):
                found.add(f"{module}.{name}")
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[ast.Name(id=module), ast.Constant(value=str(name)), *_]
            ):
                found |= {f"{module}.{name}"} if module in modules and _PRIVATE.fullmatch(name) else set()
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(name)), *_]):
                found |= {name} if name.startswith("bunko.") and _PRIVATE.fullmatch(name) else set()
    return found


def test_no_test_uses_a_private_name_of_a_module() -> None:
    found = {path.relative_to(TESTS).as_posix(): private_names(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


def test_private_names_are_noticed_in_imports_attributes_and_patches() -> None:
    text = """
from bunko.text.analyzer import _parse
from bunko.stores import sqlite as store
store._open()
monkeypatch.setattr(store, "_LIMIT", 3)
monkeypatch.setattr("bunko.stores.sql.rows._PAGE", 3)
monkeypatch.setattr(store, "LIMIT", 3)
own._private
"""
    assert private_names(text) == {"_parse", "store._open", "store._LIMIT", "bunko.stores.sql.rows._PAGE"}
