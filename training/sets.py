"""Folders of judged questions in, the file that `judge.py` reads out: the package's own chunks and its scores by words.

usage: python training/sets.py OUT.pkl.xz FOLDER[=STEP]… [--bridge]
needs: bunko.

A folder holds corpus.jsonl (id, title, text), queries.jsonl (id, text) and qrels.tsv; jaquad_dev=8 takes every eighth
of its questions. The one file goes to the training machine, which then needs neither the sets nor bunko installed.
"""

from __future__ import annotations

import argparse
import lzma
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from judge import ndcg

from bunko.evaluation import beir
from bunko.evaluation.eval_library import judged_library
from bunko.search.rank import SearchRequest, rank_rows
from bunko.settings import Settings

DEPTH = 200  # chunks by words for each question
LONGEST = 1500  # characters of a chunk that are embedded


def main() -> None:
    """Write one file with all sets, and say what words alone reach."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--bridge", action="store_true", help="words count in the other language too")
    options = parser.parse_args()
    found = {}
    for one in options.folders:
        path, _, step = one.partition("=")
        judged = laid_out(Path(path), int(step or 1), bridge=options.bridge)
        found[Path(path).name] = judged
        print(Path(path).name, len(judged["texts"]), len(judged["queries"]), f"{ndcg(by_words(judged), judged):.4f}")
    with lzma.open(options.out, "wb", preset=6) as file:
        pickle.dump(found, file)


def laid_out(folder: Path, step: int, *, bridge: bool) -> dict[str, Any]:
    """Return one set: its chunks and their documents, its questions and their grades, and what words find."""
    judged = beir.load_beir(folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels.tsv")
    queries = [query.text for query in judged.queries[::step]]
    with judged_library(judged.documents, Settings()) as library, library.store.read_transaction():
        snapshot = library.snapshot([tool.id for tool in library.tools()])
        ids = [snapshot.chunk_id(row) for row in range(snapshot.size)]
        chunks = library.store.chunks(ids)
        number = {uri: at for at, uri in enumerate(sorted({chunk.uri for chunk in chunks.values()}))}
        rows, scores = np.full((len(queries), DEPTH), -1, np.int32), np.zeros((len(queries), DEPTH), np.float32)
        request, masks = SearchRequest("", mode="bm25", top_k=DEPTH, bridge=bridge), snapshot.masks(None)
        for at, query in enumerate(queries):
            for rank, one in enumerate(rank_rows(snapshot, query, None, request, masks)):
                rows[at, rank], scores[at, rank] = one.row, one.score
    return {
        "texts": [chunks[one].chunk.text_in_context(chunks[one].title)[:LONGEST] for one in ids],
        "doc": np.array([number[chunks[one].uri] for one in ids]),
        "queries": queries,
        "rel": [
            {number[uri]: grade for uri, grade in query.grades.items() if uri in number}
            for query in judged.queries[::step]
        ],
        "ix": rows,
        "sc": scores,
    }


def by_words(judged: dict[str, Any]) -> np.ndarray:
    """Return the scores by words of all chunks."""
    found = np.full((len(judged["queries"]), len(judged["texts"])), -1.0, np.float32)
    for at, (rows, scores) in enumerate(zip(judged["ix"], judged["sc"], strict=True)):
        found[at, rows[rows >= 0]] = scores[rows >= 0]
    return found


if __name__ == "__main__":
    main()
