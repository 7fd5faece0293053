"""Filters of searches in Milvus: what they select is found, however many better candidates lie outside of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bunko import indexes, stores
from bunko.embedders import hashing
from bunko.indexes.milvus import filters, view
from bunko.indexes.options import EngineOptions, MilvusOptions
from bunko.protocols import Index, Store
from bunko.records import Filter, PreparedDocument
from bunko.search.hits import search
from bunko.search.request import RankRequest
from bunko.types import SourceEntry, Tool
from tests.contracts.documents import prepared
from tests.scale.engines import milvus_server, require_milvus

pytestmark = pytest.mark.scale

DAY_NS = 86400 * 10**9
EMBEDDER = hashing.build(64)
QUERY = "京都の寺と庭"
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
    monkeypatch.setattr(filters, "_MAX_IDS", 5)
    monkeypatch.setattr(view, "MAX_RESULTS", 200)
    options = EngineOptions(milvus=MilvusOptions(uri=uri, timeout=60.0, candidates=50))
    built = indexes.build("milvus", store, None, options)
    yield built
    built.close()


def results(store: Store, index: Index, tool_ids: dict[int, str], where: Filter, mode: str) -> list[tuple[str, float]]:
    request = RankRequest(QUERY, top_k=INSIDE, where=where, mode=mode)  # type: ignore[arg-type]
    with store.read_transaction():
        hits = search(store, index.view(list(tool_ids)), tool_ids, EMBEDDER, request)
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
