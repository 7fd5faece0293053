"""Views over several tools: kept until one of the tools changes."""

from __future__ import annotations

from pathlib import Path

from bunko import indexes
from bunko.stores import memory
from bunko.types import Tool
from tests.contracts.documents import prepared


def test_the_view_over_several_tools_is_kept_until_one_of_them_changes(tmp_path: Path) -> None:
    store = memory.build()
    notes, pages = store.tools.put(Tool("notes")), store.tools.put(Tool("pages"))
    index = indexes.build("embedded", store, tmp_path / "index")
    store.documents.write(notes.id, upsert=[prepared("a.md", "京都の寺")])
    store.documents.write(pages.id, upsert=[prepared("b.md", "奈良の鹿")])
    both = [notes.id, pages.id]
    first = index.view(both)
    assert index.view(both) is first
    assert index.view(both, without_vectors=[pages.id]) is not first
    assert index.view([notes.id]) is not first
    store.documents.write(pages.id, upsert=[prepared("c.md", "奈良の町")])
    second = index.view(both)
    assert (first.size, second.size, second.generation) == (2, 3, store.generation())
    store.documents.write(notes.id, remove=["a.md"])
    assert index.view(both).size == 2
    index.drop(pages.id)
    assert index.view(both).size == 2


def test_a_view_over_no_tool_has_the_generation_of_the_store() -> None:
    store = memory.build()
    notes = store.tools.put(Tool("notes"))
    index = indexes.build("embedded", store, None)
    assert index.view([]).generation == store.generation()
    store.documents.write(notes.id, upsert=[prepared("a.md", "京都の寺")])
    assert index.view([]).generation == store.generation()
