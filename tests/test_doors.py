"""What no import-linter can see: which attributes and names the rooms of the package take from each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import bunko

ROOT = Path(bunko.__file__).parent


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def test_no_module_imports_from_the_package_itself_what_is_not_a_module() -> None:
    taken = [
        f"{path}:{node.lineno} {alias.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "bunko"
        for alias in node.names
        if not (ROOT / alias.name).is_dir() and not (ROOT / f"{alias.name}.py").is_file()
    ]
    assert not taken, "The package imports the library, which would import the package"


def test_nothing_outside_the_library_reaches_for_its_store() -> None:
    reaching = []
    for path, tree in modules():
        if path.startswith(("library/", "stores/", "ingest/")):  # an import is given the store that it writes
            continue
        nodes = list(ast.walk(tree))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}  # a method, as of feedback
        reaching += [
            f"{path}:{node.lineno} {ast.unparse(node)}"
            for node in nodes
            if isinstance(node, ast.Attribute) and node.attr == "store" and id(node) not in called
        ]
    # The metrics of a server say of what kind the store is.
    assert [place for place in reaching if not place.startswith("interfaces/http/monitoring.py")] == [], (
        "Use a part of the library: tools, documents, stats, storage, tokens, audit, …"
    )
