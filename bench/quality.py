"""Score parts of the ranking on judged sets, each a folder with corpus.jsonl, queries.jsonl and qrels.tsv.

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
from bunko.library.library import Library
from bunko.protocols import IndexView
from bunko.search.arms import rank_lexical
from bunko.search.query_analysis import QueryAnalysis, analyse_query
from bunko.settings import Settings
from bunko.types.ranking import RankingOptions

K, CHUNKS = 10, 100
Answer = Callable[[str], list[str]]
# The roles of query terms that each row counts; "" are the words.
WORDS = RankingOptions(bridge=False)  # as the peers, which know no translations
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
            for name, answer in search_functions(library):
                rows[name].append("{:.4f} / {:.3f}".format(*score(judged.queries, answer)))
    print("| |", " | ".join(folder.name for folder in folders), "|")
    print("|---|" + "---|" * len(folders))
    for name, cells in rows.items():
        print("|", name, "|", " | ".join(cells), "|")


def search_functions(library: Library) -> Iterator[tuple[str, Answer]]:
    """Yield the ways to search that are compared, without the fallback to n-grams."""
    with library.store.read_transaction():
        view = library.index_view([tool.id for tool in library.tools()])
        for name, roles in ROWS.items():
            yield name, search_by_roles(library, view, roles)


def search_by_roles(library: Library, view: IndexView, roles: tuple[str, ...]) -> Answer:
    """Return a function that searches by terms of these roles."""

    def answer(query: str) -> list[str]:
        ranking = rank_lexical(view, keep_roles(analyse_query(query, WORDS), roles), CHUNKS, k1=1.2, b=0.75)
        ids = view.chunk_ids(ranking.rows)
        chunks = library.store.documents.chunks(ids)
        return list(dict.fromkeys(chunks[chunk_id].uri for chunk_id in ids))

    return answer


def keep_roles(analysis: QueryAnalysis, roles: tuple[str, ...]) -> QueryAnalysis:
    """Return an analysis with only the terms of these roles."""
    indices = [index for index, role in enumerate(analysis.roles) if role in roles]
    return replace(
        analysis,
        terms=tuple(analysis.terms[index] for index in indices),
        spellings=tuple(analysis.spellings[index] for index in indices),
        roles=tuple(analysis.roles[index] for index in indices),
        grams=(),
    )


def score(queries: tuple[JudgedQuery, ...], answer: Answer) -> tuple[float, float]:
    """Return mean nDCG@10 and recall@10, each document judged once however many chunks it has."""
    measures = [ranking_measures(answer(query.text), query.grades, K) for query in queries if query.is_answerable]
    return sum(row[f"ndcg@{K}"] for row in measures) / len(measures), sum(row[f"recall@{K}"] for row in measures) / len(
        measures
    )


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
