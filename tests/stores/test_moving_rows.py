"""All rows of a library, read and written as they are, so that it can move to another store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bunko import stores
from bunko.errors import LibraryError, LibraryMoved
from bunko.protocols import RowPage, Store
from bunko.stores.sql import rows as sql_rows
from bunko.stores.sql.tables import MOVING_TABLES
from bunko.types import Tool
from tests.contracts.documents import prepared
from tests.library.full_library import digests, make_library


@pytest.fixture
def store(tmp_path: Path) -> Iterable[Store]:
    opened = stores.build("sqlite", tmp_path / "library.db")
    yield opened
    opened.close()


def test_a_full_library_has_rows_in_every_table(tmp_path: Path) -> None:
    """Else the tests of moving would not see that a table is forgotten."""
    make_library(tmp_path / "library", tmp_path / "docs")
    store = stores.build("sqlite", tmp_path / "library" / "library.db")
    assert {table for table, _ in digests(store)} == set(MOVING_TABLES)
    store.close()


def test_pages_have_few_rows_and_few_bytes_and_together_all_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_rows, "PAGE_ROWS", 4)
    monkeypatch.setattr(sql_rows, "PAGE_BYTES", 10_000)
    tool = store.tools.put(Tool("docs"))
    texts = ["short"] * 9 + ["long " * 3000] + ["short"] * 3
    store.documents.write(tool.id, upsert=[prepared(f"{n}.md", text) for n, text in enumerate(texts)])
    pages = list(store.rows.pages("documents"))
    assert max(len(page.rows) for page in pages) == 4
    assert [len(page.rows) for page in pages] == [4, 4, 2, 3]  # the long one ends its page
    assert [page.after for page in pages][1:] == [page.until for page in pages][:-1]
    assert (pages[0].after, pages[-1].until) == ((), ())
    assert sum(len(page.rows) for page in pages) == store.rows.count("documents") == 13


def test_rows_of_a_page_replace_what_lies_between_its_keys_and_nothing_else(store: Store) -> None:
    rows = store.rows
    tool = store.tools.put(Tool("docs"))
    for key in (10, 20, 30, 40):
        page = RowPage((), (tool.id, "copy", key), [(tool.id, tool.id, "copy", key, 1)])
        rows.put_page("index_frequencies", page, is_new=True)
    new_rows = [(tool.id, tool.id, "copy", key, count) for key, count in ((25, 2), (30, 1))]
    page = RowPage((tool.id, "copy", 10), (tool.id, "copy", 30), new_rows)
    assert rows.put_page("index_frequencies", page, is_new=False)
    assert not rows.put_page("index_frequencies", page, is_new=False)  # it is the same now
    assert store.index_statistics.frequencies(tool.id, "copy", [10, 20, 25, 30, 40]) == {10: 1, 25: 2, 30: 1, 40: 1}
    assert rows.last_key("index_frequencies") == (tool.id, "copy", 40)


def test_tools_are_changed_without_losing_their_documents(store: Store) -> None:
    rows = store.rows
    first, second, third = (store.tools.put(Tool(name)) for name in "abc")
    store.documents.write(first.id, upsert=[prepared("a.md", "one")])
    (page,) = rows.pages("tools")
    swapped = [(row[0], row[1], {"a": "b", "b": "a"}[row[2]], *row[3:]) for row in page.rows if row[2] != "c"]
    assert rows.put_page("tools", page._replace(rows=swapped), is_new=False)
    assert {tool.id: tool.name for tool in store.tools.all()} == {first.id: "b", second.id: "a"}
    assert store.documents.get(first.id, "a.md") is not None
    assert third.id in rows.last_ids().values()


def test_nobody_writes_to_a_library_that_has_moved_until_it_stays(store: Store) -> None:
    with store.rows.leave("elsewhere (today)"):
        pass
    assert store.moved_to() == "elsewhere (today)"
    with pytest.raises(LibraryMoved, match=r"has moved to elsewhere \(today\)"):
        store.tools.put(Tool("late"))
    store.rows.stay()
    assert store.tools.put(Tool("late")).id


def test_a_failed_move_leaves_no_mark(store: Store) -> None:
    with pytest.raises(RuntimeError), store.rows.leave("elsewhere"):
        raise RuntimeError
    assert store.moved_to() == ""


def test_nobody_writes_to_an_unfinished_copy(store: Store) -> None:
    store.rows.begin_copy("0123")
    with pytest.raises(LibraryError, match="unfinished copy"):
        store.tools.put(Tool("early"))
    assert store.rows.copy_of() == "0123"
    store.rows.put_values({"id": "0123", "generation": "4"}, {}, is_finished=True)
    assert (store.rows.is_unfinished(), store.rows.copy_of(), store.generation()) == (False, "0123", 4)
    store.tools.put(Tool("late"))  # from now on, it is more than a copy
    assert store.rows.copy_of() == ""
