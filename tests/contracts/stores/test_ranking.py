"""How a store came to its documents makes no difference to a search."""

from __future__ import annotations

from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.stores import memory
from bunko.types import Tool
from tests.contracts.documents import prepared, search_results


def test_every_store_ranks_after_changes_like_one_that_was_just_filled(store: Store) -> None:
    before = [
        ("京都 寺 検索", "奈良 検索 検索"), ("検索 エンジン 設計", "設計 方針"), ("寺", "寺 寺 寺 京都"),
        ("server search design", "search search"), ("検索",), ("設計 検索 サーバー", "京都"),
    ]  # fmt: skip
    after = {number: chunks for number, chunks in enumerate(before) if number != 2}
    after[0] = ("京都 寺 寺 検索", "奈良")
    tool = store.tools.put(Tool("docs"))
    for number, chunks in enumerate(before):
        store.documents.write(tool.id, upsert=[prepared(f"{number}.md", *chunks)])
    store.documents.write(tool.id, remove=["2.md"])
    store.documents.write(tool.id, upsert=[prepared("0.md", *after[0])])
    fresh = memory.build()
    copy = fresh.tools.put(Tool("docs"))
    fresh.documents.write(copy.id, upsert=[prepared(f"{number}.md", *chunks) for number, chunks in after.items()])
    changed, filled = ToolIndex(store, tool.id, None), ToolIndex(fresh, copy.id, None)
    for query in ("検索 設計", "寺", "server", "京都 検索 サーバー", "search"):
        found = search_results(store, tool, changed, query, row_count=20)
        assert found == search_results(fresh, copy, filled, query, row_count=20)
        assert found
