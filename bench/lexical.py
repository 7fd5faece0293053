"""Libraries in, the CPU time of a lexical query out, next to tantivy and bm25s over the same tokens."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bench import peers, queries
from bench.clock import apart, race
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Check, Result, Table, check, number
from bunko.indexes.embedded import bm25
from bunko.indexes.embedded.bm25 import QueryTerm
from bunko.search.query_analysis import QueryAnalysis, analyse_query
from bunko.search.rank import rank_lexical
from bunko.text import analyzer

TOP = 10
Micros = dict[str, dict[str, float]]
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
        libraries.docs(size)
        mine, theirs = apart(ours, libraries, size), apart(others, libraries, size)
        measured = {kind: mine[kind] | theirs[kind] for kind in mine}
        result.tables[f"lexical-{size}"] = table(measured)
        result.checks += checks(size, measured)
    return result


def ours(libraries: Libraries, size: int) -> Micros:
    """Return for each kind of query the microseconds of each of our ways to answer it."""
    with libraries.open(size) as (_, snapshot):
        masks = snapshot.masks(None)

        def given(analysis: QueryAnalysis) -> object:
            return rank_lexical(snapshot, analysis, TOP, k1=peers.K1, b=peers.B, masks=masks)

        def ranked(wanted: Sequence[QueryTerm]) -> object:
            return bm25.rank_terms(snapshot, wanted, TOP, k1=peers.K1, b=peers.B, masks=masks)

        return {
            kind: _micros(
                {
                    "all": (lambda query: given(analyse_query(query)), asked),
                    "all given": (given, [analyse_query(query) for query in asked]),
                    "words": (lambda query: ranked(only_words(query)), asked),
                    "words given": (ranked, [only_words(query) for query in asked]),
                }
            )
            for kind, asked in (queries.one_word() | queries.questions()).items()
        }


def others(libraries: Libraries, size: int) -> Micros:
    """Return the same for the peers."""
    with libraries.open(size) as (_, snapshot):
        engine, (tokens, search) = peers.Tantivy(snapshot), peers.bm25s(snapshot)
        measured = {}
        for kind, asked in (queries.one_word() | queries.questions()).items():
            wanted = [only_words(query) for query in asked]
            words_of, all_of = ([engine.terms(some) for some in which] for which in (wanted, map(_wanted, asked)))
            measured[kind] = _micros(
                {
                    "tantivy all": (lambda some: engine.search(some, TOP), all_of),
                    "tantivy words": (lambda some: engine.search(some, TOP), words_of),
                    "tantivy bare": (lambda query: engine.hits(query, TOP), [engine.query(some) for some in words_of]),
                    "bm25s": (lambda some: search(some, TOP), [tokens(some) for some in wanted]),
                }
            )
        return measured


def _wanted(query: str) -> Sequence[QueryTerm]:
    return analyse_query(query).terms


def only_words(query: str) -> list[QueryTerm]:
    """Return the keys of a query's words, without its grams."""
    found = dict.fromkeys(
        analyzer.term_key(term.spelling) for run in analyzer.runs(query) for term in analyzer.terms(run)
    )
    return [QueryTerm(key, 1.0) for key in found]


def ratios(line: dict[str, float]) -> tuple[float, float]:
    """Return how many times tantivy's time we take: with all lanes, and with words alone."""
    return line["all given"] / line["tantivy all"], line["words given"] / line["tantivy words"]


def table(measured: Micros) -> Table:
    head = ("µs CPU a query", *LINES.values(), "all ÷ tantivy", "words ÷ tantivy")
    rows = []
    for kind, line in measured.items():
        rows.append((kind, *(number(line[name]) for name in LINES), *(f"{ratio:.1f}" for ratio in ratios(line))))
    medians = {name: statistics.median(line[name] for line in measured.values()) for name in LINES}
    middle = [statistics.median(ratios(line)[at] for line in measured.values()) for at in (0, 1)]
    rows.append(("median", *(number(medians[name]) for name in LINES), *(f"{ratio:.1f}" for ratio in middle)))
    return Table(head, rows)


def checks(size: int, measured: Micros) -> list[Check]:
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


def _micros(ways: dict[str, tuple[Callable[..., object], Sequence[object]]]) -> dict[str, float]:
    """Return the microseconds each way takes for one of its inputs."""

    def each(step: Callable[..., object], inputs: Sequence[object]) -> Callable[[], None]:
        def all_of_them() -> None:
            for one in inputs:
                step(one)

        return all_of_them

    seconds = race({name: each(step, inputs) for name, (step, inputs) in ways.items()})
    return {name: value / len(ways[name][1]) * 1e6 for name, value in seconds.items()}
