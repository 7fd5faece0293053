"""Libraries in, the CPU time of a lexical query out, next to tantivy and bm25s over the same tokens."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bench import peers, queries
from bench.clock import race
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Check, Result, Table, check, number
from bunko.index import bm25
from bunko.index.bm25 import Wanted
from bunko.index.snapshot import Snapshot
from bunko.search import analyse, lexical
from bunko.text import words

TOP = 10
LINES = {
    "all": "all lanes",
    "all given": "all, tokens given",
    "words": "words",
    "words given": "words, tokens given",
    "tantivy all": "tantivy, all",
    "tantivy words": "tantivy, words",
    "tantivy bare": "tantivy, words, bare",
    "bm25s": "bm25s, words",
}


def run(libraries: Libraries) -> Result:
    result = Result()
    for size in (SMALL, MEDIUM, LARGE):
        with libraries.open(size) as (_, snapshot):
            measured = measure(snapshot)
        result.tables[f"lexical-{size}"] = table(measured)
        result.checks += checks(size, measured)
    return result


def measure(snapshot: Snapshot) -> dict[str, dict[str, float]]:
    """Return for each kind of query the microseconds of each way to answer it."""
    engine, (tokens, search) = peers.Tantivy(snapshot), peers.bm25s(snapshot)
    masks = snapshot.masks(None)

    def ours(query: str) -> object:
        return lexical(snapshot, analyse(query), TOP, k1=peers.K1, b=peers.B, masks=masks)

    def given(analysis: object) -> object:
        return lexical(snapshot, analysis, TOP, k1=peers.K1, b=peers.B, masks=masks)

    def ranked(wanted: Sequence[Wanted]) -> object:
        return bm25.rank(snapshot, wanted, TOP, k1=peers.K1, b=peers.B, masks=masks)

    measured = {}
    for kind, asked in (queries.one_word() | queries.questions()).items():
        analyses = [analyse(query) for query in asked]
        wanted = [only_words(query) for query in asked]
        terms = [engine.terms(some) for some in wanted]
        steps: dict[str, Callable[[], object]] = {
            "all": _each(ours, asked),
            "all given": _each(given, analyses),
            "words": _each(lambda query: ranked(only_words(query)), asked),
            "words given": _each(ranked, wanted),
            "tantivy all": _each(lambda some: engine.search(some, TOP), [engine.terms(a.wanted) for a in analyses]),
            "tantivy words": _each(lambda some: engine.search(some, TOP), terms),
            "tantivy bare": _each(lambda query: engine.hits(query, TOP), [engine.query(some) for some in terms]),
            "bm25s": _each(lambda some: search(some, TOP), [tokens(some) for some in wanted]),
        }
        measured[kind] = {name: seconds / len(asked) * 1e6 for name, seconds in race(steps).items()}
    return measured


def only_words(query: str) -> list[Wanted]:
    """Return the keys of a query's words, without its grams."""
    found = dict.fromkeys(words.key(term.spelling) for run in words.runs(query) for term in words.terms(run))
    return [Wanted(key, 1.0) for key in found]


def ratios(line: dict[str, float]) -> tuple[float, float]:
    """Return how many times tantivy's time we take: with all lanes, and with words alone."""
    return line["all given"] / line["tantivy all"], line["words given"] / line["tantivy words"]


def table(measured: dict[str, dict[str, float]]) -> Table:
    head = ("µs CPU a query", *LINES.values(), "all ÷ tantivy", "words ÷ tantivy")
    rows = []
    for kind, line in measured.items():
        rows.append((kind, *(number(line[name]) for name in LINES), *(f"{ratio:.1f}" for ratio in ratios(line))))
    medians = {name: statistics.median(line[name] for line in measured.values()) for name in LINES}
    middle = [statistics.median(ratios(line)[at] for line in measured.values()) for at in (0, 1)]
    rows.append(("median", *(number(medians[name]) for name in LINES), *(f"{ratio:.1f}" for ratio in middle)))
    return Table(head, rows)


def checks(size: int, measured: dict[str, dict[str, float]]) -> list[Check]:
    if size == SMALL:
        found = []
        for name, what, limit in (("all", "all lanes", 60), ("words", "word lane alone", 40)):
            times = [measured[kind][name] for kind in queries.one_word()]
            note = f" (worst kind {number(max(times))})"
            found.append(
                check(f"one-word query, {what}, {size} chunks", statistics.median(times), limit, "µs", note=note)
            )
        return found
    found = []
    for at, what in ((1, "word lane"), (0, "all lanes")):
        values = {kind: ratios(line)[at] for kind, line in measured.items()}
        note = f" (worst kind {max(values.values()):.1f}: {max(values, key=values.__getitem__)})"
        middle = statistics.median(values.values())
        found.append(check(f"query, {what}, {size:,} chunks, against tantivy", middle, 2, "×", note=note))
    return found


def _each(step: Callable[..., object], inputs: Sequence[object]) -> Callable[[], None]:
    def all_of_them() -> None:
        for one in inputs:
            step(one)

    return all_of_them
