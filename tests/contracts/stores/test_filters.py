"""What every store promises about filters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import QueryError
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.records import Filter
from bunko.stores.filters import glob_to_regex
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
    for hostile in ("**a" * 30 + "b", "a**" * 30 + "b", "**?" * 30 + "b", "**[ab]" * 30 + "b", "**/*a" * 30 + "b"):
        assert not search_results(store, tool, live, "検索", where=Filter(path=hostile))
    assert search_results(store, tool, live, "検索", where=Filter(path="**a**a**.md"))
    assert search_results(store, tool, live, "検索", where=Filter(path="guide/**/c.md"))
    assert search_results(store, tool, live, "検索", where=Filter(path="guide/**/ab/**/c.md"))
    assert search_results(store, tool, live, "検索", where=Filter(path="g**1*/a**c*"))
    assert not search_results(store, tool, live, "検索", where=Filter(path="g**/a**/d.md"))
    with pytest.raises(QueryError):
        search_results(store, tool, live, "検索", where=Filter(path="*" * 5_000))


@given(
    st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "[a]"]), min_size=1, max_size=8).map("".join),
    st.text("ab/", min_size=1, max_size=8),
)
def test_a_glob_matches_what_its_stars_can_stand_for(pattern: str, path: str) -> None:
    whole = pattern if "/" in pattern else f"**/{pattern}"
    assert bool(re.match(glob_to_regex(pattern), path)) is _fits(
        re.sub(r"\*{3,}", "**", re.sub(r"(?:\*\*/)+", "**/", whole)), path
    )


def _fits(pattern: str, path: str, before: str = "/") -> bool:
    """Match a glob in the obvious way, which takes exponential time."""
    if not pattern:
        return not path
    if pattern.startswith("**/") and before == "/":
        rest = pattern[3:]
        return _fits(rest, path) or any(char == "/" and _fits(rest, path[at + 1 :]) for at, char in enumerate(path))
    if pattern.startswith("**"):
        return any(_fits(pattern[2:], path[at:], "*") for at in range(len(path) + 1))
    if pattern.startswith("*"):
        return any(_fits(pattern[1:], path[at:], "*") for at in range(len(path) + 1) if "/" not in path[:at])
    if pattern.startswith("[a]"):
        return path.startswith("a") and _fits(pattern[3:], path[1:], "]")
    if pattern.startswith("?"):
        return path[:1] not in ("", "/") and _fits(pattern[1:], path[1:], "?")
    return path.startswith(pattern[0]) and _fits(pattern[1:], path[1:], pattern[0])


def test_a_filter_can_name_the_documents_of_each_tool(store: Store) -> None:
    first, second = store.tools.put(Tool("first")), store.tools.put(Tool("second"))
    for tool in (first, second):
        store.documents.write(tool.id, upsert=[prepared("a.md", "京都"), prepared("b.md", "京都")])
    where = Filter(selection="x", selected_uris={first.id: frozenset({"b.md"})})
    assert where
    assert [document.uri for document in store.documents.find(first.id, where)] == ["b.md"]
    assert [document.uri for document in store.stats.recent_documents(first.id, where=where)] == ["b.md"]
    assert len(store.documents.select(first.id, where)) == 1
    assert store.documents.find(second.id, where) == []
    assert store.documents.find(first.id, Filter(selection="x")) == [], "nobody has looked up what it names"
