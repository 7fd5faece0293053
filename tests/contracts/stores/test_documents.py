"""What every store promises about documents and their chunks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.search.hits import find_hits
from bunko.search.request import RankRequest
from bunko.types import Chunk, LineSpan, SourceEntry, Tool
from bunko.types.records import ChunkRow, FailedDocument, PreparedDocument
from tests.contracts.documents import prepared, search_results

LETTERS = [chr(code) for code in (*range(0x4E00, 0x9FA0), *range(0x61, 0x7B))]


def test_what_was_written_is_found_with_its_place_and_facts(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索の方法", "別の話", date="2024-01-15", tags=("設計",))])
    with store.read_transaction():
        view = ToolIndex(store, tool.id, None).snapshot()
        hits = find_hits(store, view, {tool.id: "docs"}, None, RankRequest("検索"))
    assert [(hit.tool, hit.uri, hit.title, hit.date, hit.tags) for hit in hits] == [
        ("docs", "a.md", "title of a.md", "2024-01-15", ("設計",))
    ]
    assert hits[0].chunk == Chunk(0, 0, 5, 1, 1, "検索の方法", "# h", ("h",))


def test_chunks_come_with_their_documents_on_request(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索の方法", "別の話", tags=("設計",))])
    store.documents.write(tool.id, upsert=[prepared("b.md", "京都の寺", modified_ns=10**18)])
    with store.read_transaction():
        ids = ToolIndex(store, tool.id, None).snapshot().chunk_ids([0, 1, 2])
        rows = store.documents.chunks(ids, read_documents=True)
        assert [row.document for row in rows.values()] == [store.documents.get(tool.id, uri) for uri in _uris(rows)]
        assert sorted(_uris(rows)) == ["a.md", "a.md", "b.md"]
        assert [row.document for row in store.documents.chunks(ids).values()] == [None] * 3


def _uris(rows: Mapping[int, ChunkRow]) -> list[str]:
    return [row.uri for row in rows.values()]


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
    assert [(problem.uri, problem.reason) for problem in store.documents.failures(tool.id)] == [("a.md", "is binary")]
    assert store.documents.fingerprints(tool.id)["a.md"].content_hash == "h"
    assert store.stats.totals(tool.id).documents == 0
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都")])
    assert not store.documents.failures(tool.id)


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
        hits = find_hits(store, live.snapshot(), {tool.id: "docs"}, None, RankRequest("検索", row_count=10))
    assert sorted(hit.chunk.text for hit in hits) == sorted(texts)


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


def test_several_documents_are_read_at_once(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    long_path = f"{'文' * 2000}.md"
    store.documents.write(tool.id, upsert=[prepared(uri, uri) for uri in ("a.md", "b.md", "c\\ \x00.md", long_path)])
    store.documents.write(other.id, upsert=[prepared("d.md", "d")])
    uris = ["c\\ \x00.md", "nowhere", "a.md", "d.md", long_path]
    documents = store.documents.get_all(tool.id, uris)
    assert set(documents) == {"a.md", "c\\ \x00.md", long_path}
    assert documents == {uri: store.documents.get(tool.id, uri) for uri in documents}
    assert all(document.uri == document.text == uri for uri, document in documents.items())
    assert store.documents.get_all(tool.id, []) == {}


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
    stored_vectors = store.vectors.get([b"name", b"other"])
    assert {key: vector.tolist() for key, vector in stored_vectors.items()} == {b"name": [1, 1, 1, 1]}


def test_a_touched_entry_takes_its_chunks_along_to_other_lines(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    moving, other = prepared("a.txt#x", "京都の寺", "奈良の鹿"), prepared("a.txt#y", "大阪の城")
    document = replace(moving.document, entry=replace(moving.document.entry, lines=LineSpan(5, 6)))
    chunks = [replace(chunk, first_line=chunk.first_line + 4, last_line=chunk.last_line + 4) for chunk in moving.chunks]
    generation = store.documents.write(tool.id, upsert=[replace(moving, document=document, chunks=chunks), other])
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
    lines = {row.chunk.text: row.chunk.first_line for row in store.documents.chunks([1, 2, 3]).values()}
    assert lines == {"京都の寺": 2, "奈良の鹿": 3, "大阪の城": 1}


def test_texts_come_back_as_they_were_whatever_characters_they_have(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    text = (
        "zero \0\U0010fffe\U0010ffffn\U0010ffff and 検索\ufeff 𠮷野家 \U0001f469\u200d\U0001f373 %s ? ' \" \\ \x01\x7f"
    )
    document = prepared("a?%s'\\.md", text, text, tags=(text,))
    store.documents.write(tool.id, upsert=[document])
    assert store.documents.export(tool.id, [document.document.uri]) == [document]
    stored = store.documents.get(tool.id, document.document.uri)
    assert stored is not None
    assert (stored.text, stored.tags) == (document.document.text.text, (text,))
    [chunk_id, _] = sorted(store.changes.chunk_ids(tool.id))
    assert store.documents.chunks([chunk_id])[chunk_id].chunk.text == text


def test_documents_are_sorted_by_the_code_points_of_their_names(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    uris = [
        "Z.md",
        "a.md",
        "a/b.md",
        "a b.md",
        "a_b.md",
        "é.md",
        "京.md",
        "ア.md",
        "\uffee.md",
        "𠮷.md",
        "10.md",
        "9.md",
    ]
    store.documents.write(tool.id, upsert=[prepared(uri, "text") for uri in uris])
    assert store.documents.uris(tool.id) == sorted(uris)
    assert store.documents.uris(tool.id, after="a_b.md", limit=2) == ["é.md", "ア.md"]
    assert [document.uri for document in store.stats.list_documents(tool.id)] == sorted(uris)


def test_a_path_may_be_as_long_as_a_file_system_or_a_site_allows(store: Store) -> None:
    """An index of PostgreSQL takes about 2,700 bytes that do not compress."""
    tool = store.tools.put(Tool("docs"))
    chance = random.Random(17)
    beginning = "".join(chance.choice(LETTERS) for _ in range(1200))
    uris = [f"{beginning}{''.join(chance.choice(LETTERS) for _ in range(2900))}/{number}\\x.md" for number in range(3)]
    # What the store makes of a long path to look it up must not be taken for a short one.
    uris += ["a.md", beginning, f"{'b' * 195}\0\U0010fffe\0\U0010ffff{beginning}", "\U0010ffffn\0.md"]
    store.documents.write(tool.id, upsert=[prepared(uri, f"text {uri[-9:]}") for uri in uris])
    store.documents.write(tool.id, upsert=[prepared(uris[0], "replaced")])
    store.documents.write(tool.id, fail=[FailedDocument(SourceEntry(f"{uris[0]}.bad", 1, 1, 2), "hash", "unreadable")])
    assert [problem.uri for problem in store.documents.failures(tool.id)] == [f"{uris[0]}.bad"]
    assert sorted(store.documents.uris(tool.id)) == sorted(uris)
    pages: list[str] = []
    after = ""
    while page := store.documents.uris(tool.id, after=after, limit=2):
        pages, after = [*pages, *page], page[-1]
    assert pages == store.documents.uris(tool.id)
    stored = {uri: store.documents.get(tool.id, uri) for uri in uris}
    assert [document.text for document in stored.values() if document] == [
        "replaced", *(f"text {uri[-9:]}" for uri in uris[1:]),
    ]  # fmt: skip
    assert {document.document.uri for document in store.documents.export(tool.id, uris)} == set(uris)
    store.documents.write(tool.id, touch=[SourceEntry(uris[1], 77, 5, 10**18)])
    assert store.documents.fingerprints(tool.id)[uris[1]].size == 77
    store.documents.write(tool.id, remove=uris[:2])
    assert sorted(store.documents.uris(tool.id)) == sorted(uris[2:])


def test_numbers_as_large_as_a_file_system_has_are_stored(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    document = prepared("a.md", "text", modified_ns=2**62)
    entry = replace(document.document.entry, size=2**40, lines=LineSpan(2**33, 2**33 + 1))
    document = replace(document, document=replace(document.document, entry=entry))
    store.documents.write(tool.id, upsert=[document])
    assert store.documents.export(tool.id, ["a.md"]) == [document]
