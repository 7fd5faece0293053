"""Choose the constants of the fusion and of nearest words by leaving one set out.

usage: python training/constants.py FOLDER[=STEP][:FIELD]… [--pairs PAIRS…] [--libraries FOLDER]
needs: bunko; zstandard for pairs.

A folder holds corpus.jsonl (id, title, text), queries.jsonl (id, text) and qrels.tsv; jaquad_dev=8 takes every eighth
of its questions, medquad_liveqa:original asks them as they stand in that field. A file of pairs is a set for each
direction of languages: its questions and headings look for their texts. bunko's own set comes last. What comes from one
folder or one file is left out together, and counts as much as any other in the choice.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from pairs import lines

from bunko.embedders import nearest_words
from bunko.evaluation import beir, compare
from bunko.evaluation.cached_search import CachedSearch, SearchConfig, embed_queries
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery, JudgedSet, bundled_files, load_judged_set
from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library
from bunko.library.library import Library
from bunko.search import fusion
from bunko.search.request import RankRequest
from bunko.settings import Settings

MEASURE, RESULTS = "ndcg@10", 10
KINDS, MIN_CHARS = ("qa", "heading", "title"), 6  # of a question
PAIR_TEXTS, PAIR_QUESTIONS = 6000, 400  # of each direction of languages
Values = tuple[float, ...]
Scores = dict[Values, np.ndarray]


class Group(NamedTuple):
    """Constants of a module and options of a search that are chosen together, with the values to try."""

    title: str
    module: ModuleType
    constants: dict[str, Values]
    options: dict[str, Values]

    @contextmanager
    def values(self, values: Values) -> Iterator[None]:
        """Search with other values."""
        before = {name: getattr(self.module, name) for name in self.constants}  # fails if one has another name now
        try:
            for name, value in zip(self.constants, values, strict=True):
                setattr(self.module, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self.module, name, value)


GROUPS = (
    Group(
        "base, extra, spreads",
        fusion,
        {
            "_BASE_VECTOR_WEIGHT": (0.15, 0.25, 0.35),
            "_EXTRA_VECTOR_WEIGHT": (0.4, 0.6, 0.75),
            "_FULL_SCORE_SPREADS": (6.0, 8.0, 10.0),
        },
        {},
    ),
    Group(
        "cap, subwords, power, weight",
        nearest_words,
        {"_MAX_COSINE": (0.3, 0.4, 0.5), "_FULL_SUBWORDS": (6.0, 8.0, 10.0), "_FALL": (2.0, 3.0, 4.0)},
        {"nearest_words": (0.0, 0.4, 0.6, 0.8, 1.0, 1.2)},
    ),
)


class Measured(NamedTuple):
    """A set, what it comes from, and the nDCG@10 of its questions: by words, as shipped, and by the values tried."""

    name: str
    source: str
    by_words: np.ndarray
    shipped: np.ndarray
    scores: list[Scores]  # by the values of each group


def main() -> None:
    """Measure all sets, and print what each one left out would have been given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--pairs", type=Path, nargs="*", default=[])
    parser.add_argument("--libraries", type=Path, help="keep the libraries here")
    options = parser.parse_args()
    measured = []
    judged_sets = [(argument.partition(":")[0], folder_set(argument)) for argument in options.folders]
    judged_sets += [(str(path), judged_set) for path in options.pairs for judged_set in pair_sets(path)]
    judged_sets.append(("", load_judged_set(*bundled_files(), name="bunko's own")))
    for source, judged_set in judged_sets:
        # The same texts with other questions are one library.
        folder = options.libraries / judged_set.name.partition(":")[0] if options.libraries else None
        with judged_library(judged_set.documents, Settings(), persist_dir=folder) as library:
            measured.append(measure_set(library, source, judged_set))
        print(f"{judged_set.name}: {len(judged_set.documents)} texts, {len(judged_set.queries)} questions", flush=True)
    print_table(measured)


