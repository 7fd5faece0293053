"""What every store promises about vectors: they are kept by key, pinned, replaced and counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from bunko.errors import LibraryError
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.text.sentence_codec import pack_sentences
from bunko.types import Tool
from bunko.types.build_info import BuildInfo
from bunko.types.records import EmbeddingUsage, PreparedDocument, VectorRoom
from tests.contracts.documents import prepared, search_results


def vector(number: float, size: int = 2) -> npt.NDArray[np.float32]:
    return np.array([number] + [0.0] * (size - 1), np.float32)


def test_vectors_are_kept_by_name_and_outlive_their_document(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    ones = np.ones(4, np.float32)
    document = prepared("a.md", "京都")
    named = PreparedDocument(document.document, document.chunks, document.packed_terms, [b"name"])
    store.documents.write(tool.id, upsert=[named], vectors={b"name": ones})
    store.documents.write(tool.id, remove=["a.md"])
    assert store.vectors.missing([b"name", b"other"]) == {b"other"}
    store.documents.write(tool.id, upsert=[named])
    stored = next(store.changes.chunks_since(tool.id, 0)).vector
    assert stored is not None
    assert stored.tolist() == ones.tolist()


def test_vectors_that_are_kept_outlive_a_sweep_until_they_are_released(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    store.vectors.pin(tool.id, "a", {b"1": vector(1)})
    store.vectors.pin(tool.id, "b", {b"2": vector(2)})
    store.vectors.pin(other.id, "a", {b"1": vector(1), b"3": vector(3)})
    generation = store.generation()
    store.vectors.delete_orphans()
    assert store.vectors.missing([b"1", b"2", b"3"]) == set()
    store.vectors.unpin(tool.id, "a")
    store.vectors.delete_orphans()
    assert store.vectors.missing([b"1", b"2", b"3"]) == set(), "the other tool keeps the first one too"
    store.vectors.unpin(tool.id)
    store.vectors.delete_orphans()
    assert store.vectors.missing([b"1", b"2", b"3"]) == {b"2"}
    assert store.generation() == generation, "no search could see any of this"
    store.tools.drop(other.id)
    store.vectors.delete_orphans()
    assert store.vectors.missing([b"1", b"3"]) == {b"1", b"3"}


def test_a_vector_goes_when_the_last_tool_that_used_it_says_so(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    both = replace(prepared("a.md", "京都", "奈良"), vector_keys=[b"1", b"2"])
    store.documents.write(tool.id, upsert=[both], vectors={b"1": vector(1), b"2": vector(2)})
    store.documents.write(other.id, upsert=[replace(prepared("b.md", "京都"), vector_keys=[b"1"])])
    store.vectors.delete_released(tool.id)
    assert store.vectors.unused() == VectorRoom(0, 0)
    store.documents.write(tool.id, remove=["a.md"])
    store.documents.write(other.id, remove=["b.md"])
    assert store.vectors.unused() == VectorRoom(2, 16)
    store.vectors.delete_released(tool.id)
    assert store.vectors.missing([b"1", b"2"]) == {b"2"}, "the other tool may have the first text again"
    store.vectors.pin(other.id, "a", {b"1": vector(1)})
    store.vectors.delete_released(other.id)
    assert store.vectors.missing([b"1"]) == set(), "it is pinned by now"
    store.vectors.unpin(other.id, "a")
    store.documents.write(tool.id, upsert=[replace(prepared("c.md", "京都"), vector_keys=[b"1"])])
    store.vectors.delete_released(other.id)
    assert store.vectors.missing([b"1"]) == set(), "a document uses it"
    store.documents.write(tool.id, remove=["c.md"])
    store.vectors.delete_released(tool.id)
    assert store.vectors.missing([b"1"]) == {b"1"}


def test_what_a_chunk_has_stays_when_it_is_released(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.vectors.pin(tool.id, "a", {b"1": vector(1)})
    store.documents.write(tool.id, upsert=[replace(prepared("a.md", "x"), vector_keys=[b"1"])])
    store.vectors.unpin(tool.id)
    store.vectors.delete_orphans()
    assert store.vectors.missing([b"1"]) == set()


def test_the_subwords_of_sentences_are_kept_with_the_vector_of_their_text(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    subwords = pack_sentences([np.array([1, 2, 47_999], np.int32)], np.ones(1, np.float32))
    store.documents.write(tool.id, upsert=[prepared("none.md", "x")])
    [bare] = store.changes.chunks_since(tool.id, 0)
    assert store.changes.chunk_sentences([bare.chunk_id, 10**9]) == {bare.chunk_id: None}
    store.documents.write(tool.id, remove=["none.md"])
    document = replace(prepared("a.md", "x", "y"), vector_keys=[b"1", b"2"])
    vectors = {b"1": vector(1), b"2": vector(2)}
    store.documents.write(tool.id, upsert=[document], vectors=vectors, sentences={b"1": subwords})
    with_sentences, without = store.changes.chunks_since(tool.id, 0)
    assert with_sentences.sentences is not None
    assert with_sentences.sentences.tolist() == subwords.tolist()
    assert without.sentences is None
    ids = [with_sentences.chunk_id, without.chunk_id]
    with_subwords, text = map(store.changes.chunk_sentences(ids).get, ids)
    assert isinstance(with_subwords, np.ndarray)
    assert with_subwords.tolist() == subwords.tolist()
    assert text == "title of a.md\ny"  # as it was embedded before subwords were kept
    assert store.vectors.missing([b"1", b"2"]) == set()
    assert store.vectors.missing([b"1", b"2"], split=True) == {b"2"}
    assert store.vectors.unsplit(tool.id) == 1
    store.vectors.pin(tool.id, "a", {b"3": vector(3)}, sentences={b"3": subwords})
    store.documents.write(tool.id, remove=["a.md"])
    store.vectors.delete_orphans()
    store.documents.write(tool.id, upsert=[replace(prepared("b.md", "x", "y"), vector_keys=[b"1", b"3"])])
    kept = {chunk.chunk_id: chunk.sentences for chunk in store.changes.chunks_since(tool.id, 0)}
    assert [None if one is None else one.tolist() for one in kept.values()] == [None, subwords.tolist()]


def test_what_was_spent_adds_up_for_each_embedder(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    assert store.vectors.usage() == {}
    store.documents.write(tool.id, upsert=[prepared("a.md", "x")], usage={"one:2": EmbeddingUsage(10, 1, 5, 1)})
    store.vectors.pin(
        tool.id, "one:2", {}, usage={"one:2": EmbeddingUsage(1, 1), 'another " one': EmbeddingUsage(7, 2)}
    )
    store.documents.write(tool.id, usage={})
    assert store.vectors.usage() == {
        'another " one': EmbeddingUsage(7, 2, 0, 0),
        "one:2": EmbeddingUsage(11, 2, 5, 1),
    }


@pytest.mark.parametrize("size", [1, 2, 5])
def test_chunks_get_other_vectors_in_one_step_that_readers_follow(store: Store, size: int) -> None:
    tool = store.tools.put(Tool("docs", built=BuildInfo(words=1, embedder="old")))
    first = [replace(prepared("a.md", "京都の寺", "奈良の鹿"), vector_keys=[b"1", b"2"])]
    first.append(replace(prepared("b.md", "東京の駅"), vector_keys=[b"1"]))
    store.documents.write(tool.id, upsert=first, vectors={b"1": vector(1), b"2": vector(2)})
    live = ToolIndex(store, tool.id, None)

    def indexed_vectors(index: ToolIndex) -> list[tuple[int, float]]:
        with store.read_transaction():
            snapshot = index.snapshot()
        positions = [snapshot.locate(row) for row in snapshot.alive_rows().tolist()]
        segments = [(snapshot.views[part].segment, row) for part, row in positions]
        return sorted((int(segment.chunk_ids[row]), float(segment.vectors[row][0])) for segment, row in segments)

    before = indexed_vectors(live)
    generation = store.generation()
    store.vectors.pin(tool.id, "new", {b"x": vector(7, size), b"y": vector(8, size), b"z": vector(9, size)})
    assert indexed_vectors(live) == before
    assert (
        store.vectors.replace(tool.id, {"a.md": [b"x", b"y"], "b.md": [b"z"]}, BuildInfo(embedder="new")) > generation
    )
    assert [number for number, _ in indexed_vectors(live)] == [number for number, _ in before]
    assert [first for _, first in indexed_vectors(live)] == [7, 8, 9]
    assert indexed_vectors(ToolIndex(store, tool.id, None)) == indexed_vectors(live)
    assert store.tools.all()[0].built == BuildInfo(embedder="new")
    assert [one.vector_keys for one in store.documents.export(tool.id, ["a.md", "b.md"])] == [[b"x", b"y"], [b"z"]]
    assert search_results(store, tool, live, "鹿")
    store.documents.write(tool.id, remove=["a.md"])
    assert [first for _, first in indexed_vectors(live)] == [9]
    assert not search_results(store, tool, live, "鹿")


def test_no_chunk_gets_a_vector_that_is_not_stored_and_none_is_passed_over(store: Store) -> None:
    tool = store.tools.put(Tool("docs", built=BuildInfo(embedder="old")))
    put = [replace(prepared("a.md", "一", "二"), vector_keys=[b"1", b"2"])]
    store.documents.write(tool.id, upsert=put, vectors={b"1": vector(1), b"2": vector(2)})
    store.vectors.pin(tool.id, "new", {b"x": vector(7)})
    generation = store.generation()
    for keys in ({"a.md": [b"x"]}, {"a.md": [b"x", b"gone"]}, {"b.md": [b"x"]}):
        with pytest.raises(LibraryError, match="changed while"):
            store.vectors.replace(tool.id, keys, BuildInfo(embedder="new"))
    assert store.documents.export(tool.id, ["a.md"])[0].vector_keys == [b"1", b"2"]
    assert (store.generation(), store.tools.all()[0].built) == (generation, BuildInfo(embedder="old"))
    store.vectors.replace(tool.id, {}, BuildInfo(embedder="none"))
    assert store.documents.export(tool.id, ["a.md"])[0].vector_keys == []
    assert store.stats.totals(tool.id).vectors == 0


def test_documents_without_vectors_are_listed(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    plain = [prepared(name, "京都") for name in ("a.md", "b.md", "c.md")]
    store.documents.write(tool.id, upsert=plain)
    assert (store.vectors.has_any(tool.id), store.vectors.has_any(other.id)) == (False, False)
    assert store.vectors.uris_without(tool.id) == ["a.md", "b.md", "c.md"]
    assert store.vectors.uris_without(tool.id, after="a.md", limit=1) == ["b.md"]
    keyed = replace(plain[1], vector_keys=[b"1"])
    store.documents.write(tool.id, upsert=[keyed], vectors={b"1": vector(1)})
    assert (store.vectors.has_any(tool.id), store.vectors.has_any(other.id)) == (True, False)
    assert store.vectors.uris_without(tool.id) == ["a.md", "c.md"]
    assert store.vectors.uris_without(other.id) == []


def test_documents_get_new_vectors_whatever_their_names(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    names = ["plain.md", "zero\0.md", "\U0010fffe.md", "\U0010ffffn.md", "x" * 4000]
    store.documents.write(tool.id, upsert=[prepared(name, "京都") for name in names])
    keys = {name: [f"key {number}".encode()] for number, name in enumerate(names)}
    store.vectors.pin(tool.id, "a", {key: vector(1) for [key] in keys.values()})
    store.vectors.replace(tool.id, keys, BuildInfo())
    assert {exported.document.uri: exported.vector_keys for exported in store.documents.export(tool.id, names)} == keys


def test_a_document_has_the_mean_of_the_vectors_of_its_chunks(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    long, short, plain = prepared("長い.md", "東京", "大阪"), prepared("b.md", "京都"), prepared("c.md", "奈良")
    vectors = {b"1": np.array([1, 0], np.float32), b"2": np.array([0, 3], np.float32), b"3": vector(5)}
    store.documents.write(
        tool.id,
        upsert=[replace(long, vector_keys=[b"1", b"2"]), replace(short, vector_keys=[b"3"]), plain],
        vectors=vectors,
    )
    store.documents.write(other.id, upsert=[replace(short, vector_keys=[b"1"])])
    uris, means = store.vectors.document_means(tool.id)
    assert means.dtype == np.float32
    by_uri = dict(zip(uris, means.tolist(), strict=True))
    assert by_uri == {"長い.md": [0.5, 1.5], "b.md": [5.0, 0.0]}
    uris, means = store.vectors.document_means(tool.id, "長い.md")
    assert (uris, means.tolist()) == (["長い.md"], [[0.5, 1.5]])
    uris, means = store.vectors.document_means(tool.id + other.id + 1)
    assert (uris, len(means)) == ([], 0)


def test_vectors_of_another_length_do_not_count(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    documents = [replace(prepared(f"{name}.md", name), vector_keys=[name.encode()]) for name in "abc"]
    vectors = {b"a": vector(1, 3), b"b": vector(2, 3), b"c": vector(3, 2)}
    store.documents.write(tool.id, upsert=documents, vectors=vectors)
    uris, means = store.vectors.document_means(tool.id)
    assert sorted(uris) == ["a.md", "b.md"]
    assert means.shape == (2, 3)
