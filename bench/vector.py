"""Measure the CPU time of vector queries, beside a bare matrix product and Chroma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench import queries
from bench.clock import race, run_apart
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Result, Table, check, number

TOP = 10
_CHROMA_BATCH = 5_000  # Chroma refuses larger batches


def run(libraries: Libraries) -> Result:
    columns = ("chunks × 256", "bunko", "bare product", "bunko ÷ bare", "bunko finds", "Chroma", "Chroma finds")
    table = Table(columns)
    result = Result({"vector": table})
    for size in (SMALL, MEDIUM, LARGE):
        libraries.docs(size)
        measured = run_apart(measure, libraries, size, ("bunko", "bare"))
        # Chroma needs minutes to import the largest.
        measured |= run_apart(measure, libraries, size, ("Chroma",)) if size <= MEDIUM else {}
        ratio = measured["bunko"][0] / measured["bare"][0]
        times = {name: f"{number(micros)} µs" for name, (micros, _) in measured.items()}
        shares = {name: f"{share:.1%}" for name, (_, share) in measured.items()}
        cells = (times["bunko"], times["bare"], f"{ratio:.2f}", shares["bunko"])
        table.rows.append((f"{size:,}", *cells, times.get("Chroma", "–"), shares.get("Chroma", "–")))
        if size == MEDIUM:
            result.checks.append(check(f"vector query, {size:,} × 256, against the bare product", ratio, 1.3, "×"))
    return result


def measure(libraries: Libraries, size: int, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the microseconds of each way to find the nearest rows, and its recall."""
    with libraries.open(size) as (library, view):
        texts = [query for kind in queries.questions().values() for query in kind]
        vectors = library.embedder().embed(texts, query=True)
        matrix = np.array(view.views[0].segment.vectors)
        builders: dict[str, Callable[[], Callable[[Any], list[int]]]] = {
            "bunko": lambda: lambda vector: list(view.nearest(vector, TOP).ranking.rows),
            "bare": lambda: lambda vector: _bare_product(matrix, vector),
            "Chroma": lambda: chroma(matrix),
        }
        finders = {name: builders[name]() for name in names}
        seconds = race({name: _over_all(find, vectors) for name, find in finders.items()})
        return {
            name: (seconds[name] / len(vectors) * 1e6, _recall(find, matrix, vectors)) for name, find in finders.items()
        }


def _bare_product(matrix: Any, vector: Any) -> list[int]:
    scores = matrix @ vector
    best = np.argpartition(scores, -TOP)[-TOP:]
    return best[np.argsort(-scores[best])].tolist()


def _recall(find: Callable[[Any], list[int]], matrix: Any, vectors: Any) -> float:
    """Return the share of results that are as near as the true best; ties count as found."""
    hits = 0
    for vector in vectors:
        scores = matrix @ vector
        threshold = np.sort(scores)[-TOP] - 1e-6
        hits += int(np.count_nonzero(scores[find(vector)] >= threshold))
    return hits / (TOP * len(vectors))


def chroma(matrix: Any) -> Callable[[Any], list[int]]:
    """Return a search of the rows of a matrix by Chroma."""
    import chromadb

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection(f"rows-{len(matrix)}", configuration={"hnsw": {"space": "cosine"}})
    for start in range(0, len(matrix), _CHROMA_BATCH):
        batch = matrix[start : start + _CHROMA_BATCH]
        collection.add([str(start + row) for row in range(len(batch))], embeddings=batch)

    def find(vector: Any) -> list[int]:
        answer = collection.query(query_embeddings=[vector], n_results=TOP, include=["distances"])
        return [int(row_id) for row_id in answer["ids"][0]]

    return find


def _over_all(find: Callable[[Any], list[int]], vectors: Any) -> Callable[[], None]:
    def step() -> None:
        for vector in vectors:
            find(vector)

    return step
