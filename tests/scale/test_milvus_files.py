"""Milvus Lite files with many rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.options import MilvusOptions
from tests.scale.engines import require_milvus

pytestmark = pytest.mark.scale
ROWS, DIMENSION = 20_000, 64


@pytest.fixture(scope="module")
def vectors() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    rows = np.random.default_rng(5).standard_normal((ROWS, DIMENSION)).astype(np.float32)
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Path:
    require_milvus()
    path = tmp_path_factory.mktemp("milvus") / "milvus.db"
    server = MilvusServer(MilvusOptions(uri=str(path)))
    server.create("rows", DIMENSION)
    empty = {"tool": 1, "document_id": 1, "path": "", "date": 0, "tags": [], "card": "", "more": []}
    for start in range(0, ROWS, 2000):
        rows = [
            empty | {"id": start + position + 1, "dense": vector, "sparse": {1: 1.0}}
            for position, vector in enumerate(vectors[start : start + 2000].tolist())
        ]
        server.upsert("rows", rows)
    server.close()
    return path


def test_the_first_answer_of_a_large_file_may_take_longer_than_a_search_and_is_exact(
    file: Path, vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> None:
    server = MilvusServer(MilvusOptions(uri=str(file), timeout=0.1))
    assert server.describe("rows") is not None
    assert server.count("rows", "tool == 1") == ROWS, "reading the file takes longer than a tenth of a second"
    server.close()
    server = MilvusServer(MilvusOptions(uri=str(file)))
    queries = vectors[:20] + 0.3
    answers = server.search("rows", "dense", queries.tolist(), 10, "tool in [1]")
    server.close()
    for query, answer in zip(queries, answers, strict=True):
        assert {row for row, _ in answer} == set((np.argsort(-(vectors @ query))[:10] + 1).tolist())
