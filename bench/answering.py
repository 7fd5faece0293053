"""Libraries in, the CPU time of a whole search out: tokens, lanes, vectors, fusion, and the texts of the hits."""

from __future__ import annotations

from collections.abc import Callable

from bench import queries
from bench.clock import apart, race
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Result, Table, check, number
from bunko.records import Filter
from bunko.types import MODES

TOP = 10


def run(libraries: Libraries) -> Result:
    columns = {}
    for size in (SMALL, MEDIUM, LARGE):
        libraries.docs(size)
        columns[size] = apart(milliseconds, libraries, size)
    rows = [(name, *(number(columns[size][name]) for size in columns)) for name in columns[SMALL]]
    table = Table(("ms CPU a search of 10 hits", *(f"{size:,} chunks" for size in columns)), rows)
    slowest = max(columns[LARGE].values()) / 1e3
    return Result({"answering": table}, [check(f"a search in process, {LARGE:,} chunks, slowest way", slowest, 1, "s")])


def milliseconds(libraries: Libraries, size: int) -> dict[str, float]:
    """Return what a search takes in each of several ways."""
    asked = [one for kind in (queries.one_word() | queries.questions()).values() for one in kind]
    ways: dict[str, dict[str, object]] = {mode: {"mode": mode} for mode in MODES}
    ways["hybrid, explained"] = {"mode": "hybrid", "explain": True}
    ways["bm25, in a folder of 97"] = {"mode": "bm25", "where": Filter(path="01/**")}
    with libraries.open(size) as (library, _):

        def step(options: dict[str, object]) -> Callable[[], object]:
            return lambda: [library.search(one, top_k=TOP, refresh=False, **options) for one in asked]

        seconds = race({name: step(options) for name, options in ways.items()}, rounds=3)
    return {name: value / len(asked) * 1e3 for name, value in seconds.items()}
