"""Libraries in, what a first answer costs out: the cold command line, opening a library, memory after searching."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from bench.clock import child
from bench.libraries import LARGE, MEDIUM, SIZES, SMALL, VECTORS, Libraries
from bench.table import Result, Table, check, number

ROUNDS = 7


def run(libraries: Libraries) -> Result:
    cold, opening = (
        Table(("cold start", "CPU s")),
        Table(("chunks", "open ms CPU", "first answer ms CPU", "RSS MB", "without files MB")),
    )
    result = Result({"cold": cold, "opening": opening})
    bare = _command("-c", "pass")
    helped = _command("-m", "bunko", "--help")
    searched = _search(libraries.docs(SMALL))
    cold.rows += [
        ("`python -c pass`", number(bare)),
        ("`python -c 'import numpy'`", number(_command("-c", "import numpy"))),
    ]
    cold.rows += [("`bunko --help`", number(helped)), (f"`bunko search`, {SMALL} chunks", number(searched))]
    for size in (MEDIUM, LARGE):
        cold.rows.append((f"`bunko search`, {size:,} chunks", number(_search(libraries.docs(size)))))
        cold.rows.append(
            (f"`bunko search --no-refresh`, {size:,} chunks", number(_search(libraries.docs(size), "--no-refresh")))
        )
    result.checks += [
        check("`bunko --help`, cold", helped, 0.15, "CPU-s"),
        check(f"`bunko search`, cold, {SMALL} chunks", searched, 0.35, "CPU-s"),
    ]
    for size in SIZES:
        seen = visits(libraries.docs(size), 3)
        cells = (seen["open"] * 1e3, seen["first"] * 1e3, seen["rss"] / 1e6, seen["own"] / 1e6)
        opening.rows.append((f"{size:,}", *map(number, cells)))
        if size == MEDIUM:
            result.checks.append(
                check(f"RSS at {size:,} chunks after searching in all modes", seen["rss"] / 1e6, 150, "MB")
            )
        if size == LARGE:
            result.checks.append(check(f"opening a library of {size:,} chunks", seen["open"] * 1e3, 100, "ms CPU"))
        result.curves.setdefault("opening", {})[size] = seen["open"]
        result.curves.setdefault("memory", {})[size] = seen["rss"]
    return result


def visits(docs: Path, rounds: int) -> dict[str, float]:
    """Return the median of what some processes of their own saw."""
    seen = [json.loads(child(["-m", "bench.visit", str(docs)], **VECTORS).output) for _ in range(rounds)]
    return {name: statistics.median(one[name] for one in seen) for name in seen[0]}


def _search(docs: Path, *more: str) -> float:
    return _command("-m", "bunko", "search", "環境構築の方法", "--docs-dir", str(docs), *more)


def _command(*arguments: str) -> float:
    child(arguments, **VECTORS)  # writes the bytecode, brings the files into memory
    return statistics.median(child(arguments, **VECTORS).cpu for _ in range(ROUNDS))
