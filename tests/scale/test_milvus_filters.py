"""Filters of searches in Milvus: what they select is found, however many better candidates lie outside of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bunko import indexes, stores
from bunko.embedders import hashing
from bunko.indexes.milvus import filters, view
from bunko.indexes.milvus.filters import filter_expression
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.options import EngineOptions, MilvusOptions
from bunko.protocols import Index, Store
from bunko.search.hits import find_hits
from bunko.search.request import RankRequest
from bunko.types import SourceEntry, Tool
from bunko.types.records import Filter, PreparedDocument, SelectedDocuments
from tests.contracts.documents import prepared
from tests.scale.engines import milvus_server, require_milvus

pytestmark = pytest.mark.scale

DAY_NS = 86400 * 10**9
EMBEDDER = hashing.build(64)
QUERY = "京都の寺と庭"
TOPICS = ("京都の寺と庭", "サーバーの移行", "the sorry dog", "tomatoes in the garden", "予算の会議", "鹿せんべい")
OUTSIDE, INSIDE = 600, 12


@pytest.fixture(scope="module", params=["file", "server"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_milvus()
    folder = tmp_path_factory.mktemp("milvus")
    if request.param == "file":
        yield str(folder / "milvus.db")
    else:
        with milvus_server(folder) as started:
            yield f"http://127.0.0.1:{started.port}"


def worse(name: str, number: int, **facts: object) -> PreparedDocument:
    return prepared(f"{name}{number}.md", f"{number} long before there was a garden 庭 in this place", **facts)  # type: ignore[arg-type]


def better(name: str, number: int, **facts: object) -> PreparedDocument:
    return prepared(f"{name}{number}.md", f"{QUERY} {QUERY} {number}", **facts)  # type: ignore[arg-type]


def write(store: Store, tool: Tool, documents: list[PreparedDocument]) -> None:
    vectors = {
        f"{tool.id} {document.document.uri}".encode(): EMBEDDER.embed([document.document.text.text])[0]
        for document in documents
    }
    keyed = [replace(document, vector_keys=[key]) for document, key in zip(documents, vectors, strict=True)]
    store.documents.write(tool.id, upsert=keyed, vectors=vectors)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    built = stores.build("sqlite", tmp_path / "library.db")
    yield built
    built.close()


@pytest.fixture
def index(store: Store, uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Give an index that gets few candidates, and that never names the selected documents one by one."""
    monkeypatch.setattr(filters, "MAX_IDS", 5)
    monkeypatch.setattr(view, "MAX_RESULTS", 200)
    options = EngineOptions(milvus=MilvusOptions(uri=uri, timeout=60.0, candidates=50))
    built = indexes.build("milvus", store, None, options)
    yield built
    built.close()


def results(store: Store, index: Index, tool_ids: dict[int, str], where: Filter, mode: str) -> list[tuple[str, float]]:
    request = RankRequest(QUERY, row_count=INSIDE, where=where, mode=mode)  # type: ignore[arg-type]
    with store.read_transaction():
        hits = find_hits(store, index.view(list(tool_ids)), tool_ids, EMBEDDER, request)
    return [(hit.uri, round(hit.score, 4)) for hit in hits]


def check(
    store: Store, index: Index, tool_ids: dict[int, str], where: Filter, inside: set[str], tmp_path: Path
) -> None:
    """The selected documents are found in each mode, with the scores of the embedded index."""
    embedded = indexes.build("embedded", store, tmp_path / "index")
    for tool_id in tool_ids:
        embedded.sync(tool_id)
    for mode in ("bm25", "semantic", "hybrid"):
        found = results(store, index, tool_ids, where, mode)
        assert {uri for uri, _ in found} == inside, mode
        expected = dict(results(store, embedded, tool_ids, where, mode))
        assert dict(found) == pytest.approx(expected, abs=1.01e-4)


def test_the_documents_of_a_narrow_date_are_found_among_better_ones_of_others(
    store: Store, index: Index, tmp_path: Path
) -> None:
    tool = store.tools.put(Tool("docs"))
    outside = [better("out", number, date=f"{2000 + number % 20}-03-15") for number in range(OUTSIDE)]
    inside = [worse("in", number, date=f"2024-05-{number + 1:02d}T10:00:00+09:00") for number in range(INSIDE)]
    write(store, tool, outside + inside)
    index.sync(tool.id)
    names = {f"in{number}.md" for number in range(INSIDE)}
    where = Filter(since="2024-05-01", until="2024-05-12", zone="Asia/Tokyo")
    check(store, index, {tool.id: "docs"}, where, names, tmp_path)
    check(store, index, {tool.id: "docs"}, Filter(since="2024-05"), names, tmp_path)


