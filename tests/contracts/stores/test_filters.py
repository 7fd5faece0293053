"""What every store promises about filters."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko import stores
from bunko.errors import QueryError
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.stores.filters import document_matcher, effective_date, glob_to_regex
from bunko.stores.sql.facts import build_facts
from bunko.types import SourceEntry, Tool
from bunko.types.records import Filter
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


DATES = st.sampled_from(
    [
        "",
        "2023-12-31",
        "2024-01",
        "2024-01-15",
        "2024-01-15T09:30:00",
        "2024-01-15T23:30:00+09:00",
        "2024-01-15T01Z",
        "x",
    ]
)
TAGS = st.lists(st.sampled_from(["a", "b", '"', "日記", "a b"]), unique=True, max_size=3).map(tuple)


@given(
    st.lists(st.tuples(DATES, TAGS, st.integers(0, 2 * 10**18)), max_size=8),
    TAGS,
    DATES,
    DATES,
    st.sampled_from(["", "Asia/Tokyo", "America/New_York"]),
)
def test_columns_of_facts_select_what_the_memory_store_selects(
    documents: list[tuple[str, tuple[str, ...], int]], tags: tuple[str, ...], since: str, until: str, zone: str
) -> None:
    where = Filter(tags=tags, since=since, until=until, zone=zone)
    rows = [
        (number, f"{number}.md", date, modified_ns, number % 2, json.dumps(tag_list))
        for number, (date, tag_list, modified_ns) in enumerate(documents)
    ]
    matches = document_matcher(where, 1)
    assert build_facts(rows).select(1, where).tolist() == [
        number
        for number, (date, tag_list, modified_ns) in enumerate(documents)
        if matches("", effective_date(date, modified_ns, number % 2), frozenset(tag_list))
    ]


def test_a_filter_selects_what_was_written_since_the_last_one(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("~docs"))
    where = Filter(tags=("x",), since="2024")

    def uris() -> set[str]:
        with store.read_transaction():
            return {document.uri for document in store.documents.find(tool.id, where)} & {
                row.uri for row in store.documents.chunks(chunk_ids(store.documents.select(tool.id, where))).values()
            }

    def chunk_ids(document_ids: Sequence[int]) -> list[int]:
        chunks = store.changes.chunks_since(tool.id, 0)
        return [chunk.chunk_id for chunk in chunks if chunk.document_id in document_ids]

    assert uris() == set()
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索", date="2024-01-15", tags=("x",))])
    assert uris() == {"a.md"}
    store.documents.write(tool.id, upsert=[prepared("b.md", "検索", tags=("x",))])
    assert uris() == {"a.md"}, "the date of its file is of 1970"
    store.documents.write(tool.id, touch=[SourceEntry("b.md", 1, 1_720_000_000 * 10**9, 0)])
    assert uris() == {"a.md", "b.md"}
    store.documents.write(tool.id, remove=["a.md"])
    assert uris() == {"b.md"}
    store.documents.write(other.id, upsert=[prepared("c.md", "検索", date="2024-01-15", tags=("x",))])
    assert uris() == {"b.md"}
    store.tools.swap(tool, other)
    assert uris() == {"c.md"}


def test_a_second_filter_reads_no_documents(tmp_path: Path) -> None:
    store = stores.build("sqlite", tmp_path / "library.db", None)
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索", date="2024-01-15", tags=("x",))])
    assert len(store.documents.select(tool.id, Filter(tags=("x",)))) == 1
    statements: list[str] = []
    with store.read_transaction():
        database = store.documents._database  # type: ignore[attr-defined]
        with database._readers.connection() as connection:
            connection.set_trace_callback(statements.append)
        assert len(store.documents.select(tool.id, Filter(since="2024"))) == 1
        connection.set_trace_callback(None)
    assert statements
    assert not any("tags" in statement for statement in statements)
    store.close()
