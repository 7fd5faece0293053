"""What every store promises; the memory store is the truth that the others must rank like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.records import FailedDocument, Filter, PreparedDocument, StorageSize
from bunko.search.rank import SearchRequest, search
from bunko.stores import memory
from bunko.types import Chunk, LineSpan, SourceEntry, Tool
from tests.contracts.documents import prepared, search_results


def test_what_was_written_is_found_with_its_place_and_facts(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索の方法", "別の話", date="2024-01-15", tags=("設計",))])
    with store.read_transaction():
        hits = search(store, ToolIndex(store, tool.id, None).snapshot(), {tool.id: "docs"}, None, SearchRequest("検索"))
    assert [(hit.tool, hit.uri, hit.title, hit.date, hit.tags) for hit in hits] == [
        ("docs", "a.md", "title of a.md", "2024-01-15", ("設計",))
    ]
    assert hits[0].chunk == Chunk(0, 0, 5, 1, 1, "検索の方法", "# h", ("h",))


def test_a_removed_document_is_never_found_again(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    live = ToolIndex(store, tool.id, None)
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索の方法"), prepared("b.md", "検索の話")])
    assert {uri for uri, *_ in search_results(store, tool, live, "検索")} == {"a.md", "b.md"}
    store.documents.write(tool.id, remove=["a.md"])
    assert {uri for uri, *_ in search_results(store, tool, live, "検索")} == {"b.md"}
    assert {uri for uri, *_ in search_results(store, tool, ToolIndex(store, tool.id, None), "検索")} == {"b.md"}


def test_a_replaced_document_is_found_by_its_new_words_only(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    live = ToolIndex(store, tool.id, None)
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺")])
    store.documents.write(tool.id, upsert=[prepared("a.md", "奈良の鹿", "東大寺の大仏")])
    assert not search_results(store, tool, live, "京都")
    assert search_results(store, tool, live, "鹿")
    assert store.stats.totals(tool.id).documents == 1
    assert store.stats.totals(tool.id).chunks == 2


def test_the_generation_grows_with_what_a_search_could_see(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    first = store.documents.write(tool.id, upsert=[prepared("a.md", "x")])
    assert store.generation() == first
    assert store.documents.write(tool.id, touch=[SourceEntry("a.md", 1, 5, 9)]) == first
    assert store.documents.write(tool.id, remove=["a.md"]) > first


def test_a_timestamp_is_trusted_only_if_it_is_older_than_the_look(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    old, fresh = prepared("old.md", "x", modified_ns=1), prepared("fresh.md", "y", modified_ns=10**18 - 5)
    store.documents.write(tool.id, upsert=[old, fresh])
    known = store.documents.fingerprints(tool.id)
    assert (known["old.md"].modified_ns, known["fresh.md"].modified_ns) == (1, 0)
    store.documents.write(tool.id, touch=[SourceEntry("old.md", 7, 8, 10**18)])
    assert (
        store.documents.fingerprints(tool.id)["old.md"].size,
        store.documents.fingerprints(tool.id)["old.md"].modified_ns,
    ) == (7, 8)


def test_a_failure_is_remembered_until_the_document_is_right_again(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都")])
    store.documents.write(tool.id, fail=[FailedDocument(SourceEntry("a.md", 3, 4, 10**18), "h", "is binary")])
    assert [(one.uri, one.reason) for one in store.documents.failures(tool.id)] == [("a.md", "is binary")]
    assert store.documents.fingerprints(tool.id)["a.md"].content_hash == "h"
    assert store.stats.totals(tool.id).documents == 0
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都")])
    assert not store.documents.failures(tool.id)


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


def test_tools_are_kept_by_name(store: Store) -> None:
    first = store.tools.put(Tool("b", description="one"))
    store.tools.put(Tool("a"))
    again = store.tools.put(Tool("b", description="two", built={"words": 1}))
    assert again.id == first.id
    assert [(tool.name, tool.description) for tool in store.tools.all()] == [("a", ""), ("b", "two")]
    assert store.tools.all()[1].built == {"words": 1}


def test_two_tools_never_see_each_others_documents(store: Store) -> None:
    one, two = store.tools.put(Tool("one")), store.tools.put(Tool("two"))
    store.documents.write(one.id, upsert=[prepared("same.md", "京都の寺")])
    store.documents.write(two.id, upsert=[prepared("same.md", "奈良の寺")])
    assert [uri for uri, *_ in search_results(store, one, ToolIndex(store, one.id, None), "奈良")] == []
    assert store.documents.fingerprints(one.id)["same.md"] != store.documents.fingerprints(two.id)["same.md"]


def test_hostile_strings_survive_storage(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    texts = [
        "nul \0 inside 検索",
        "検索 '; DROP TABLE documents; --",
        "検索 \u202e\u200b\ufeff",
        "検索 👩‍👩‍👧 ﷽ Z͑ͫ̓a̴l",
    ]
    store.documents.write(tool.id, upsert=[prepared(f"{number} '\"\n*?.md", text) for number, text in enumerate(texts)])
    with store.read_transaction():
        live = ToolIndex(store, tool.id, None)
        hits = search(store, live.snapshot(), {tool.id: "docs"}, None, SearchRequest("検索", top_k=10))
    assert sorted(hit.chunk.text for hit in hits) == sorted(texts)


def test_every_store_ranks_like_the_memory_store(store: Store) -> None:
    reference = memory.build()
    corpus = [
        ("京都 寺 検索", "奈良 検索 検索"), ("検索 エンジン 設計", "設計 方針"), ("寺", "寺 寺 寺 京都"),
        ("server search design", "search search"), ("検索",), ("設計 検索 サーバー", "京都"),
    ]  # fmt: skip
    both = []
    for one in (reference, store):
        tool = one.put_tool(Tool("docs"))
        for number, chunks in enumerate(corpus):
            one.write(tool.id, upsert=[prepared(f"{number}.md", *chunks)])
        one.write(tool.id, remove=["2.md"])
        one.write(tool.id, upsert=[prepared("0.md", "京都 寺 寺 検索", "奈良")])
        live = ToolIndex(one, tool.id, None)
        both.append(
            [
                search_results(one, tool, live, query, top_k=20)
                for query in ("検索 設計", "寺", "server", "京都 検索 サーバー", "search")
            ]
        )
    assert both[0] == both[1]


def test_a_shadow_takes_the_place_of_its_tool_in_one_step(store: Store) -> None:
    tool, shadow = store.tools.put(Tool("docs")), store.tools.put(Tool("~docs"))
    live = ToolIndex(store, tool.id, None)
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺"), prepared("b.md", "奈良の鹿")])
    assert search_results(store, tool, live, "京都")
    store.documents.write(
        shadow.id,
        upsert=[prepared("b.md", "大阪の城")],
        fail=[FailedDocument(SourceEntry("c.md", 1, 1, 10**18), "h", "bad")],
    )
    assert not search_results(store, tool, live, "大阪")
    store.tools.swap(Tool("docs", id=tool.id, built={"words": 2}), shadow)
    assert [uri for uri, *_ in search_results(store, tool, live, "大阪 京都 奈良")] == ["b.md"]
    assert set(store.documents.fingerprints(tool.id)) == {"b.md", "c.md"}
    assert [(one.name, one.built) for one in store.tools.all()] == [("docs", {"words": 2})]
    assert store.check() == ""


def test_a_dropped_tool_takes_its_documents_along(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺")])
    store.tools.drop(tool.id)
    assert store.tools.all() == []
    assert store.documents.fingerprints(tool.id) == {}


def test_documents_are_listed_in_order_and_found_by_their_hash(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared(f"{name}.md", name) for name in "cab"])
    assert store.documents.uris(tool.id, limit=2) == ["a.md", "b.md"]
    assert store.documents.uris(tool.id, after="b.md") == ["c.md"]
    assert store.documents.uris_with_hash(tool.id, "hash of b") == ["b.md"]
    document = store.documents.get(tool.id, "a.md")
    assert document is not None
    assert (document.text, document.title) == ("a", "title of a.md")
    assert store.documents.get(tool.id, "nowhere") is None


def test_a_glob_of_many_stars_does_not_take_for_ever(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared(f"{'a' * 200}.md", "検索"), prepared("guide/a1/ab/c.md", "検索")])
    live = ToolIndex(store, tool.id, None)
    assert not search_results(store, tool, live, "検索", where=Filter(path="*a" * 30 + "b"))
    assert search_results(store, tool, live, "検索", where=Filter(path="**/a*b/c.md"))
    assert search_results(store, tool, live, "検索", where=Filter(path="*a*a*.md"))


def test_every_store_measures_like_the_memory_store(store: Store) -> None:
    reference = memory.build()
    found = []
    for one in (reference, store):
        tool, other = one.put_tool(Tool("docs")), one.put_tool(Tool("other"))
        assert (one.chunk_lengths(tool.id), one.list_documents(tool.id)) == ([], [])
        assert one.storage_size(tool.id) == StorageSize(0, 0, 0, 0)
        plain = prepared("b.md", "京都の寺", "server", "寺")
        # A table's row carries its header, so its text is not the one of its range.
        row = replace(plain.chunks[2], text="| 名前 |\n| 寺 |")
        named = PreparedDocument(plain.document, [*plain.chunks[:2], row], plain.packed_terms, [b"x", b"y", b"x"])
        long = prepared("長い.md", "検索" * 60_000, "検索の方法")
        vectors = {b"x": np.ones(8, np.float32), b"y": np.zeros(8, np.float32)}
        one.write(tool.id, upsert=[long, named, prepared("a.md", "寺の庭")], vectors=vectors)
        one.write(other.id, upsert=[prepared("c.md", "奈良の鹿と寺の話")])
        pages = [[item.uri for item in one.list_documents(tool.id, skip=skip, limit=2)] for skip in (0, 2, 4)]
        assert pages == [["a.md", "b.md"], ["長い.md"], []]
        found.append(
            (one.chunk_lengths(tool.id), one.storage_size(tool.id), one.list_documents(tool.id), one.totals(tool.id))
        )
    assert found[0] == found[1]
    lengths, room, listed, totals = found[0]
    assert lengths == [(3, 1), (4, 1), (5, 1), (6, 1), (12, 1), (120_000, 1)]
    assert sum(number for _, number in lengths) == totals.chunks
    assert (room.vectors, room.dimension) == (2 * 8 * 4, 8)
    assert room.text > 3 * 120_000
    assert room.index > 3 * 120_000, "a long document's chunks keep their own text"
    assert (listed[1].title, listed[1].chunks, listed[1].characters) == ("title of b.md", 3, 13)
    assert listed[1].beginning == "京都の寺\nserver\n寺"


def test_a_whole_document_comes_back_as_it_was_put(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    table = Chunk(0, 0, 2, 1, 1, "| h |\n| a |", "", ())  # its text is not the range it stands in
    long = prepared("long.md", "京" * 60_000, "都" * 60_000, tags=("設計",), date="2024-01-15")
    odd = prepared("odd.md", "ab")
    odd = PreparedDocument(odd.document, [table], odd.packed_terms, [b"name"])
    store.documents.write(tool.id, upsert=[odd, long], vectors={b"name": np.ones(4, np.float32)})
    store.documents.write(other.id, upsert=[prepared("a.md", "x")])
    assert store.documents.export(tool.id, ["odd.md", "nothing.md", "long.md"]) == [long, odd]
    assert store.documents.export(tool.id, []) == []
    touched = SourceEntry("odd.md", 9, 8, 10**18)
    store.documents.write(tool.id, touch=[touched])
    assert store.documents.export(tool.id, ["odd.md"])[0].document.entry == touched
    found = store.vectors.get([b"name", b"other"])
    assert {key: vector.tolist() for key, vector in found.items()} == {b"name": [1, 1, 1, 1]}


def test_a_shadow_becomes_a_tool_in_one_step(store: Store) -> None:
    kept = store.tools.put(Tool("kept"))
    store.documents.write(kept.id, upsert=[prepared("k.md", "大阪")])
    shadow = store.tools.put(Tool("~docs", active=False))
    store.documents.write(shadow.id, upsert=[prepared("a.md", "京都")])
    made = store.tools.adopt_documents(Tool("docs", description="new", built={"words": 1}), shadow)
    assert [(one.name, one.id, one.description) for one in store.tools.all()] == [
        ("docs", made.id, "new"),
        ("kept", kept.id, ""),
    ]
    live = ToolIndex(store, made.id, None)
    assert [uri for uri, *_ in search_results(store, made, live, "京都")] == ["a.md"]
    again = store.tools.put(Tool("~docs", active=False))
    assert again.id not in (made.id, kept.id)
    store.documents.write(again.id, upsert=[prepared("b.md", "奈良")])
    second = store.tools.adopt_documents(
        Tool("docs", source="/elsewhere", active=False, options={"exclude": ["x"]}), again
    )
    assert second.id == made.id
    stored = next(one for one in store.tools.all() if one.name == "docs")
    assert (stored.source, stored.active, stored.options, stored.built) == ("/elsewhere", False, {"exclude": ["x"]}, {})
    assert not search_results(store, second, live, "京都")
    assert [uri for uri, *_ in search_results(store, second, live, "奈良")] == ["b.md"]
    assert len(store.tools.all()) == 2
    assert list(store.documents.fingerprints(kept.id)) == ["k.md"]


def test_a_touched_entry_takes_its_chunks_along_to_other_lines(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    one, other = prepared("a.txt#x", "京都の寺", "奈良の鹿"), prepared("a.txt#y", "大阪の城")
    document = replace(one.document, entry=replace(one.document.entry, lines=LineSpan(5, 6)))
    chunks = [replace(chunk, first_line=chunk.first_line + 4, last_line=chunk.last_line + 4) for chunk in one.chunks]
    generation = store.documents.write(tool.id, upsert=[replace(one, document=document, chunks=chunks), other])
    assert (
        store.documents.fingerprints(tool.id)["a.txt#x"].first_line,
        store.documents.fingerprints(tool.id)["a.txt#y"].first_line,
    ) == (
        5,
        1,
    )
    moved = replace(document.entry, lines=LineSpan(2, 3))
    assert store.documents.write(tool.id, touch=[moved]) == generation
    assert store.documents.fingerprints(tool.id)["a.txt#x"].first_line == 2
    stored = store.documents.get(tool.id, "a.txt#x")
    assert stored is not None
    assert stored.lines == LineSpan(2, 3)
    (whole,) = store.documents.export(tool.id, ["a.txt#x"])
    assert whole.document.entry == moved
    lines = {found.chunk.text: found.chunk.first_line for found in store.documents.chunks([1, 2, 3]).values()}
    assert lines == {"京都の寺": 2, "奈良の鹿": 3, "大阪の城": 1}


def test_tags_are_counted_and_the_latest_documents_come_first(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    undated = prepared("log.txt#x", "日付なし")
    entry = replace(undated.document.entry, lines=LineSpan(3, 4), modified_ns=1_700_000_000 * 10**9)
    store.documents.write(
        tool.id,
        upsert=[
            prepared("b.md", "京都の寺", date="2024-01-15", tags=("旅行", "a")),
            prepared("a.md", "奈良の鹿", date="2024-01-15", tags=("旅行",)),
            prepared("c.md", "大阪の城", date="2024-03-01T10:00:00", tags=("b", "a", "旅行")),
            prepared("file.md", "いつか", modified_ns=1_700_000_000 * 10**9),
            replace(undated, document=replace(undated.document, entry=entry)),
        ],
    )
    store.documents.write(other.id, upsert=[prepared("z.md", "z", date="2030-01-01", tags=("z",))])
    assert store.stats.tags(tool.id) == [("旅行", 3), ("a", 2), ("b", 1)]
    found = store.stats.recent_documents(tool.id, limit=4)
    assert [one.uri for one in found] == ["c.md", "a.md", "b.md", "file.md"]
    assert (found[0].title, found[0].tags, found[0].beginning) == ("title of c.md", ("b", "a", "旅行"), "大阪の城")
    assert found[3].date.startswith("2023-11-1")
    (last,) = store.stats.recent_documents(tool.id, limit=9)[4:]
    assert (last.uri, last.date, last.lines) == ("log.txt#x", "", LineSpan(3, 4))