def test_documents_are_found_by_the_date_of_their_file_after_it_has_changed(
    store: Store, index: Index, tmp_path: Path
) -> None:
    tool = store.tools.put(Tool("docs"))
    write(store, tool, [better("out", number, modified_ns=1000 * DAY_NS) for number in range(OUTSIDE)])
    write(store, tool, [worse("in", number, modified_ns=1000 * DAY_NS) for number in range(INSIDE)])
    index.sync(tool.id)
    names = {f"in{number}.md" for number in range(INSIDE)}
    where = Filter(since="1985-01-01", until="1995-12-31")  # 1,000 days after 1970 are in 1972
    assert results(store, index, {tool.id: "docs"}, where, "bm25") == []
    touched = [SourceEntry(uri, 9, (6000 + number) * DAY_NS, 10**18) for number, uri in enumerate(sorted(names))]
    store.documents.write(tool.id, touch=touched)
    state = index.state(tool.id)
    assert (state.pending, state.problem) == (INSIDE, "")
    index.sync(tool.id)
    assert index.state(tool.id).is_current
    check(store, index, {tool.id: "docs"}, where, names, tmp_path)
    assert index.check(tool.id) == ""
    # The statistics did not change with the dates, and follow when such a document is removed.
    store.documents.write(tool.id, remove=["in0.md"])
    index.sync(tool.id)
    assert index.check(tool.id) == ""
    check(store, index, {tool.id: "docs"}, where, names - {"in0.md"}, tmp_path)


def test_the_documents_of_a_trusted_tool_are_found_among_better_ones_from_the_web(
    store: Store, index: Index, tmp_path: Path
) -> None:
    """Documents from the web are in tools of their own, so that a search without them names the others."""
    web, own = store.tools.put(Tool("web", kind="web")), store.tools.put(Tool("own"))
    write(store, web, [better("out", number) for number in range(OUTSIDE)])
    write(store, own, [worse("in", number) for number in range(INSIDE)])
    for tool in (web, own):
        index.sync(tool.id)
    names = {f"in{number}.md" for number in range(INSIDE)}
    check(store, index, {own.id: "own"}, Filter(), names, tmp_path)


@pytest.mark.parametrize("where", [Filter(path="own/**"), Filter(tags=("keep", "own"))])
def test_the_documents_of_a_path_or_of_tags_are_found_among_better_ones(
    store: Store, index: Index, tmp_path: Path, where: Filter
) -> None:
    tool = store.tools.put(Tool("docs"))
    write(store, tool, [better("web/", number, tags=("keep",)) for number in range(OUTSIDE)])
    write(store, tool, [worse("own/", number, tags=("own", "keep")) for number in range(INSIDE)])
    index.sync(tool.id)
    check(store, index, {tool.id: "docs"}, where, {f"own/{number}.md" for number in range(INSIDE)}, tmp_path)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Tool, EngineOptions, Path]]:
    """Write 1,500 documents of made-up words, so that no arm returns all candidates."""
    require_milvus()
    folder = tmp_path_factory.mktemp("large")
    store = stores.build("sqlite", folder / "library.db")
    tool = store.tools.put(Tool("documents"))
    random = np.random.default_rng(7)
    embedder = hashing.build(64)
    documents, vectors = [], {}
    for number in range(1500):
        words = " ".join(f"word{rank}" for rank in random.zipf(1.4, 30) % 900)
        text = f"{words} {TOPICS[number % 6]} {number}"
        document = prepared(f"part{number % 3}/{number}.md", text, tags=(f"tag{number % 4}",), modified_ns=10**18)
        key = str(number).encode()
        vectors[key] = embedder.embed([text])[0]
        documents.append(replace(document, vector_keys=[key]))
    store.documents.write(tool.id, upsert=documents, vectors=vectors)
    yield store, tool, EngineOptions(milvus=MilvusOptions(uri=str(folder / "milvus.db"), timeout=60.0)), folder
    store.close()


def test_a_large_filter_is_an_expression_over_paths_and_tags(large: tuple[Store, Tool, EngineOptions, Path]) -> None:
    store, tool, options, _ = large
    where = Filter(path="part1/**", tags=("tag1",))
    few = SelectedDocuments.of([1, 2], where)
    assert filter_expression([3], few) == "tool in [3] and document_id in [1, 2]"
    many = SelectedDocuments.of(range(2000), where)
    expression = filter_expression([tool.id], many)
    assert expression == f'tool in [{tool.id}] and path like "part1/%" and ARRAY_CONTAINS_ALL(tags, ["tag1"])'
    index = indexes.build("milvus", store, None, options)
    index.sync(tool.id)
    index.close()
    server = MilvusServer(options.milvus)
    selected = set(store.documents.select(tool.id, where))
    rows = server.query(f"bunko_{store.id[:12]}_cards_64", expression, ["document_id"])
    assert {row["document_id"] for row in rows} == selected
    server.close()
