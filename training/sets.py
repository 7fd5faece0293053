"""Write the file that `judge.py` reads: the chunks and BM25 scores of judged sets.

usage: python training/sets.py OUT.pkl.xz FOLDER[=STEP]… [--bridge]
needs: bunko.

A folder holds corpus.jsonl (id, title, text), queries.jsonl (id, text) and qrels.tsv; jaquad_dev=8 takes every eighth
of its questions. The file goes to the training machine, which then needs neither the sets nor bunko.
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
from bunko.search.rank import rank_rows
from bunko.search.request import RankRequest
from bunko.settings import Settings
from bunko.types.ranking import RankingOptions

DEPTH = 200  # BM25 hits for each question
MAX_CHARS = 1500  # characters of a chunk that are embedded


def main() -> None:
    """Write one file with all sets, and print their nDCG@10 by BM25."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--bridge", action="store_true", help="also match translated words")
    options = parser.parse_args()
    sets = {}
    for argument in options.folders:
        path, _, step = argument.partition("=")
        dataset = load_set(Path(path), int(step or 1), bridge=options.bridge)
        sets[Path(path).name] = dataset
        print(
            Path(path).name,
            len(dataset["texts"]),
            len(dataset["queries"]),
            f"{ndcg(bm25_scores(dataset), dataset):.4f}",
        )
    with lzma.open(options.out, "wb", preset=6) as file:
        pickle.dump(sets, file)


def load_set(folder: Path, step: int, *, bridge: bool) -> dict[str, Any]:
    """Return one set: its chunks and documents, its questions and grades, and the BM25 hits."""
    dataset = beir.load_beir(folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels.tsv")
    queries = [query.text for query in dataset.queries[::step]]
    with judged_library(dataset.documents, Settings()) as library, library.store.read_transaction():
        view = library.index_view([tool.id for tool in library.tools()])
        positions = {row: position for position, row in enumerate(view.rows())}
        ids = view.chunk_ids(list(positions))
        chunks = library.store.documents.chunks(ids)
        document_ids = {uri: index for index, uri in enumerate(sorted({chunk.uri for chunk in chunks.values()}))}
        rows, scores = np.full((len(queries), DEPTH), -1, np.int32), np.zeros((len(queries), DEPTH), np.float32)
        for index, query in enumerate(queries):
            request = RankRequest(query, "bm25", DEPTH, RankingOptions(bridge=bridge))
            for rank, hit in enumerate(rank_rows(view, None, request)):
                rows[index, rank], scores[index, rank] = positions[hit.row], hit.score
    return {
        "texts": [chunks[chunk_id].chunk.text_in_context(chunks[chunk_id].title)[:MAX_CHARS] for chunk_id in ids],
        "doc": np.array([document_ids[chunks[chunk_id].uri] for chunk_id in ids]),
        "queries": queries,
        "rel": [
            {document_ids[uri]: grade for uri, grade in query.grades.items() if uri in document_ids}
            for query in dataset.queries[::step]
        ],
        "ix": rows,
        "sc": scores,
    }


def bm25_scores(dataset: dict[str, Any]) -> np.ndarray:
    """Return the BM25 scores of all chunks."""
    matrix = np.full((len(dataset["queries"]), len(dataset["texts"])), -1.0, np.float32)
    for index, (rows, scores) in enumerate(zip(dataset["ix"], dataset["sc"], strict=True)):
        matrix[index, rows[rows >= 0]] = scores[rows >= 0]
    return matrix


if __name__ == "__main__":
    main()
