"""Judged sets in (corpus.jsonl, queries.jsonl, qrels.tsv in a folder each), what each part of the ranking is worth out.

usage: python -m bench.quality FOLDER…

Scores by mode and by setting come from `bunko evaluate`; these are the parts that no setting switches off.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bunko.evaluation import beir
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.eval_library import judged_library
from bunko.evaluation.measures import ranking_measures
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.library.library import Library
from bunko.search.query_analysis import QueryAnalysis, analyse_query
from bunko.search.rank import rank_lexical
from bunko.settings import Settings

K, CHUNKS = 10, 100
Answer = Callable[[str], list[str]]
# The roles of a query's terms that each row counts; "" are its words.
ROWS = {
    "words": ("",),
    "words, parts of identifiers": ("", "part"),
    "words, parts, loanwords": ("", "part", "loanword"),
    "words, parts, loanwords, pairs": ("", "part", "loanword", "gram"),
}


def main(folders: list[Path]) -> None:
    rows: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        judged = beir.load_beir(folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels.tsv")
        with judged_library(judged.documents, Settings()) as library:
            for name, answer in ways(library):
                rows[name].append("{:.4f} / {:.3f}".format(*score(judged.queries, answer)))
    print("| |", " | ".join(folder.name for folder in folders), "|")
    print("|---|" + "---|" * len(folders))
    for name, cells in rows.items():
        print("|", name, "|", " | ".join(cells), "|")


def ways(library: Library) -> Iterator[tuple[str, Answer]]:
    """Return the ways to search that are compared, without the fallback to grams."""
    with library.store.read_transaction():
        snapshot = library.snapshot([tool.id for tool in library.tools()])
        for name, roles in ROWS.items():
            yield name, by(library, snapshot, roles)


def by(library: Library, snapshot: Snapshot, roles: tuple[str, ...]) -> Answer:
    """Return a way to search by terms of some roles."""

    def answer(query: str) -> list[str]:
        found = rank_lexical(
            snapshot, only(analyse_query(query), roles), CHUNKS, k1=1.2, b=0.75, masks=snapshot.masks(None)
        )
        ids = [snapshot.chunk_id(row) for row in found.rows]
        chunks = library.store.chunks(ids)
        return list(dict.fromkeys(chunks[one].uri for one in ids))

    return answer


def only(analysis: QueryAnalysis, roles: tuple[str, ...]) -> QueryAnalysis:
    """Return an analysis with the terms of some roles alone."""
    kept = [i for i, role in enumerate(analysis.roles) if role in roles]
    return replace(
        analysis,
        wanted=tuple(analysis.terms[i] for i in kept),
        spellings=tuple(analysis.spellings[i] for i in kept),
        roles=tuple(analysis.roles[i] for i in kept),
        grams=(),
    )


def score(queries: tuple[JudgedQuery, ...], answer: Answer) -> tuple[float, float]:
    """Return mean nDCG@10 and recall@10, each document judged once however many chunks it has."""
    found = [ranking_measures(answer(one.text), one.grades, K) for one in queries if one.is_answerable]
    return sum(one[f"ndcg@{K}"] for one in found) / len(found), sum(one[f"recall@{K}"] for one in found) / len(found)


if __name__ == "__main__":
    main([Path(one) for one in sys.argv[1:]])
