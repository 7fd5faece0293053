"""Judged sets in (corpus.jsonl, queries.jsonl, qrels.tsv in a folder each), a table of nDCG@10 and recall@10 out.

usage: python -m bench.quality FOLDER…
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bunko.embedders.hashing import build as hashing
from bunko.index import terms
from bunko.index.live import Live
from bunko.index.snapshot import Snapshot
from bunko.ingest import ChunkerSettings, with_vectors
from bunko.protocols import Prepared
from bunko.search import Analysis, Request, analyse, lexical, ranked
from bunko.stores import memory
from bunko.text import words
from bunko.types import Document, Entry, Text, Tool

K = 10
Answer = Callable[[str], list[int]]


def main(folders: list[Path]) -> None:
    rows: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        documents, snapshot = load(folder)
        for name, answer in ways(snapshot):
            rows[name].append("{:.4f} / {:.3f}".format(*score(folder, documents, snapshot, answer)))
    print("| |", " | ".join(folder.name for folder in folders), "|")
    print("|---|" + "---|" * len(folders))
    for name, cells in rows.items():
        print("|", name, "|", " | ".join(cells), "|")


def load(folder: Path) -> tuple[dict[int, str], Snapshot]:
    """Index a corpus in memory, as an import would; return which document each id is."""
    store = memory.build()
    tool = store.put_tool(Tool("judged"))
    chunker = ChunkerSettings().build()
    embedder = hashing()
    names = []
    for number, line in enumerate(_lines(folder / "corpus.jsonl")):
        text = Text(line["text"], "text/markdown", "utf-8", line["title"])
        pieces = chunker.chunks(text)
        packed = terms.pack([words.keys(piece.in_context(text.title)) for piece in pieces])
        document = Document(Entry(line["id"], len(line["text"]), 1), text, str(number))
        put, vectors, _ = with_vectors(store, embedder, [Prepared(document, pieces, packed)])
        store.write(tool.id, put=put, vectors=vectors)
        names.append(line["id"])
    return dict(enumerate(names, 1)), Live(store, tool.id, None).snapshot()


def ways(snapshot: Snapshot) -> Iterator[tuple[str, Answer]]:
    """Return the ways to search that are compared, the defaults last."""

    def by(change: Callable[[Analysis], Analysis], **options: float) -> Answer:
        constants = {"k1": 1.2, "b": 0.75} | options

        def answer(query: str) -> list[int]:
            found = lexical(snapshot, change(analyse(query)), 10 * K, masks=snapshot.masks(None), **constants)
            return list(found.rows)

        return answer

    def only(*roles: str) -> Callable[[Analysis], Analysis]:
        def change(analysis: Analysis) -> Analysis:
            kept = [i for i, role in enumerate(analysis.roles) if role in roles]
            return replace(
                analysis,
                wanted=tuple(analysis.wanted[i] for i in kept),
                spellings=tuple(analysis.spellings[i] for i in kept),
                roles=tuple(analysis.roles[i] for i in kept),
                grams=(),
            )

        return change

    def mode(name: str, **options: object) -> Answer:
        request = Request("", mode=name, top_k=10 * K, **options)  # type: ignore[arg-type]
        embedder = hashing()
        return lambda query: [one.row for one in ranked(snapshot, query, embedder, request, snapshot.masks(None))]

    yield "words", by(only(""))
    yield "words, parts of identifiers", by(only("", "part"))
    yield "words, parts, loanwords", by(only("", "part", "loanword"))
    yield "words, parts, loanwords, pairs", by(only("", "part", "loanword", "gram"))
    yield "the same, k1 1.5", by(only("", "part", "loanword", "gram"), k1=1.5)
    yield "the same, b 0.5", by(only("", "part", "loanword", "gram"), b=0.5)
    yield "semantic (hashing)", mode("semantic")
    yield "hybrid (hashing), weight 0.3", mode("hybrid", vector_weight=0.3)
    yield "hybrid (hashing), rrf", mode("hybrid", fusion="rrf")
    yield "bm25 (the default)", mode("bm25")


def score(folder: Path, documents: dict[int, str], snapshot: Snapshot, answer: Answer) -> tuple[float, float]:
    """Return mean nDCG@10 and recall@10, each document judged once however many chunks it has."""
    judged: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, gain = line.split("\t")
        if float(gain) > 0:
            judged[query][document] = float(gain)
    gains, recalls = [], []
    for line in _lines(folder / "queries.jsonl"):
        relevant = judged.get(line["id"])
        if not relevant:
            continue
        found = dict.fromkeys(documents[snapshot.document_id(row)] for row in answer(line["text"]))
        top = list(found)[:K]
        ideal = sum(gain / math.log2(i + 2) for i, gain in enumerate(sorted(relevant.values(), reverse=True)[:K]))
        gains.append(sum(relevant.get(one, 0.0) / math.log2(i + 2) for i, one in enumerate(top)) / ideal)
        recalls.append(len(relevant.keys() & set(top)) / len(relevant))
    return sum(gains) / len(gains), sum(recalls) / len(recalls)


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    main([Path(one) for one in sys.argv[1:]])
