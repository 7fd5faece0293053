"""Measure the CPU time of lexical queries, beside tantivy and bm25s over the same tokens."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bench import queries, term_peers
from bench.clock import race, run_apart
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Check, Result, Table, check, number
from bunko.search.arms import rank_lexical
from bunko.search.query_analysis import QueryAnalysis, analyse_query
from bunko.text import analyzer
from bunko.types.ranking import RankingOptions
from bunko.types.records import QueryTerm

WORDS = RankingOptions(bridge=False)  # as the peers, which know no translations
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
        bunko_times, peer_times = run_apart(measure_bunko, libraries, size), run_apart(measure_peers, libraries, size)
        measured = {kind: bunko_times[kind] | peer_times[kind] for kind in bunko_times}
        result.tables[f"lexical-{size}"] = build_table(measured)
        result.checks += build_checks(size, measured)
    return result


def measure_bunko(libraries: Libraries, size: int) -> Micros:
    """Return the microseconds of each way to rank, by kind of query."""
    with libraries.open(size) as (_, view):

        def rank_analysis(analysis: QueryAnalysis) -> object:
            return rank_lexical(view, analysis, TOP, k1=term_peers.K1, b=term_peers.B)

        def rank_terms(terms: Sequence[QueryTerm]) -> object:
            return view.rank(terms, TOP, k1=term_peers.K1, b=term_peers.B)

        return {
            kind: _micros(
                {
                    "all": (lambda query: rank_analysis(analyse_query(query, WORDS)), kind_queries),
                    "all given": (rank_analysis, [analyse_query(query, WORDS) for query in kind_queries]),
                    "words": (lambda query: rank_terms(word_terms(query)), kind_queries),
                    "words given": (rank_terms, [word_terms(query) for query in kind_queries]),
                }
            )
            for kind, kind_queries in (queries.one_word() | queries.questions()).items()
        }


def measure_peers(libraries: Libraries, size: int) -> Micros:
    """Return the same for the peers."""
    with libraries.open(size) as (_, view):
        engine, (tokens, search) = term_peers.Tantivy(view), term_peers.bm25s(view)
        measured = {}
        for kind, kind_queries in (queries.one_word() | queries.questions()).items():
            word_lists = [word_terms(query) for query in kind_queries]
            word_tokens, all_tokens = (
                [engine.terms(terms) for terms in term_lists]
                for term_lists in (word_lists, map(_query_terms, kind_queries))
            )
            measured[kind] = _micros(
                {
                    "tantivy all": (lambda terms: engine.search(terms, TOP), all_tokens),
                    "tantivy words": (lambda terms: engine.search(terms, TOP), word_tokens),
                    "tantivy bare": (
                        lambda query: engine.hits(query, TOP),
                        [engine.query(terms) for terms in word_tokens],
                    ),
                    "bm25s": (lambda terms: search(terms, TOP), [tokens(terms) for terms in word_lists]),
                }
            )
        return measured


def _query_terms(query: str) -> Sequence[QueryTerm]:
    return analyse_query(query, WORDS).terms


def word_terms(query: str) -> list[QueryTerm]:
    """Return the terms of the words of a query, without its n-grams."""
    keys = dict.fromkeys(
        analyzer.term_key(term.spelling) for run in analyzer.runs(query) for term in analyzer.terms(run)
    )
    return [QueryTerm(key, 1.0) for key in keys]


def ratios(line: dict[str, float]) -> tuple[float, float]:
    """Return our time as a multiple of tantivy's: with all terms, and with words alone."""
    return line["all given"] / line["tantivy all"], line["words given"] / line["tantivy words"]


def build_table(measured: Micros) -> Table:
    head = ("µs CPU a query", *LINES.values(), "all ÷ tantivy", "words ÷ tantivy")
    rows = []
    for kind, times in measured.items():
        rows.append((kind, *(number(times[name]) for name in LINES), *(f"{ratio:.1f}" for ratio in ratios(times))))
    medians = {name: statistics.median(times[name] for times in measured.values()) for name in LINES}
    median_ratios = [statistics.median(ratios(times)[index] for times in measured.values()) for index in (0, 1)]
    rows.append(("median", *(number(medians[name]) for name in LINES), *(f"{ratio:.1f}" for ratio in median_ratios)))
    return Table(head, rows)


def build_checks(size: int, measured: Micros) -> list[Check]:
    if size == SMALL:
        results = []
        for name, label, limit in (("all", "all lanes", 60), ("words", "word lane alone", 40)):
            times = [measured[kind][name] for kind in queries.one_word()]
            note = f" (worst kind {number(max(times))})"
            results.append(
                check(f"one-word query, {label}, {size} chunks", statistics.median(times), limit, "µs", note=note)
            )
        return results
    results = []
    for index, label in ((1, "word lane"), (0, "all lanes")):
        values = {kind: ratios(times)[index] for kind, times in measured.items()}
        note = f" (worst kind {max(values.values()):.1f}: {max(values, key=values.__getitem__)})"
        median = statistics.median(values.values())
        results.append(check(f"query, {label}, {size:,} chunks, against tantivy", median, 2, "×", note=note))
    return results


def _micros(ways: dict[str, tuple[Callable[..., object], Sequence[object]]]) -> dict[str, float]:
    """Return the microseconds that each way takes per input."""

    def over_all(step: Callable[..., object], inputs: Sequence[object]) -> Callable[[], None]:
        def run_inputs() -> None:
            for item in inputs:
                step(item)

        return run_inputs

    seconds = race({name: over_all(step, inputs) for name, (step, inputs) in ways.items()})
    return {name: value / len(ways[name][1]) * 1e6 for name, value in seconds.items()}
