"""Source code is read when it is asked for: by a setting, by its extension, or by a pattern."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bunko.sources.gitignore import named_endings
from bunko.types.tool_options import ToolOptions
from tests.conftest import Opener
from tests.library.packs import OpenNamed


@pytest.fixture
def project(docs: Path) -> Path:
    (docs / "notes.md").write_text("The counter counts apples.\n", encoding="utf-8")
    (docs / "counter.py").write_text("def count(apples):\n    return len(apples)\n", encoding="utf-8")
    (docs / "page.rst").write_text("Apples\n======\n\nText.\n", encoding="utf-8")
    (docs / "data.csv").write_text("apples,3\n", encoding="utf-8")
    return docs


def test_a_folder_of_notes_is_not_flooded_by_code(project: Path, open_docs: Opener) -> None:
    library = open_docs()
    library.reindex()
    assert {hit.uri for hit in library.search("apples").hits} == {"notes.md", "page.rst"}


def test_a_setting_turns_code_on_beside_the_documents(project: Path, open_docs: Opener) -> None:
    library = open_docs(BUNKO_SCANNER_SOURCE_CODE="true")
    library.reindex()
    hits = {hit.uri: hit for hit in library.search("apples").hits}
    assert set(hits) == {"notes.md", "page.rst", "counter.py"}
    unchanged = library.reindex()
    assert (unchanged.added, unchanged.unchanged) == (0, 3)


def test_a_pattern_with_an_ending_reads_files_that_are_not_read_by_default(
    project: Path, open_named: OpenNamed
) -> None:
    library = open_named("home")
    options = ToolOptions(include=("*.py", "data.csv"))
    library.tools.add("code", "The code", project, options=options)
    library.import_tools(["code"])
    assert {hit.uri for hit in library.search("apples", tool="code").hits} == {"counter.py", "data.csv"}


@pytest.mark.parametrize(
    ("pattern", "ending"),
    [
        ("*.py", ".py"),
        ("src/**/*.RS", ".rs"),
        ("data.csv", ".csv"),
        ("notes/", ""),
        ("notes/v1.2", ""),
        ("!*.py", ""),
        ("*", ""),
        ("*.[ch]", ""),
        ("drafts", ""),
    ],
)
def test_a_pattern_names_an_ending_only_if_it_ends_in_one(pattern: str, ending: str) -> None:
    assert named_endings([pattern]) == ((ending,) if ending else ())


def test_code_without_its_parser_is_announced_with_what_to_install(
    project: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert open_docs().reindex().notices == []
    library = open_docs(BUNKO_SCANNER_SOURCE_CODE="true")
    [notice] = [notice for notice in library.reindex(rebuild=True).notices if "bunko[code]" in notice]
    assert notice.endswith("--force")
    monkeypatch.delitem(sys.modules, "tree_sitter")
    assert not [notice for notice in library.reindex(rebuild=True).notices if "bunko[code]" in notice]
