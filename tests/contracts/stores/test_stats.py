"""What every store promises about counts, sizes and lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bunko.protocols import Store
from bunko.records import PreparedDocument, StorageSize
from bunko.stores import memory
from bunko.types import LineSpan, Tool
from tests.contracts.documents import prepared


def test_every_store_measures_like_the_memory_store(store: Store) -> None:
    reference = memory.build()
    measured = []
    for candidate in (reference, store):
        tool, other = candidate.tools.put(Tool("docs")), candidate.tools.put(Tool("other"))
        assert (candidate.stats.chunk_lengths(tool.id), candidate.stats.list_documents(tool.id)) == ([], [])
        assert candidate.stats.storage_size(tool.id) == StorageSize(0, 0, 0, 0)
        plain = prepared("b.md", "京都の寺", "server", "寺")
        # A table's row carries its header, so its text is not the text of its range.
        row = replace(plain.chunks[2], text="| 名前 |\n| 寺 |")
        named = PreparedDocument(plain.document, [*plain.chunks[:2], row], plain.packed_terms, [b"x", b"y", b"x"])
        long = prepared("長い.md", "検索" * 60_000, "検索の方法")
        vectors = {b"x": np.ones(8, np.float32), b"y": np.zeros(8, np.float32)}
        candidate.documents.write(tool.id, upsert=[long, named, prepared("a.md", "寺の庭")], vectors=vectors)
        candidate.documents.write(other.id, upsert=[prepared("c.md", "奈良の鹿と寺の話")])
        pages = [
            [item.uri for item in candidate.stats.list_documents(tool.id, skip=skip, limit=2)] for skip in (0, 2, 4)
        ]
        assert pages == [["a.md", "b.md"], ["長い.md"], []]
        measured.append(
            (
                candidate.stats.chunk_lengths(tool.id),
                candidate.stats.storage_size(tool.id),
                candidate.stats.list_documents(tool.id),
                candidate.stats.totals(tool.id),
            )
        )
    assert measured[0] == measured[1]
    lengths, room, listed, totals = measured[0]
    assert lengths == [(3, 1), (4, 1), (5, 1), (6, 1), (12, 1), (120_000, 1)]
    assert sum(number for _, number in lengths) == totals.chunks
    assert (room.vectors, room.dimension) == (2 * 8 * 4, 8)
    assert room.text > 3 * 120_000
    assert room.index > 3 * 120_000, "a long document's chunks keep their own text"
    assert (listed[1].title, listed[1].chunks, listed[1].characters) == ("title of b.md", 3, 13)
    assert listed[1].beginning == "京都の寺\nserver\n寺"


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
    recent = store.stats.recent_documents(tool.id, limit=4)
    assert [document.uri for document in recent] == ["c.md", "a.md", "b.md", "file.md"]
    assert (recent[0].title, recent[0].tags, recent[0].beginning) == ("title of c.md", ("b", "a", "旅行"), "大阪の城")
    assert recent[3].date.startswith("2023-11-1")
    (last,) = store.stats.recent_documents(tool.id, limit=9)[4:]
    assert (last.uri, last.date, last.lines) == ("log.txt#x", "", LineSpan(3, 4))
