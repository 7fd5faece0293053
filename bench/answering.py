"""Libraries in, the CPU time of a whole search out: tokens, lanes, vectors, fusion, and the texts of the hits."""

from __future__ import annotations

from bench import queries
from bench.clock import race
from bench.libraries import LARGE, MEDIUM, SMALL, Libraries
from bench.table import Result, Table, check, number
from bunko.protocols import Filter
from bunko.types import MODES

TOP = 10


def run(libraries: Libraries) -> Result:
    asked = [one for kind in (queries.one_word() | queries.questions()).values() for one in kind]
    ways = {mode: {"mode": mode} for mode in MODES}
    ways["hybrid, explained"] = {"mode": "hybrid", "explain": True}
    ways["bm25, in a folder of 97"] = {"mode": "bm25", "where": Filter(path="01/**")}
    columns = {}
    for size in (SMALL, MEDIUM, LARGE):
        with libraries.open(size) as (library, _):

            def step(options, library=library):
                return lambda: [library.search(one, top_k=TOP, refresh=False, **options) for one in asked]

            seconds = race({name: step(options) for name, options in ways.items()}, rounds=3)
            columns[size] = {name: value / len(asked) * 1e3 for name, value in seconds.items()}
    rows = [(name, *(number(columns[size][name]) for size in columns)) for name in ways]
    table = Table(("ms CPU a search of 10 hits", *(f"{size:,} chunks" for size in columns)), rows)
    slowest = max(columns[LARGE].values()) / 1e3
    return Result({"answering": table}, [check(f"a search in process, {LARGE:,} chunks, slowest way", slowest, 1, "s")])
