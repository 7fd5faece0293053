"""Measure nDCG@10 of a model on judged sets: vectors alone, and fused with BM25 by weight.

usage: python training/judge.py [--judged SETS.pkl.xz] [--pairs holdout.jsonl.zst] [--table STATIC.bin] [--size N]
needs: bunko; zstandard for pairs.

As a script it measures the exported table through the package; `static.py` uses its functions during training.
"""

from __future__ import annotations

import argparse
import lzma
import math
import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pairs import lines

WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5)
Encode = Callable[[list[str]], np.ndarray]


def load_sets(path: Path) -> dict:
    """Load the sets that `training/sets.py` wrote."""
    with lzma.open(path, "rb") as file:
        return pickle.load(file)  # our own file


def scores(sets: dict, encode: Encode) -> dict[str, dict]:
    """Return the scores of each set: vectors alone, and fused with each weight."""
    results = {}
    for name, dataset in sets.items():
        vectors, queries = encode(dataset["texts"]), encode(dataset["queries"])
        similarities = queries @ vectors.T
        results[name] = {"dense": ndcg(similarities, dataset)} | {
            weight: ndcg(fuse_scores(similarities, dataset, weight), dataset) for weight in WEIGHTS
        }
    return results


def fuse_scores(similarities: np.ndarray, dataset: dict, weight: float, depth: int = 100) -> np.ndarray:
    """Return the convex combination of vector and BM25 scores, each scaled to the range of its hits."""
    fused_scores = np.full(similarities.shape, -1.0, np.float32)
    for row in range(len(similarities)):
        nearest = np.argpartition(-similarities[row], min(depth, similarities.shape[1] - 1))[:depth]
        lexical = dataset["ix"][row][dataset["ix"][row] >= 0][:depth]
        candidates = np.union1d(nearest, lexical).astype(np.int64)
        vector_scores = similarities[row, candidates]
        bm25_scores = np.zeros(similarities.shape[1], np.float32)
        bm25_scores[dataset["ix"][row][dataset["ix"][row] >= 0]] = dataset["sc"][row][dataset["ix"][row] >= 0]
        bm25_scores = bm25_scores[candidates]
        fused_scores[row, candidates] = weight * _scale(vector_scores) + (1 - weight) * _scale(bm25_scores)
    return fused_scores


def _scale(values: np.ndarray) -> np.ndarray:
    low, high = values.min(), values.max()
    return (values - low) / max(high - low, 1e-9)


def ndcg(scores: np.ndarray, dataset: dict, k: int = 10) -> float:
    """Return the mean nDCG over queries; a document ranks by its best chunk."""
    total, query_count = 0.0, 0
    for row, grades in enumerate(dataset["rel"]):
        if not grades:
            continue
        documents: list[int] = []
        for chunk in np.argsort(-scores[row], kind="stable")[: 20 * k]:
            document = int(dataset["doc"][chunk])
            if document not in documents:
                documents.append(document)
            if len(documents) == k:
                break
        ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:k]))
        total += sum(grades.get(document, 0) / math.log2(rank + 2) for rank, document in enumerate(documents)) / ideal
        query_count += 1
    return total / query_count


def format_scores(results: dict[str, dict]) -> str:
    """Format scores as lines."""
    lines = []
    for name, row in results.items():
        lines.append(f"  {name:18s} " + "  ".join(f"{key}: {value:.3f}" for key, value in row.items()))
    means = {key: float(np.mean([row[key] for row in results.values()])) for key in next(iter(results.values()))}
    return "\n".join([*lines, f"  {'mean':18s} " + "  ".join(f"{key}: {value:.4f}" for key, value in means.items())])


def pair_accuracy(path: Path, encode: Encode) -> dict[str, dict]:
    """Return for each kind of pairs how often the partner of a text is the nearest, in both directions."""
    by_kind: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in lines([path]):
        by_kind[line["kind"]].append((line["a"], line["b"]))
    results = {}
    for kind, pairs in sorted(by_kind.items()):
        similarities = encode([first for first, _ in pairs]) @ encode([second for _, second in pairs]).T
        indices = np.arange(len(pairs))
        results[kind] = {
            f"{len(pairs)} pairs, a finds b": float(np.mean(similarities.argmax(axis=1) == indices)),
            "b finds a": float(np.mean(similarities.argmax(axis=0) == indices)),
        }
    return results


def main() -> None:
    """Measure an exported table."""
    from bunko.embedders import subword_table

    parser = argparse.ArgumentParser()
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--table", type=Path, default=subword_table.TABLE)
    parser.add_argument("--size", type=int, default=256)
    options = parser.parse_args()
    model = subword_table.Static(options.size, options.table)
    if options.judged:
        print(format_scores(scores(load_sets(options.judged), model.embed)))
    if options.pairs:
        print(format_scores(pair_accuracy(options.pairs, model.embed)))


if __name__ == "__main__":
    main()
