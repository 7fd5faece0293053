"""Measure time and memory of libraries of growing size, beside other engines, as a table and a plot."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import numpy as np

from bench import queries, term_peers
from bench.clock import cpu, race, run_apart
from bench.libraries import LARGE, MILLION, SIZES, VECTORS, Libraries, reindex
from bench.looking import find_nothing
from bench.starting import measure_visits
from bench.table import Result, Table, number
from bench.vector import chroma
from bunko.ingest.watched import WatchedFolders
from bunko.search.arms import rank_lexical
from bunko.search.query_analysis import analyse_query
from bunko.sources import build
from bunko.types.ranking import RankingOptions
from bunko.types.records import Filter

WORDS = RankingOptions(bridge=False)  # as the peers, which know no translations
TOP = 10
# The curves of each panel, with their styles.
PANELS = {
    "by words, µs CPU": {
        "one word": "o-C0", "one word, tantivy": "o--C7", "question": "s-C3", "question, tantivy": "s--C1",
        "question, bm25s": "s:C2",
    },
    "by vectors, µs CPU": {"vector": "o-C0", "bare product": "o--C7", "Chroma": "s--C1", "LanceDB": "s:C2"},
    "a whole search, ms CPU": {"hybrid": "o-C0", "bm25": "s-C3", "semantic": "^-C2", "hybrid, in one folder": "o--C7"},
    "look for changes, ms CPU": {"look, new process": "o-C0", "look, server": "s-C3"},
    "opening, ms CPU; memory, MB": {
        "opening": "o-C2", "first search": "o--C2", "RSS": "s-C4", "without files": "^--C4",
    },
    "import, s CPU": {"import": "o-C0", "1,000 files changed": "s-C3"},
}  # fmt: skip
UNITS = {name: title.rpartition(", ")[2] for title, names in PANELS.items() for name in names}
UNITS |= {"opening": "ms CPU", "first search": "ms CPU"}
# Larger libraries take the others minutes to import, or more memory than many machines have.
_MAX_SIZES = {"Chroma": 10_000, "LanceDB": MILLION, "bm25s": LARGE, "tantivy": MILLION}
_LOOK_ROUNDS = 3
CHANGED = 1_000


def run(libraries: Libraries, large: bool) -> Result:
    """Measure each size; `large` adds a million chunks, which takes the better part of an hour."""
    sizes = (*SIZES, MILLION) if large else SIZES
    result = Result(curves={name: {} for name in UNITS})
    for size in sizes:
        for name, value in _measure(libraries, size).items():
            result.curves[name][size] = value
    rows = [
        (f"{name}, {unit}", *(_cell(result.curves[name].get(size)) for size in sizes)) for name, unit in UNITS.items()
    ]
    result.tables["growth"] = Table(("chunks", *(f"{size:,}" for size in sizes)), rows)
    return result


def _cell(value: float | None) -> str:
    return "–" if value is None else number(value)


def _measure(libraries: Libraries, size: int) -> dict[str, float]:
    docs = libraries.docs(size)
    visit = measure_visits(docs, 3)
    return {
        **run_apart(_measure_queries, libraries, size),
        **run_apart(_measure_searches, libraries, size),
        **run_apart(_measure_looks, libraries, size),
        **run_apart(_measure_word_peers, libraries, size),
        **run_apart(_measure_vector_peers, libraries, size),
        "opening": visit["open"] * 1e3,
        "first search": visit["first"] * 1e3,
        "RSS": visit["rss"] / 1e6,
        "without files": visit["own"] / 1e6,
        "import": libraries.import_seconds(size),
        **_measure_changes(docs),
    }


def _measure_queries(libraries: Libraries, size: int) -> dict[str, float]:
    with libraries.open(size) as (library, view):

        def answer(query: str) -> object:
            return rank_lexical(view, analyse_query(query, WORDS), TOP, k1=term_peers.K1, b=term_peers.B)

        vectors = library.embedder().embed(_queries("question"), query=True)
        return {**_medians("", answer), "vector": _median(lambda vector: view.nearest(vector, TOP), vectors)}


def _measure_searches(libraries: Libraries, size: int) -> dict[str, float]:
    with libraries.open(size) as (library, _):

        def step(mode: str) -> Callable[[], object]:
            return lambda: [
                library.search(query, mode=mode, top_k=TOP, refresh=False) for query in _queries("question")
            ]

        def in_folder() -> object:
            return [
                library.search(query, top_k=TOP, where=Filter(path="01/**"), refresh=False)
                for query in _queries("question")
            ]

        steps = {mode: step(mode) for mode in ("hybrid", "bm25", "semantic")} | {"hybrid, in one folder": in_folder}
        seconds = race(steps, rounds=3)
    return {mode: value / len(_queries("question")) * 1e3 for mode, value in seconds.items()}


def _measure_looks(libraries: Libraries, size: int) -> dict[str, float]:
    docs, watched = libraries.docs(size), WatchedFolders()
    count = sum(1 for _ in docs.rglob("*.md"))
    with libraries.open(size) as (library, _):
        source = build("folder", docs, extensions=[".md"], exclude_dirs=[".rag-index"], max_file_bytes=10_000_000)
        try:
            seconds = race(
                {
                    "look, new process": lambda: find_nothing(library, source, count),
                    "look, server": lambda: find_nothing(library, source, count, watched),
                },
                _LOOK_ROUNDS,
            )
        finally:
            watched.close()
    return {name: value * 1e3 for name, value in seconds.items()}


def _measure_changes(docs: Path) -> dict[str, float]:
    """Import what was added to a thousand files, if there are more, last: the library differs from then on."""
    files = sorted(docs.rglob("*.md"))
    if len(files) <= CHANGED:
        return {}
    for path in files[:: len(files) // CHANGED][:CHANGED]:
        with path.open("a", encoding="utf-8") as file:
            file.write("\n追記 one line more\n")
    return {"1,000 files changed": reindex(docs, VECTORS).cpu}


def _measure_word_peers(libraries: Libraries, size: int) -> dict[str, float]:
    measured = dict[str, float]()
    with libraries.open(size) as (_, view):
        if size <= _MAX_SIZES["bm25s"]:
            tokens, search = term_peers.bm25s(view)
            bm25s_queries = {query: tokens(analyse_query(query, WORDS).terms) for query in _queries("question")}
            measured["question, bm25s"] = _median(lambda query: search(bm25s_queries[query], TOP), list(bm25s_queries))
        if size <= _MAX_SIZES["tantivy"]:
            engine = term_peers.Tantivy(view)
            terms = {
                query: engine.terms(analyse_query(query, WORDS).terms)
                for query in _queries("one word") + _queries("question")
            }
            measured |= _medians(", tantivy", lambda query: engine.search(terms[query], TOP))
    return measured


def _measure_vector_peers(libraries: Libraries, size: int) -> dict[str, float]:
    with libraries.open(size) as (library, view):
        vectors = library.embedder().embed(_queries("question"), query=True)
        matrix = np.concatenate([part.segment.vectors for part in view.views])
    measured = {"bare product": _median(lambda vector: matrix @ vector, vectors)}
    if size <= _MAX_SIZES["Chroma"]:
        measured["Chroma"] = _median(chroma(matrix), vectors)
    if find_spec("lancedb"):
        with tempfile.TemporaryDirectory() as folder:
            measured["LanceDB"] = _median(_lancedb(matrix, folder), vectors)
    return measured


def _lancedb(matrix: Any, folder: str) -> Callable[[Any], object]:
    """Return a search of all rows of a table of LanceDB, which has no index for vectors unless it is told to."""
    import lancedb
    import pyarrow

    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(matrix.ravel()), matrix.shape[1])
    table = lancedb.connect(folder).create_table("rows", pyarrow.table({"vector": rows}))
    return lambda vector: table.search(vector).distance_type("cosine").limit(TOP).to_arrow()


def _queries(name: str) -> list[str]:
    kinds = queries.one_word() if name == "one word" else queries.questions()
    return [query for kind in kinds.values() for query in kind]


def _medians(label: str, answer: Callable[[str], object]) -> dict[str, float]:
    return {f"{name}{label}": _median(answer, _queries(name)) for name in ("one word", "question")}


def _median(answer: Callable[[Any], object], asked: Any) -> float:
    """Return the median CPU microseconds over queries or vectors."""
    return statistics.median(cpu(lambda query=query: answer(query), rounds=3) for query in asked) * 1e6


def plot(curves: dict[str, dict[int, float]], path: Path) -> None:
    """Plot the curves of a run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 3, figsize=(13, 8), dpi=110)
    sizes = sorted({size for points in curves.values() for size in points})
    for axes, (title, lines) in zip(grid.flat, PANELS.items(), strict=True):
        for name, style in lines.items():
            if points := curves[name]:
                axes.plot(list(points), list(points.values()), style, label=name, markersize=5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        values = [value for name in lines for value in curves[name].values()]
        axes.set_ylim(10 ** floor(log10(min(values))), 10 ** ceil(log10(max(values))))
        axes.set_title(title, fontsize=11)
        axes.set_xlabel("chunks")
        axes.set_xticks(sizes, [_short(size) for size in sizes], fontsize=8)
        axes.minorticks_off()
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _short(size: int) -> str:
    return f"{size // 1_000_000} M" if size >= 1_000_000 else f"{size // 1_000} k" if size >= 10_000 else f"{size:,}"
