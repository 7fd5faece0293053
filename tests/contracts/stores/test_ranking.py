"""The memory store is the truth that every other store must rank like."""

from __future__ import annotations

from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.stores import memory
from bunko.types import Tool
from tests.contracts.documents import prepared, search_results


def test_every_store_ranks_like_the_memory_store(store: Store) -> None:
    reference = memory.build()
    corpus = [
        ("京都 寺 検索", "奈良 検索 検索"), ("検索 エンジン 設計", "設計 方針"), ("寺", "寺 寺 寺 京都"),
        ("server search design", "search search"), ("検索",), ("設計 検索 サーバー", "京都"),
    ]  # fmt: skip
    both = []
    for candidate in (reference, store):
        tool = candidate.tools.put(Tool("docs"))
        for number, chunks in enumerate(corpus):
            candidate.documents.write(tool.id, upsert=[prepared(f"{number}.md", *chunks)])
        candidate.documents.write(tool.id, remove=["2.md"])
        candidate.documents.write(tool.id, upsert=[prepared("0.md", "京都 寺 寺 検索", "奈良")])
        live = ToolIndex(candidate, tool.id, None)
        both.append(
            [
                search_results(candidate, tool, live, query, top_k=20)
                for query in ("検索 設計", "寺", "server", "京都 検索 サーバー", "search")
            ]
        )
    assert both[0] == both[1]
