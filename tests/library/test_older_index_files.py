"""Index files of an older version, or none: a search rebuilds them once, and says nothing about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.indexes.embedded import segment
from bunko.indexes.embedded.index import EmbeddedIndex
from bunko.runtime import array_file
from tests.conftest import Opener, Run


@pytest.fixture
def index_file(docs: Path, open_docs: Opener) -> Path:
    """The index file of a library with one document."""
    (docs / "garden.md").write_text("# 庭\n\n秋の京都で寺の庭を巡る。\n", encoding="utf-8")
    with open_docs() as library:
        library.reindex()
    return next((docs / ".rag-index" / "index").glob("*.segment"))


def make_older(path: Path) -> None:
    """Write an index file in the format before the current one."""
    arrays, stamp = array_file.load_arrays(path, format_version=segment.FORMAT)
    data = {name: array.copy() for name, array in arrays.items()}  # the file below them is replaced
    array_file.save_arrays(path, data, format_version=segment.FORMAT - 1, stamp=stamp)


def is_usable(docs: Path, open_docs: Opener) -> bool:
    with open_docs(read_only=True) as library:
        assert isinstance(library._index, EmbeddedIndex)
        library.search("庭")
        return not library._index.unsaved_tools()


@pytest.mark.parametrize("options", [[], ["--no-refresh"]], ids=["refresh", "no-refresh"])
def test_a_search_rebuilds_a_file_of_an_older_version_without_a_word(
    docs: Path, index_file: Path, open_docs: Opener, run: Run, options: list[str]
) -> None:
    make_older(index_file)
    ran = run("search", "庭", "--docs-dir", docs, *options)
    assert (ran.code, ran.err) == (0, "")
    assert "京都" in ran.out
    assert is_usable(docs, open_docs)


def test_a_search_writes_a_deleted_file_again(docs: Path, index_file: Path, open_docs: Opener, run: Run) -> None:
    index_file.unlink()
    assert run("search", "庭", "--docs-dir", docs).err == ""
    assert index_file.exists()
    assert is_usable(docs, open_docs)


def test_a_damaged_file_is_reported_once(docs: Path, index_file: Path, open_docs: Opener, run: Run) -> None:
    index_file.write_bytes(index_file.read_bytes()[:-64])
    errors = [run("search", "庭", "--docs-dir", docs).err for _ in range(2)]
    assert ["is truncated; rebuilding the index" in error for error in errors] == [True, False]


def test_a_library_that_is_only_read_gets_no_file(docs: Path, index_file: Path, open_docs: Opener) -> None:
    make_older(index_file)
    before = index_file.read_bytes()
    with open_docs(read_only=True) as library:
        assert library.search("庭").hits
    assert index_file.read_bytes() == before


def test_a_running_import_writes_the_file_instead(docs: Path, index_file: Path, open_docs: Opener) -> None:
    make_older(index_file)
    before = index_file.read_bytes()
    with open_docs() as importing, importing.write_lock():
        with open_docs() as library:
            assert library.search("庭", refresh=False).hits
        assert index_file.read_bytes() == before
