"""Measure the CPU time of vector queries, beside a bare matrix product and Chroma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bench import queries
from bench.clock import race, run_apart
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Check, Result, Table, check, number
from bunko.indexes.embedded import codes, postings, sentences
from bunko.indexes.embedded.segment import Segment
from bunko.indexes.embedded.snapshot import SegmentView
from bunko.indexes.embedded.view import EmbeddedView

TOP = 10
CLOSELY_READ = 100  # a search by meaning alone reads so many
HUGE, MILLION = 500_000, 1_000_000
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
    return _add_huge(result, libraries)


def _add_huge(result: Result, libraries: Libraries) -> Result:
    """Add what is measured with very many vectors."""
    columns = ("× 256", "a query", f"finds of {TOP}", f"finds of {CLOSELY_READ}", f"of {CLOSELY_READ}, far from all")
    result.tables["vector-huge"] = table = Table(columns)
    for size, limit in ((HUGE, 3), (MILLION, 5)):
        measured = run_apart(measure_huge, libraries, size)
        for name, (micros, shares) in measured.items():
            cells = (f"{share:.1%}" for share in shares) if shares else ("–", "–", "–")
            table.rows.append((f"{size:,}: {name}", f"{number(micros / 1e3)} ms", *cells))
        micros, shares = measured["bunko"]
        result.checks.append(check(f"vector query, {size:,} × 256", micros / 1e3, limit, "ms"))
        found = min(shares)
        result.checks.append(Check(f"of the nearest of {size:,}, found", f"{found:.1%}", "≥ 99%", found >= 0.99))
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


def measure_huge(libraries: Libraries, size: int) -> dict[str, tuple[float, Sequence[float]]]:
    """Return the microseconds and the recalls of a query over very many vectors, beside the limits of the machine.

    The last recall is that of questions about something else, which are near none of the texts.
    """
    import simsimd

    with libraries.open(LARGE) as (library, view):
        texts = [query for kind in queries.questions().values() for query in kind]
        vectors, far_vectors = (library.embedder().embed(part, query=True) for part in (texts, queries.SOMETHING_ELSE))
        matrix = _mixed(np.array(view.views[0].segment.vectors), size)
    all_codes = codes.encode(matrix)
    snapshot = _snapshot(matrix, all_codes)
    exact = _snapshot(matrix, all_codes._replace(planes=all_codes.planes[:0]))
    coarse, planes = all_codes.coarse, all_codes.planes
    finders: dict[str, Callable[[Any, int], list[int]]] = {
        "bunko": lambda vector, count: list(snapshot.nearest(vector, count).ranking.rows),
        "bunko, all bytes": lambda vector, count: list(exact.nearest(vector, count).ranking.rows),
        "bare product": lambda vector, count: _bare_product(matrix, vector, count),
    }
    limits: dict[str, Callable[[], object]] = {
        "simsimd's product of bytes": lambda: simsimd.cdist(coarse[:1], coarse, metric="inner"),
        "reading the bytes once": coarse.view(np.int64).max,
        "reading the bit planes once": planes.max,
    }
    steps = {name: _over_all(partial(find, count=CLOSELY_READ), vectors) for name, find in finders.items()}
    seconds = race(steps, rounds=3)
    measured: dict[str, tuple[float, Sequence[float]]] = {}
    for name, find in finders.items():
        cases = ((TOP, vectors), (CLOSELY_READ, vectors), (CLOSELY_READ, far_vectors))
        shares = [_recall(partial(find, count=count), matrix, asked, count) for count, asked in cases]
        measured[name] = seconds[name] / len(vectors) * 1e6, shares
    return measured | {name: (value * 1e6, ()) for name, value in race(limits, rounds=3).items()}


def _mixed(matrix: Any, count: int) -> Any:
    """Return as many vectors as wanted, each between two of those given."""
    rng = np.random.default_rng(1)
    mixed = matrix[rng.integers(len(matrix), size=count)]
    mixed += matrix[rng.integers(len(matrix), size=count)]
    return mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)


def _snapshot(matrix: Any, matrix_codes: codes.Codes) -> EmbeddedView:
    """Return an index of vectors alone."""
    ids, nothing = np.arange(len(matrix)), postings.build([])
    lengths = np.ones(len(matrix), np.int32)
    no_sentences = sentences.no_sentences(len(matrix))
    parts = (ids, ids, ids.astype(np.uint64), lengths, nothing, nothing, matrix, matrix_codes, no_sentences)
    return EmbeddedView([SegmentView(Segment(*parts, {}))], 1)


def _bare_product(matrix: Any, vector: Any, count: int = TOP) -> list[int]:
    scores = matrix @ vector
    best = np.argpartition(scores, -count)[-count:]
    return best[np.argsort(-scores[best])].tolist()


def _recall(find: Callable[[Any], list[int]], matrix: Any, vectors: Any, count: int = TOP) -> float:
    """Return the share of results that are as near as the true best; ties count as found."""
    hits = 0
    for vector in vectors:
        scores = matrix @ vector
        threshold = np.sort(scores)[-count] - 1e-6
        hits += int(np.count_nonzero(scores[find(vector)] >= threshold))
    return hits / (count * len(vectors))


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
