"""Measure the CPU time of whole searches: analysis, ranking, vectors, fusion, and the texts of the hits."""

from __future__ import annotations

from collections.abc import Callable

from bench import queries
from bench.clock import race, run_apart
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Result, Table, check, number
from bunko.types import MODES
from bunko.types.records import Filter

TOP = 10
USUAL = 22_000  # chunks of some thousand pages of documentation
TARGETS = {"hybrid": 1.2, "bm25": 0.6, "semantic": 0.8}  # ms at that size


def run(libraries: Libraries) -> Result:
    columns, wordings = {}, {}
    for size in (SMALL, MEDIUM, USUAL, LARGE):
        libraries.docs(size)
        columns[size] = run_apart(search_milliseconds, libraries, size)
        wordings[size] = run_apart(wording_milliseconds, libraries, size)
    rows = [(name, *(number(columns[size][name]) for size in columns)) for name in columns[SMALL]]
    table = Table(("ms CPU a search of 10 hits", *(f"{size:,} chunks" for size in columns)), rows)
    wording_table = Table(
        ("ms CPU a search of 10 hits, hybrid", *(f"{size:,} chunks" for size in wordings)),
        [(name, *(number(wordings[size][name]) for size in wordings)) for name in wordings[SMALL]],
    )
    slowest = max(columns[LARGE].values()) / 1e3
    checks = [check(f"a search in process, {LARGE:,} chunks, slowest way", slowest, 1, "s")]
    for mode, limit in TARGETS.items():
        checks.append(check(f"a search in process, {USUAL:,} chunks, {mode}", columns[USUAL][mode], limit, "ms CPU"))
    return Result({"answering": table, "wordings": wording_table}, checks)


def search_milliseconds(libraries: Libraries, size: int) -> dict[str, float]:
    """Return the CPU time of a search with each set of options."""
    all_queries = queries.all_queries()
    options_by_name: dict[str, dict[str, object]] = {mode: {"mode": mode} for mode in MODES}
    options_by_name["hybrid, explained"] = {"mode": "hybrid", "explain": True}
    options_by_name["bm25, in a folder of 97"] = {"mode": "bm25", "where": Filter(path="01/**")}
    with libraries.open(size) as (library, _):

        def step(options: dict[str, object]) -> Callable[[], object]:
            return lambda: [library.search(query, top_k=TOP, refresh=False, **options) for query in all_queries]

        seconds = race({name: step(options) for name, options in options_by_name.items()}, rounds=3)
    return {name: value / len(all_queries) * 1e3 for name, value in seconds.items()}


def wording_milliseconds(libraries: Libraries, size: int) -> dict[str, float]:
    """Return the CPU time of questions alone, and with three other wordings and a passage, and the ratio of both."""
    questions = queries.worded_questions()
    with libraries.open(size) as (library, _):

        def search_alone() -> None:
            for question in questions:
                library.search(question, mode="hybrid", top_k=TOP, refresh=False)

        def search_with_wordings() -> None:
            for question, (also, passage) in questions.items():
                library.search(question, also=also, passage=passage, mode="hybrid", top_k=TOP, refresh=False)

        seconds = race({"alone": search_alone, "worded": search_with_wordings}, rounds=5)
    alone, worded = (seconds[name] / len(questions) * 1e3 for name in ("alone", "worded"))
    return {"the question alone": alone, "with 3 wordings and a passage": worded, "times the question": worded / alone}