def folder_set(argument: str) -> JudgedSet:
    """Return the set in a folder, as the command line names it."""
    argument, _, field = argument.partition(":")
    path, _, step = argument.partition("=")
    folder = Path(path)
    dataset = beir.load_beir(folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels.tsv")
    queries = dataset.queries[:: int(step or 1)]
    if not field:
        return JudgedSet(folder.name, dataset.documents, queries)
    rows = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {row["id"]: row[field] for row in rows}
    queries = tuple(replace(query, text=texts[query.id]) for query in queries)
    return JudgedSet(f"{folder.name}:{field}", dataset.documents, queries)


def pair_sets(path: Path) -> Iterator[JudgedSet]:
    """Yield a set for each direction of languages in a file of pairs."""
    by_direction = defaultdict(list)
    for line in lines([path]):
        if line["kind"] in KINDS and len(line["a"]) >= MIN_CHARS:
            by_direction[f"{line['la']}-{line['lb']}"].append(line)
    for direction, rows in sorted(by_direction.items()):
        random.Random(0).shuffle(rows)
        ids = {text: str(number) for number, text in enumerate(dict.fromkeys(row["b"] for row in rows[:PAIR_TEXTS]))}
        yield JudgedSet(
            f"{path.name.partition('.')[0]}_{direction}",
            tuple(JudgedDocument(number, "", text) for text, number in ids.items()),
            tuple(
                JudgedQuery(str(number), row["a"], {ids[row["b"]]: 1.0})
                for number, row in enumerate(rows[:PAIR_QUESTIONS])
            ),
        )


def measure_set(library: Library, source: str, judged_set: JudgedSet) -> Measured:
    """Return the scores of a set by words, as shipped, and by the values of each group, the others as shipped."""
    queries = [query for query in judged_set.queries if query.is_answerable]
    embedder = library.embedder()
    assert embedder is not None
    vectors = embed_queries(embedder, queries)
    hybrid = library.build_request("", mode="hybrid")

    def measure(search: CachedSearch, *requests: RankRequest) -> list[np.ndarray]:
        rows = search.measure_queries([SearchConfig(request, RESULTS, None) for request in requests])
        return [np.array([row[MEASURE] for row in measures]) for measures in rows]

    search = CachedSearch(library, JUDGED_TOOL, queries, vectors, MEASURE)
    by_words, shipped = measure(search, library.build_request("", mode="bm25"), hybrid)
    scores: list[Scores] = []
    for group in GROUPS:
        requests = {
            rest: replace(hybrid, options=replace(hybrid.options, **dict(zip(group.options, rest, strict=True))))
            for rest in itertools.product(*group.options.values())
        }
        by_values: Scores = {}
        for values in itertools.product(*group.constants.values()):
            if group.module is nearest_words:  # a search remembers what it read closely
                search = CachedSearch(library, JUDGED_TOOL, queries, vectors, MEASURE)
            with group.values(values):
                results = measure(search, *requests.values())
            by_values |= {(*values, *rest): result for rest, result in zip(requests, results, strict=True)}
        scores.append(by_values)
    return Measured(judged_set.name, source, by_words, shipped, scores)


def print_table(measured: list[Measured]) -> None:
    """Print for each set its scores by words, as shipped, and with what the others chose."""
    sources = list(dict.fromkeys(item.source for item in measured))
    titles = [f"{group.title} that the others chose | its score" for group in GROUPS]
    print(f"\n| left out | words | shipped | gain | {' | '.join(titles)} |")
    print(f"|---|---|---|---|{'---|---|' * len(GROUPS)}")
    for item in measured:
        cells = [item.name, f"{item.by_words.mean():.4f}", f"{item.shipped.mean():.4f}"]
        cells.append(difference(item.by_words, item.shipped))
        others = [source for source in sources if source != item.source]
        for number, scores in enumerate(item.scores):
            choice = rank_values(measured, number, others)[0][1]
            cells += [", ".join(f"{value:g}" for value in choice), f"{scores[choice].mean():.4f}"]
            if (scores[choice] != item.shipped).any():
                cells[-1] += f", {difference(item.shipped, scores[choice])}"
        print(f"| {' | '.join(cells)} |")
    for number, group in enumerate(GROUPS):
        best = rank_values(measured, number, sources)[:5]
        print(f"\n{group.title}, best over all:", "; ".join(f"{mean:.4f} {values}" for mean, values in best))


def rank_values(measured: list[Measured], number: int, sources: list[str]) -> list[tuple[float, Values]]:
    """Return the mean over the sources with each of the values of a group, best first."""
    means = {
        values: np.mean(
            [
                np.mean([item.scores[number][values].mean() for item in measured if item.source == source])
                for source in sources
            ]
        )
        for values in measured[0].scores[number]
    }
    return sorted(((float(mean), values) for values, mean in means.items()), reverse=True)


def difference(first: np.ndarray, second: np.ndarray) -> str:
    """Return the mean difference with its 95 % interval, bold if it excludes 0."""
    changes = (second - first)[:, None]
    low, high = np.percentile(compare.resample_means(changes), (2.5, 97.5))
    mean = f"{changes.mean():+.3f}"
    text = f"{f'**{mean}**' if low > 0 or high < 0 else mean} ({low:+.3f}…{high:+.3f})"
    return text.replace("-", "−")


if __name__ == "__main__":
    main()
