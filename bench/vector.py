"""Libraries with vectors in, the CPU time of a nearest-vector query out, next to a bare product and to Chroma."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench import queries
from bench.clock import race
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Result, Table, check, number
from bunko.index.nearest import nearest
from bunko.index.snapshot import Snapshot

TOP = 10
_CHROMA_BATCH = 5_000  # it refuses more at a time


def run(libraries: Libraries) -> Result:
    head = ("chunks × 256", "bunko", "bare product", "bunko ÷ bare", "bunko finds", "Chroma", "Chroma finds")
    table = Table(head)
    result = Result({"vector": table})
    for size in (SMALL, MEDIUM, LARGE):
        with libraries.open(size) as (library, snapshot):
            asked = library.embedder().embed([one for kind in queries.questions().values() for one in kind], query=True)
            ratio, row = measure(snapshot, asked, chroma=size <= MEDIUM)
        table.rows.append((f"{size:,}", *row))
        if size == MEDIUM:
            result.checks.append(check(f"vector query, {size:,} × 256, against the bare product", ratio, 1.3, "×"))
    return result


def measure(snapshot: Snapshot, asked: Any, *, chroma: bool) -> tuple[float, tuple[str, ...]]:
    """Return our time in bare products, and the cells of a row."""
    matrix = np.array(snapshot.parts[0].segment.vectors)
    masks = snapshot.masks(None)
    finders: dict[str, Callable[[Any], list[int]]] = {
        "bunko": lambda vector: list(nearest(snapshot, vector, TOP, masks=masks).rows),
        "bare": lambda vector: _bare(matrix, vector),
    }
    if chroma:
        finders["Chroma"] = _chroma(matrix)
    steps = {name: _all(find, asked) for name, find in finders.items()}
    micros = {name: seconds / len(asked) * 1e6 for name, seconds in race(steps).items()}
    found = {name: _share(find, matrix, asked) for name, find in finders.items()}
    ratio = micros["bunko"] / micros["bare"]
    row = [f"{number(micros['bunko'])} µs", f"{number(micros['bare'])} µs", f"{ratio:.2f}", f"{found['bunko']:.1%}"]
    row += [f"{number(micros['Chroma'])} µs", f"{found['Chroma']:.1%}"] if chroma else ["–", "–"]
    return ratio, tuple(row)


def _bare(matrix: Any, vector: Any) -> list[int]:
    scores = matrix @ vector
    best = np.argpartition(scores, -TOP)[-TOP:]
    return best[np.argsort(-scores[best])].tolist()


def _share(find: Callable[[Any], list[int]], matrix: Any, asked: Any) -> float:
    """Return which share of what is found is as near as the true best; of equals, any will do."""
    good = 0
    for vector in asked:
        scores = matrix @ vector
        least = np.sort(scores)[-TOP] - 1e-6
        good += int(np.count_nonzero(scores[find(vector)] >= least))
    return good / (TOP * len(asked))


def _chroma(matrix: Any) -> Callable[[Any], list[int]]:
    import chromadb

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection(f"rows-{len(matrix)}", configuration={"hnsw": {"space": "cosine"}})
    for at in range(0, len(matrix), _CHROMA_BATCH):
        some = matrix[at : at + _CHROMA_BATCH]
        collection.add([str(at + row) for row in range(len(some))], embeddings=some)

    def find(vector: Any) -> list[int]:
        answer = collection.query(query_embeddings=[vector], n_results=TOP, include=["distances"])
        return [int(name) for name in answer["ids"][0]]

    return find


def _all(find: Callable[[Any], list[int]], asked: Any) -> Callable[[], None]:
    def step() -> None:
        for vector in asked:
            find(vector)

    return step
