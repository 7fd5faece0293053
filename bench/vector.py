"""Libraries with vectors in, the CPU time of a nearest-vector query out, next to a bare product and to Chroma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench import queries
from bench.clock import apart, race
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Result, Table, check, number
from bunko.indexes.embedded.vectors import nearest

TOP = 10
_CHROMA_BATCH = 5_000  # it refuses more at a time


def run(libraries: Libraries) -> Result:
    head = ("chunks × 256", "bunko", "bare product", "bunko ÷ bare", "bunko finds", "Chroma", "Chroma finds")
    table = Table(head)
    result = Result({"vector": table})
    for size in (SMALL, MEDIUM, LARGE):
        libraries.docs(size)
        found = apart(measure, libraries, size, ("bunko", "bare"))
        # It needs minutes to take in the largest.
        found |= apart(measure, libraries, size, ("Chroma",)) if size <= MEDIUM else {}
        ratio = found["bunko"][0] / found["bare"][0]
        times = {name: f"{number(micros)} µs" for name, (micros, _) in found.items()}
        shares = {name: f"{share:.1%}" for name, (_, share) in found.items()}
        cells = (times["bunko"], times["bare"], f"{ratio:.2f}", shares["bunko"])
        table.rows.append((f"{size:,}", *cells, times.get("Chroma", "–"), shares.get("Chroma", "–")))
        if size == MEDIUM:
            result.checks.append(check(f"vector query, {size:,} × 256, against the bare product", ratio, 1.3, "×"))
    return result


def measure(libraries: Libraries, size: int, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the microseconds of some ways to find the nearest, and how much of the true answer each finds."""
    with libraries.open(size) as (library, snapshot):
        texts = [one for kind in queries.questions().values() for one in kind]
        asked = library.embedder().embed(texts, query=True)
        matrix, masks = np.array(snapshot.views[0].segment.vectors), snapshot.masks(None)
        builders: dict[str, Callable[[], Callable[[Any], list[int]]]] = {
            "bunko": lambda: lambda vector: list(nearest(snapshot, vector, TOP, masks=masks).ranking.rows),
            "bare": lambda: lambda vector: _bare(matrix, vector),
            "Chroma": lambda: _chroma(matrix),
        }
        finders = {name: builders[name]() for name in names}
        seconds = race({name: _all(find, asked) for name, find in finders.items()})
        return {name: (seconds[name] / len(asked) * 1e6, _share(find, matrix, asked)) for name, find in finders.items()}


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
