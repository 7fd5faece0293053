"""What every store promises about counts, sizes and lists."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from bunko.protocols import Store
from bunko.stores.filters import separate_chunk_text
from bunko.types import LineSpan, Tool
from bunko.types.build_info import BuildInfo
from bunko.types.records import PreparedDocument, StorageSize, Totals
from tests.contracts.documents import prepared


def measure(documents: Iterable[PreparedDocument], dimension: int) -> tuple[Totals, StorageSize]:
    """Count documents and their bytes one by one, as a store would that keeps no counts."""
    documents = list(documents)
    chunks = [(chunk, one.document.text.text) for one in documents for chunk in one.chunks]
    keys = [key for one in documents for key in one.vector_keys if key is not None]
    texts = [one.document.text.text for one in documents]
    parts = [
        (chunk.heading, json.dumps(chunk.heading_path, ensure_ascii=False), separate_chunk_text(chunk, text) or "")
        for chunk, text in chunks
    ]
    index = sum(len(one.packed_terms) for one in documents) + sum(len("".join(part).encode()) for part in parts)
    dimension = dimension if keys else 0
    return (
        Totals(len(documents), len(chunks), len(keys), sum(map(len, texts))),
        StorageSize(sum(len(text.encode()) for text in texts), index, 4 * dimension * len(set(keys)), dimension),
    )


def test_documents_are_measured_and_listed(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    assert (store.stats.chunk_lengths(tool.id), store.stats.list_documents(tool.id)) == ([], [])
    assert store.stats.storage_size(tool.id) == StorageSize(0, 0, 0, 0)
    plain = prepared("b.md", "京都の寺", "server", "寺")
    # A table's row carries its header, so its text is not the text of its range.
    row = replace(plain.chunks[2], text="| 名前 |\n| 寺 |")
    named = PreparedDocument(plain.document, [*plain.chunks[:2], row], plain.packed_terms, [b"x", b"y", b"x"])
    long, short = prepared("長い.md", "検索" * 60_000, "検索の方法"), prepared("a.md", "寺の庭")
    vectors = {b"x": np.ones(8, np.float32), b"y": np.zeros(8, np.float32)}
    store.documents.write(tool.id, upsert=[long, named, short], vectors=vectors)
    store.documents.write(other.id, upsert=[prepared("c.md", "奈良の鹿と寺の話")])
    pages = [[item.uri for item in store.stats.list_documents(tool.id, skip=skip, limit=2)] for skip in (0, 2, 4)]
    assert pages == [["a.md", "b.md"], ["長い.md"], []]
    room, totals = store.stats.storage_size(tool.id), store.stats.totals(tool.id)
    assert (totals, room) == measure([long, named, short], 8)
    lengths, listed = store.stats.chunk_lengths(tool.id), store.stats.list_documents(tool.id)
    assert lengths == [(3, 1), (4, 1), (5, 1), (6, 1), (12, 1), (120_000, 1)]
    assert sum(number for _, number in lengths) == totals.chunks
    assert (room.vectors, room.dimension) == (2 * 8 * 4, 8)
    assert room.text > 3 * 120_000
    assert room.index > 3 * 120_000, "a long document's chunks keep their own text"
    assert (listed[1].title, listed[1].chunks, listed[1].characters) == ("title of b.md", 3, 13)
    assert listed[1].beginning == "京都の寺\nserver\n寺"


def test_the_numbers_of_a_tool_follow_every_change(store: Store) -> None:
    rng = random.Random(9)
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    stored: dict[str, PreparedDocument] = {}
    stored_in_other: dict[str, PreparedDocument] = {}
    for number in range(40):
        action, uris = rng.randrange(8), [f"{name}.md" for name in rng.sample("abcdefgh", 3)]
        documents = {uri: prepared(uri, "京都の寺" * rng.randrange(1, 4), "鹿") for uri in uris}
        keyed = {
            uri: replace(document, vector_keys=[f"{number} {uri} {chunk.index}".encode() for chunk in document.chunks])
            for uri, document in documents.items()
        }
        vectors = {key: np.ones(2, np.float32) for document in keyed.values() for key in document.vector_keys}
        if action == 0:
            store.documents.write(tool.id, remove=uris)
            stored = {uri: document for uri, document in stored.items() if uri not in uris}
        elif action == 1:  # a rebuild
            shadow = store.tools.put(Tool("~docs", active=False))
            store.documents.write(shadow.id, upsert=list(keyed.values()), vectors=vectors)
            store.tools.swap(tool, shadow)
            stored = keyed
        elif action == 2:
            store.vectors.replace(tool.id, {}, BuildInfo(embedder="none"))
            stored = {uri: replace(document, vector_keys=[]) for uri, document in stored.items()}
        elif action == 3:
            store.documents.write(other.id, upsert=list(documents.values()))
            stored_in_other |= documents
        elif action == 4:
            store.changes.prune_removals(tool.id, store.generation())
        elif action == 5:
            store.documents.write(tool.id, upsert=list(documents.values()))
            stored |= documents
        else:
            store.documents.write(tool.id, upsert=list(keyed.values()), vectors=vectors)
            stored |= keyed
        store.vectors.delete_released(tool.id)
        for filled, expected in ((tool, stored), (other, stored_in_other)):
            measured = store.stats.totals(filled.id), store.stats.storage_size(filled.id)
            assert measured == measure(expected.values(), 2)
        assert store.vectors.unused().count == 0
    assert stored
    assert any(document.vector_keys for document in stored.values())


def test_a_sample_is_spread_evenly_over_the_documents_of_a_tool(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    assert store.stats.beginnings(tool.id, limit=3) == []
    for number in range(7):
        store.documents.write(tool.id, upsert=[prepared(f"{number}.md", f"text {number}")])
        store.documents.write(other.id, upsert=[prepared(f"{number}.md", "other")])
    assert store.stats.beginnings(tool.id, limit=3) == ["text 0", "text 3", "text 6"]
    assert store.stats.beginnings(tool.id, limit=4) == ["text 0", "text 2", "text 4", "text 6"]
    assert len(store.stats.beginnings(tool.id, limit=7)) == 7


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
