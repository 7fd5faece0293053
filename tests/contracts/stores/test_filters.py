"""What every store promises about filters."""

from __future__ import annotations

import pytest

from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.records import Filter
from bunko.types import Tool
from tests.contracts.documents import prepared, search_results


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(path="guide/*"), {"guide/a.md"}),
        (Filter(path="**/*.md"), {"guide/a.md", "guide/deep/b.md", "c.md"}),
        (Filter(path="*.md"), {"guide/a.md", "guide/deep/b.md", "c.md"}),
        (Filter(path="guide/**"), {"guide/a.md", "guide/deep/b.md"}),
        (Filter(path="[!c].md"), {"guide/a.md", "guide/deep/b.md"}),
        (Filter(tags=("x",)), {"guide/a.md", "c.md"}),
        (Filter(tags=("x", "y")), {"c.md"}),
        (Filter(since="2024-02"), {"guide/deep/b.md", "c.md"}),
        (Filter(until="2024-03-01"), {"guide/a.md", "guide/deep/b.md"}),
        (Filter(since="2024-03-01", until="2024-03"), {"guide/deep/b.md"}),
        (Filter(path="nowhere/*"), set()),
    ],
)
def test_filters_choose_documents_by_path_tag_and_date(store: Store, where: Filter, expected: set[str]) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(
        tool.id,
        upsert=[
            prepared("guide/a.md", "検索", date="2024-01-15", tags=("x",)),
            prepared("guide/deep/b.md", "検索", date="2024-03-01", tags=("y",)),
            prepared("c.md", "検索", date="2024-05-05T10:00:00", tags=("x", "y")),
        ],
    )
    live = ToolIndex(store, tool.id, None)
    assert {uri for uri, *_ in search_results(store, tool, live, "検索", where=where)} == expected


def test_a_glob_of_many_stars_does_not_take_for_ever(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared(f"{'a' * 200}.md", "検索"), prepared("guide/a1/ab/c.md", "検索")])
    live = ToolIndex(store, tool.id, None)
    assert not search_results(store, tool, live, "検索", where=Filter(path="*a" * 30 + "b"))
    assert search_results(store, tool, live, "検索", where=Filter(path="**/a*b/c.md"))
    assert search_results(store, tool, live, "検索", where=Filter(path="*a*a*.md"))
