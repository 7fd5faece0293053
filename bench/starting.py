"""Measure the first answer: the cold command line, opening a library, memory after searching."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from bench.clock import environment, run_child
from bench.libraries import LARGE, MEDIUM, SIZES, SMALL, VECTORS, Libraries
from bench.table import Result, Table, check, number

ROUNDS = 7
_IMPORT = re.compile(r"import time: +(\d+) \| +\d+ \| +(\S+)")


def run(libraries: Libraries) -> Result:
    cold, opening = (
        Table(("cold start", "CPU s")),
        Table(("chunks", "open ms CPU", "first answer ms CPU", "RSS MB", "without files MB")),
    )
    result = Result({"cold": cold, "cold-imports": _import_table(libraries.docs(SMALL)), "opening": opening})
    python_seconds = _command_seconds("-c", "pass")
    help_seconds = _command_seconds("-m", "bunko", "--help")
    search_seconds = _search_seconds(libraries.docs(SMALL))
    cold.rows += [
        ("`python -c pass`", number(python_seconds)),
        ("`python -c 'import numpy'`", number(_command_seconds("-c", "import numpy"))),
    ]
    cold.rows += [("`bunko --help`", number(help_seconds)), (f"`bunko search`, {SMALL} chunks", number(search_seconds))]
    for size in (MEDIUM, LARGE):
        cold.rows.append((f"`bunko search`, {size:,} chunks", number(_search_seconds(libraries.docs(size)))))
        cold.rows.append(
            (
                f"`bunko search --no-refresh`, {size:,} chunks",
                number(_search_seconds(libraries.docs(size), "--no-refresh")),
            )
        )
    result.checks += [
        check("`bunko --help`, cold", help_seconds, 0.15, "CPU-s"),
        check(f"`bunko search`, cold, {SMALL} chunks", search_seconds, 0.25, "CPU-s"),
    ]
    for size in SIZES:
        visit = measure_visits(libraries.docs(size), 3)
        cells = (visit["open"] * 1e3, visit["first"] * 1e3, visit["rss"] / 1e6, visit["own"] / 1e6)
        opening.rows.append((f"{size:,}", *map(number, cells)))
        if size == MEDIUM:
            result.checks.append(
                check(f"RSS at {size:,} chunks after searching in all modes", visit["rss"] / 1e6, 150, "MB")
            )
        if size == LARGE:
            result.checks.append(check(f"opening a library of {size:,} chunks", visit["open"] * 1e3, 100, "ms CPU"))
        result.curves.setdefault("opening", {})[size] = visit["open"]
        result.curves.setdefault("memory", {})[size] = visit["rss"]
    return result


def _import_table(docs: Path) -> Table:
    """Return how many modules of each package a cold search imports, and how long that takes."""
    least: dict[str, float] = {}
    for _ in range(ROUNDS):
        arguments = ("-X", "importtime", "-m", "bunko", *_search_arguments(docs))
        process = subprocess.run(
            [sys.executable, *arguments], env=environment(**VECTORS), capture_output=True, text=True, check=True
        )
        for microseconds, module in _IMPORT.findall(process.stderr):
            least[module] = min(least.get(module, float("inf")), int(microseconds) / 1e3)
    modules, milliseconds = Counter[str](), defaultdict[str, float](float)
    for module, value in least.items():
        package = module.partition(".")[0]
        package = package if package in ("bunko", "numpy", "click") else "Python's own and others"
        modules[package] += 1
        milliseconds[package] += value
    rows = [
        (name, f"{modules[name]}", number(value))
        for name, value in sorted(milliseconds.items(), key=lambda item: -item[1])
    ]
    return Table(("imported by a cold search", "modules", "ms, `-X importtime`"), rows)


def measure_visits(docs: Path, rounds: int) -> dict[str, float]:
    """Return the medians of the measurements of several processes."""
    reports = [json.loads(run_child(["-m", "bench.visit", str(docs)], **VECTORS).output) for _ in range(rounds)]
    return {name: statistics.median(report[name] for report in reports) for name in reports[0]}


def _search_arguments(docs: Path) -> tuple[str, ...]:
    return ("search", "環境構築の方法", "--docs-dir", str(docs))


def _search_seconds(docs: Path, *more: str) -> float:
    return _command_seconds("-m", "bunko", *_search_arguments(docs), *more)


def _command_seconds(*arguments: str) -> float:
    run_child(arguments, **VECTORS)  # writes the bytecode and loads the files into memory
    return statistics.median(run_child(arguments, **VECTORS).cpu for _ in range(ROUNDS))
