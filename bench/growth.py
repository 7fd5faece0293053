"""Measure time and memory of libraries of growing size, as a table and a plot."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from math import ceil, floor, log10
from pathlib import Path

from bench import peers, queries
from bench.clock import cpu, run_apart
from bench.libraries import SIZES, Libraries
from bench.starting import measure_visits
from bench.table import Result, Table, number
from bunko.search.arms import rank_lexical
from bunko.search.query_analysis import analyse_query

TOP = 10
CURVES = {
    "one word, all lanes": "µs",
    "one word, tantivy": "µs",
    "question, all lanes": "µs",
    "question, tantivy": "µs",
    "vector": "µs",
    "bare product": "µs",
    "opening": "ms",
    "RSS": "MB",
}


def run(libraries: Libraries) -> Result:
    result = Result(curves={name: {} for name in CURVES})
    for size in SIZES:
        for name, value in _measure(libraries, size).items():
            result.curves[name][size] = value
    rows = [
        (f"{name}, {unit}", *(number(result.curves[name][size]) for size in SIZES)) for name, unit in CURVES.items()
    ]
    result.tables["growth"] = Table(("chunks", *(f"{size:,}" for size in SIZES)), rows)
    return result


def _measure(libraries: Libraries, size: int) -> dict[str, float]:
    docs = libraries.docs(size)
    visit = measure_visits(docs, 3)
    return {
        **run_apart(_measure_bunko, libraries, size),
        **run_apart(_measure_peers, libraries, size),
        "opening": visit["open"] * 1e3,
        "RSS": visit["rss"] / 1e6,
    }


def _measure_bunko(libraries: Libraries, size: int) -> dict[str, float]:
    with libraries.open(size) as (library, view):

        def answer(query: str) -> object:
            return rank_lexical(view, analyse_query(query), TOP, k1=peers.K1, b=peers.B)

        vector = library.embedder().embed(["環境構築の方法"], query=True)[0]
        nearest_seconds = cpu(lambda: view.nearest(vector, TOP))
        return {**_medians("all lanes", answer), "vector": nearest_seconds * 1e6}


def _measure_peers(libraries: Libraries, size: int) -> dict[str, float]:
    with libraries.open(size) as (library, view):
        matrix = view.views[0].segment.vectors.copy()
        vector = library.embedder().embed(["環境構築の方法"], query=True)[0]
        product_seconds = cpu(lambda: matrix @ vector)
        engine = peers.Tantivy(view)
        terms = {
            query: engine.terms(analyse_query(query).terms) for query in _queries("one word") + _queries("question")
        }
        return {
            **_medians("tantivy", lambda query: engine.search(terms[query], TOP)),
            "bare product": product_seconds * 1e6,
        }


def _queries(name: str) -> list[str]:
    kinds = queries.one_word() if name == "one word" else queries.questions()
    return [query for kind in kinds.values() for query in kind]


def _medians(label: str, answer: Callable[[str], object]) -> dict[str, float]:
    medians = {}
    for name in ("one word", "question"):
        times = [cpu(lambda query=query: answer(query), rounds=3) for query in _queries(name)]
        medians[f"{name}, {label}"] = statistics.median(times) * 1e6
    return medians


def plot(curves: dict[str, dict[int, float]], path: Path) -> None:
    """Plot the curves of a run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(13, 4.2), dpi=110)
    styles = {
        left: {
            "one word, all lanes": "o-C0", "one word, tantivy": "o--C7",
            "question, all lanes": "s-C3", "question, tantivy": "s--C1",
        },
        middle: {"vector": "o-C0", "bare product": "o--C7"},
        right: {"opening": "o-C2", "RSS": "s-C4"},
    }  # fmt: skip
    titles = {left: "lexical query, µs CPU", middle: "vector query, µs CPU", right: "opening, ms CPU; memory, MB"}
    for axes, lines in styles.items():
        for name, style in lines.items():
            points = curves[name]
            axes.plot(list(points), list(points.values()), style, label=name, markersize=5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        values = [value for name in lines for value in curves[name].values()]
        axes.set_ylim(10 ** floor(log10(min(values))), 10 ** ceil(log10(max(values))))
        axes.set_title(titles[axes], fontsize=11)
        axes.set_xlabel("chunks")
        axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES], fontsize=8)
        axes.minorticks_off()
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
