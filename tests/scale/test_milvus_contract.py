"""What the client relies on in Milvus: in a Milvus Lite file, and on a server over TCP.

The server is the one of milvus-lite, or the one at `BUNKO_TEST_MILVUS_URI` (with `BUNKO_TEST_MILVUS_TOKEN`), where
the collections have names of their own and are dropped.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed here: make test-scale installs it")

import grpc
from pymilvus import MilvusException

from bunko.errors import IndexFailure
from bunko.indexes.milvus.server import MAX_RESULTS, SCALAR_FIELDS, MilvusServer, close_client, open_client, split_card
from bunko.indexes.options import MilvusOptions
from tests.scale.engines import MILVUS_URI, start_engine

pytestmark = pytest.mark.scale

DIMENSION = 8
MAX_SPARSE = 2**32 - 2
IS_REAL = bool(os.environ.get(MILVUS_URI))


@pytest.fixture(scope="module", params=["milvus", "milvus-server"])
def options(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusOptions]:
    with start_engine(request.param, tmp_path_factory.mktemp("milvus")) as started:
        yield started.milvus


@pytest.fixture
def server(options: MilvusOptions) -> Iterator[MilvusServer]:
    opened = MilvusServer(options)
    yield opened
    opened.close()


@pytest.fixture
def client(options: MilvusOptions, server: MilvusServer) -> Iterator[Any]:
    """Give a client of pymilvus, for what ours does not ask for or explains in its own words."""
    opened = open_client(options, is_file=server.is_file)
    yield opened
    close_client(opened, options, is_file=server.is_file)


@pytest.fixture
def name(server: MilvusServer) -> Iterator[str]:
    """Give the name of an empty collection, as an index makes them."""
    chosen = f"bunko_test_{secrets.token_hex(6)}"
    server.create(chosen, DIMENSION)
    yield chosen
    if server.describe(chosen) is not None:
        server.drop(chosen)


def unit(seed: int) -> list[float]:
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return list(map(float, vector / np.linalg.norm(vector)))


def row(row_id: int, **changes: object) -> dict[str, Any]:
    values: dict[str, Any] = {"id": row_id, "tool": 1, "document_id": row_id, "path": f"京都/{row_id}.md", "date": 0}
    values |= {"tags": [], "card": "", "more": []}
    return values | {"dense": unit(abs(row_id)), "sparse": {5: 1.0}} | changes


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(found["id"] for found in rows)


def test_the_version_says_whether_the_server_can_be_used(server: MilvusServer, client: Any) -> None:
    assert isinstance(server.collections(), list)
    if not server.is_file:
        version = str(client.get_server_version())
        assert re.search(r"\d+\.\d+", version), version


def test_a_collection_is_described_by_its_fields_and_its_dimension(server: MilvusServer, name: str) -> None:
    assert name in server.collections()
    assert server.describe(name) == ({*SCALAR_FIELDS, "sparse", "dense"}, DIMENSION)
    assert server.describe(f"{name}_missing") is None
    server.create(f"{name}_0", 0)
    assert server.describe(f"{name}_0") == ({*SCALAR_FIELDS, "sparse"}, 0)
    server.drop(f"{name}_0")
    server.drop(f"{name}_0")  # once more does no harm
    assert f"{name}_0" not in server.collections()


def test_a_collection_that_is_created_once_more_keeps_its_rows(server: MilvusServer, name: str) -> None:
    """As after a lost answer; Milvus accepts the same fields, and the server of milvus-lite refuses them."""
    server.upsert(name, [row(1)])
    if server.is_file or IS_REAL:
        server.create(name, DIMENSION)
    else:
        assert "already exists" in failure_of(lambda: server.create(name, DIMENSION)).message
    assert server.count(name, "id != 0") == 1


def test_the_tool_divides_a_collection_on_a_server(server: MilvusServer, client: Any, name: str) -> None:
    keys = [field["name"] for field in client.describe_collection(name)["fields"] if field.get("is_partition_key")]
    assert keys == ([] if server.is_file else ["tool"])
    server.upsert(name, [row(number, tool=number) for number in range(1, 200)])
    assert [server.count(name, f"tool == {number}") for number in (1, 100, 199, 200)] == [1, 1, 1, 0]
    assert server.count(name, "tool in [1, 7, 300]") == 2


def test_a_query_sees_every_write_before_it_also_of_another_client(
    server: MilvusServer, options: MilvusOptions, name: str
) -> None:
    other = MilvusServer(options)
    for version in range(20):
        server.upsert(name, [row(1, card=str(version)), row(version + 2)])
        assert other.cards_where(name, "id == 1") == {1: str(version)}
        assert other.count(name, "id != 0") == version + 2
    server.delete(name, "id == 1")
    assert other.query(name, "id == 1", ["id"]) == []
    other.close()


def test_an_upsert_replaces_a_row_in_every_search(server: MilvusServer, name: str) -> None:
    server.upsert(name, [row(1, sparse={5: 1.0}), row(2, sparse={6: 1.0})])
    server.upsert(name, [row(1, sparse={6: 2.0}, tool=2)])
    assert server.count(name, "tool in [1, 2]") == 2
    assert server.query(name, "tool == 1", ["id"]) == [{"id": 2}]
    # A search may see an older state: `consistency_level` is Bounded.
    server.count(name, "id != 0")
    assert server.search(name, "sparse", [{6: 1.0}], 10, "tool in [1, 2]") in ([[(1, 2.0), (2, 1.0)]], [[(2, 1.0)]])


def test_rows_are_deleted_by_an_expression(server: MilvusServer, name: str) -> None:
    server.upsert(name, [row(number, tool=number % 2, date=number) for number in range(20)])
    server.upsert(name, [row(-1, card="a stamp")])
    server.delete(name, "tool == 1 and document_id in [1, 2, 3, 99]")
    server.delete(name, "id == -1")
    assert ids(server.query(name, "id != 100", ["id"])) == sorted({*range(20)} - {1, 3})
    assert ids(server.query(name, "tool == 0 and document_id in [2, 4] and date <= 2", ["id"])) == [2]
    server.delete(name, "tool == 1")
    assert server.count(name, "id != 100") == 10


EXPRESSIONS: dict[str, set[int]] = {
    "tool in [1]": {1, 2, 3, 4},
    'tool in [1] and path like "京都/%"': {1, 2},
    'tool in [1] and path like "own/50 (%"': {3},
    'tool in [1] and ARRAY_CONTAINS_ALL(tags, ["寺"])': {1, 2},
    'tool in [1] and ARRAY_CONTAINS_ALL(tags, ["寺", "庭"])': {1},
    "tool in [1] and (date == -1 or (date >= 20240101 and date <= 20241231))": {2, 3},
    "document_id in [1, 4] and id != 1": {4},
}


def test_an_expression_selects_the_same_rows_in_queries_counts_and_searches(server: MilvusServer, name: str) -> None:
    facts: list[dict[str, Any]] = [
        {"path": "京都/a.md", "tags": ["寺", "庭"], "date": 20230505},
        {"path": "京都/b/c.md", "tags": ["寺"], "date": 20240505},
        {"path": "own/50 (a)", "date": -1},
        {"path": ""},
    ]
    server.upsert(name, [row(number, **changes) for number, changes in enumerate(facts, 1)])
    server.upsert(name, [row(-1), row(9, tool=2)])
    for expression, expected in EXPRESSIONS.items():
        assert set(ids(server.query(name, expression, ["id"]))) - {-1} == expected
        assert server.count(name, f"({expression}) and id > 0") == len(expected)
        for field, vector in (("sparse", {5: 1.0}), ("dense", unit(3))):
            [found] = server.search(name, field, [vector], 50, f"({expression}) and id > 0")
            assert {row_id for row_id, _ in found} == expected


def test_products_of_sparse_vectors_are_exact_for_several_vectors_in_one_request(
    server: MilvusServer, name: str
) -> None:
    chance = np.random.default_rng(3)
    table = chance.random((300, 40)) * (chance.random((300, 40)) < 0.2)
    dimensions = [2, 77, *chance.integers(3, MAX_SPARSE, 36).tolist(), 2**31, MAX_SPARSE]
    rows = [
        row(number + 1, sparse={dimensions[column]: float(table[number, column]) for column in np.flatnonzero(values)})
        for number, values in enumerate(table)
        if values.any()
    ]
    server.upsert(name, rows)
    assert server.count(name, "id != 0") == len(rows)
    queries = chance.random((8, 40)) * (chance.random((8, 40)) < 0.3)
    vectors = [{dimensions[column]: float(query[column]) for column in np.flatnonzero(query)} for query in queries]
    answers = server.search(name, "sparse", vectors, 400, "tool in [1]")
    for query, answer in zip(queries, answers, strict=True):
        products = table @ query
        assert {row_id - 1 for row_id, _ in answer} == set(np.flatnonzero(products).tolist()), (
            "only those with a product"
        )
        assert [product for _, product in answer] == pytest.approx(np.sort(products[products > 0])[::-1], rel=1e-5)
        assert all(product == pytest.approx(products[row_id - 1], rel=1e-5) for row_id, product in answer)


def test_products_of_dense_vectors_are_exact_over_few_rows(server: MilvusServer, name: str) -> None:
    server.upsert(name, [row(number) for number in range(1, 301)])
    assert server.count(name, "id != 0") == 300
    table = np.array([unit(number) for number in range(1, 301)])
    queries = [unit(number) for number in range(1000, 1004)]
    for query, answer in zip(queries, server.search(name, "dense", queries, 50, "tool in [1]"), strict=True):
        products = table @ np.array(query)
        assert [row_id - 1 for row_id, _ in answer] == np.argsort(-products)[:50].tolist()
        assert [product for _, product in answer] == pytest.approx(np.sort(products)[::-1][:50], abs=1e-5)


def test_a_search_returns_long_texts_and_vectors_of_its_rows(server: MilvusServer, client: Any, name: str) -> None:
    path, sparse = "寺" * 1365, {2: 0.5, MAX_SPARSE: 0.25}  # 4,095 bytes
    server.upsert(name, [row(1, path=path, sparse=sparse, tags=["寺", "庭"], card="n" * 4000)])
    assert server.count(name, "id == 1") == 1
    fields = ["path", "card", "tags", "sparse", "dense"]
    [[hit]] = client.search(
        name, data=[unit(1)], anns_field="dense", limit=5, search_params={"metric_type": "IP"}, output_fields=fields,
        consistency_level="Strong",
    )  # fmt: skip
    for found in (hit["entity"], *server.query(name, "id == 1", fields)):
        assert (found["path"], found["card"], list(found["tags"])) == (path, "n" * 4000, ["寺", "庭"])
        assert dict(found["sparse"]) == pytest.approx(sparse)
        assert list(found["dense"]) == pytest.approx(unit(1))


def test_cards_of_any_length_come_back_by_the_ids_of_their_rows(server: MilvusServer, name: str) -> None:
    cards = {1: "a", 2: "b" * 65_535, 3: "".join(map(str, range(50_000)))}
    server.upsert(name, [row(row_id, **split_card(card)) for row_id, card in cards.items()])
    assert server.cards_where(name, "tool == 1") == cards
    assert server.cards(name, [3, 1, 4]) == {3: cards[3], 1: "a"}
    assert server.cards(name, [4]) == {}


def test_a_collection_that_was_released_is_loaded_by_the_next_request(
    server: MilvusServer, client: Any, name: str
) -> None:
    server.upsert(name, [row(1)])
    requests: tuple[Callable[[], bool], ...] = (
        lambda: server.count(name, "id == 1") == 1,
        lambda: server.query(name, "id == 1", ["id"]) == [{"id": 1}],
        lambda: server.search(name, "dense", [unit(1)], 5, "tool in [1]")[0][0][0] == 1,
    )
    for ask in requests:
        client.release_collection(name)
        assert ask()


def test_no_answer_has_more_than_16384_rows(server: MilvusServer, client: Any, name: str) -> None:
    server.upsert(name, [row(1)])
    assert server.search(name, "dense", [unit(1)], MAX_RESULTS, "tool in [1]")[0][0][0] == 1
    assert ids(server.query(name, "tool == 1", ["id"], limit=MAX_RESULTS)) == [1]
    if IS_REAL:
        with pytest.raises(MilvusException, match="16384"):
            client.search(name, data=[unit(1)], anns_field="dense", limit=MAX_RESULTS + 1)


def failure_of(request: Callable[[], object]) -> IndexFailure:
    with pytest.raises(IndexFailure) as caught:
        request()
    assert caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


UNFIT: dict[str, dict[str, Any]] = {
    "dimension": {"dense": [1.0] * (DIMENSION + 1)},
    "long path": {"path": "x" * 5000},
    "sparse dimension": {"sparse": {2**32: 1.0}},
    "no number": {"date": "three"},
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_row_that_does_not_fit_is_refused_and_the_others_stay(server: MilvusServer, name: str, what: str) -> None:
    server.upsert(name, [row(1)])
    if server.is_file and what == "long path":
        return  # it keeps what is too long
    assert not failure_of(lambda: server.upsert(name, [row(1, **UNFIT[what])])).is_away
    # A file has deleted the old row by then; bunko never sends vectors of another size.
    assert server.count(name, 'path == "京都/1.md"') == (0 if server.is_file and what == "dimension" else 1)


def test_a_request_that_makes_no_sense_is_no_server_that_is_away(server: MilvusServer, name: str) -> None:
    server.upsert(name, [row(1)])
    assert not failure_of(lambda: server.search(name, "dense", [[1.0] * 3], 5, "tool in [1]")).is_away
    assert not failure_of(lambda: server.query(name, "nothing == 1", ["id"])).is_away
    assert not failure_of(lambda: server.query(name, "id ==", ["id"])).is_away


def test_a_collection_that_is_not_there_is_no_server_that_is_away(server: MilvusServer, client: Any, name: str) -> None:
    missing = f"{name}_missing"
    for request in (
        lambda: server.query(missing, "id == 1", ["id"]),
        lambda: server.count(missing, "id == 1"),
        lambda: server.search(missing, "dense", [unit(1)], 5, "tool in [1]"),
        lambda: server.upsert(missing, [row(1)]),
        lambda: server.delete(missing, "id == 1"),
    ):
        assert not failure_of(request).is_away
    with pytest.raises(MilvusException) as caught:
        client.query(missing, filter="id == 1", output_fields=["id"])
    assert caught.value.code == 100


def test_a_request_that_is_too_large_is_refused_as_such(server: MilvusServer, client: Any, name: str) -> None:
    """The limit is 64 MB by default; nothing that bunko sends comes near it."""
    if server.is_file or not IS_REAL:
        pytest.skip("Milvus Lite has no such limit")
    rows = [row(number, path="x" * 4000) for number in range(1, 18_001)]
    with pytest.raises((MilvusException, grpc.RpcError), match="larger than max"):
        client.upsert(name, rows)
    failure = failure_of(lambda: server.upsert(name, rows))
    assert "larger than max" in failure.message
    assert not failure.is_away


def test_a_wrong_token_is_refused_where_tokens_are_asked_for(options: MilvusOptions, name: str) -> None:
    if not options.token:
        pytest.skip("this server asks for no token")
    stranger = MilvusServer(MilvusOptions(uri=options.uri, token="root:not-the-password", timeout=10.0))
    assert "rejected the token" in failure_of(stranger.collections).message
    stranger.close()
