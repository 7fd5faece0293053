"""A model and judged sets with BM25 scores in, nDCG@10 of vectors alone and of both by weight out.

usage: python training/judge.py [--judged SETS.pkl.xz] [--pairs holdout.jsonl.zst] [--table STATIC.bin] [--size N]
needs: bunko; zstandard for pairs.

Run by itself it judges the exported table as the package reads it, `static.py` uses its functions while training.
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


def judged(path: Path) -> dict:
    """Return the sets that `training/sets.py` wrote."""
    with lzma.open(path, "rb") as file:
        return pickle.load(file)  # our own file


def scores(sets: dict, encode: Encode) -> dict[str, dict]:
    """Return for each set the score of vectors alone and for each weight of theirs."""
    found = {}
    for name, one in sets.items():
        vectors, queries = encode(one["texts"]), encode(one["queries"])
        near = queries @ vectors.T
        found[name] = {"dense": ndcg(near, one)} | {w: ndcg(fused(near, one, w), one) for w in WEIGHTS}
    return found


def fused(near: np.ndarray, one: dict, weight: float, depth: int = 100) -> np.ndarray:
    """Return the convex combination of both arms, each between its own least and best of the hits it gives."""
    out = np.full(near.shape, -1.0, np.float32)
    for row in range(len(near)):
        best = np.argpartition(-near[row], min(depth, near.shape[1] - 1))[:depth]
        like = one["ix"][row][one["ix"][row] >= 0][:depth]
        both = np.union1d(best, like).astype(np.int64)
        dense = near[row, both]
        words = np.zeros(near.shape[1], np.float32)
        words[one["ix"][row][one["ix"][row] >= 0]] = one["sc"][row][one["ix"][row] >= 0]
        words = words[both]
        out[row, both] = weight * _scaled(dense) + (1 - weight) * _scaled(words)
    return out


def _scaled(values: np.ndarray) -> np.ndarray:
    low, high = values.min(), values.max()
    return (values - low) / max(high - low, 1e-9)


def ndcg(scores: np.ndarray, one: dict, k: int = 10) -> float:
    """Return the mean over queries; a document is as good as its best chunk."""
    total, number = 0.0, 0
    for row, grades in enumerate(one["rel"]):
        if not grades:
            continue
        seen: list[int] = []
        for chunk in np.argsort(-scores[row], kind="stable")[: 20 * k]:
            document = int(one["doc"][chunk])
            if document not in seen:
                seen.append(document)
            if len(seen) == k:
                break
        ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(grades.values(), reverse=True)[:k]))
        total += sum(grades.get(document, 0) / math.log2(i + 2) for i, document in enumerate(seen)) / ideal
        number += 1
    return total / number


def table(found: dict[str, dict]) -> str:
    """Return scores as lines."""
    lines = []
    for name, row in found.items():
        lines.append(f"  {name:18s} " + "  ".join(f"{key}: {value:.3f}" for key, value in row.items()))
    means = {key: float(np.mean([row[key] for row in found.values()])) for key in next(iter(found.values()))}
    return "\n".join([*lines, f"  {'mean':18s} " + "  ".join(f"{key}: {value:.4f}" for key, value in means.items())])


def paired(path: Path, encode: Encode) -> dict[str, dict]:
    """Return for each kind of pairs how often a text's partner is the nearest of all, in both directions."""
    by_kind: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in lines([path]):
        by_kind[line["kind"]].append((line["a"], line["b"]))
    found = {}
    for kind, pairs in sorted(by_kind.items()):
        near = encode([a for a, _ in pairs]) @ encode([b for _, b in pairs]).T
        own = np.arange(len(pairs))
        found[kind] = {
            f"{len(pairs)} pairs, a finds b": float(np.mean(near.argmax(axis=1) == own)),
            "b finds a": float(np.mean(near.argmax(axis=0) == own)),
        }
    return found


def main() -> None:
    """Judge a table that was exported."""
    from bunko.embedders import static

    parser = argparse.ArgumentParser()
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--table", type=Path, default=static.TABLE)
    parser.add_argument("--size", type=int, default=256)
    options = parser.parse_args()
    model = static.Static(options.size, options.table)
    if options.judged:
        print(table(scores(judged(options.judged), model.embed)))
    if options.pairs:
        print(table(paired(options.pairs, model.embed)))


if __name__ == "__main__":
    main()
