"""Measure reading, importing and searching memo files, from the usual size to far more."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from math import ceil, floor, log10
from pathlib import Path

from bench import corpus, queries
from bench.clock import cpu, run_apart, run_child
from bench.libraries import LARGE, MEDIUM, SMALL, VECTORS, Libraries
from bench.table import Result, Table, check, number
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.search.query_analysis import analyse_query
from bunko.search.rank import rank_rows
from bunko.search.request import RankRequest
from bunko.sources import build
from bunko.types.ranking import RankingOptions

SIZES = (SMALL, MEDIUM, LARGE)
LARGE_MEMOS = 500_000
LARGE_TARGETS = {"hybrid": 6.0, "bm25": 3.0, "semantic": 3.0}  # ms
WORDS = RankingOptions(bridge=False)  # as the peers, which know no translations
TOP = 10
ROWS = {
    "reading": "reading the file, ms CPU",
    "import": "`bunko build` with vectors, s CPU",
    "wall": "the same, s on the clock",
    "memory": "the same, peak of the anonymous memory of all processes, MB",
    "again": "`bunko build` when one entry was added, s CPU",
    "words": "bm25, one word, word lane alone, µs CPU",
    "bm25": "bm25, one word, all lanes and the bridge, µs CPU",
    "hybrid": "hybrid, one word, without embedding it, µs CPU",
    "embedding": "embedding the word, µs CPU",
    "library, bm25": "bm25 through the library, texts of 10 hits, µs CPU",
    "library, hybrid": "hybrid through the library, texts of 10 hits, µs CPU",
}


def run(libraries: Libraries, large: bool) -> Result:
    """Measure changelogs of three sizes, and with `large` the import of a file of 500,000 memos."""
    result = Result(curves={name: {} for name in ROWS})
    with tempfile.TemporaryDirectory() as work_dir:
        for size in SIZES:
            file = Path(work_dir) / f"{size}" / "ChangeLog"
            file.parent.mkdir()
            file.write_text("".join(corpus.changelog(corpus.memos(size))), encoding="utf-8")
            for name, value in _measure(file).items():
                result.curves[name][size] = value
    rows = [(text, *(number(result.curves[name][size]) for size in SIZES)) for name, text in ROWS.items()]
    result.tables["memos"] = Table(("memos", *(f"{size:,}" for size in SIZES)), rows)
    small = {name: values[SMALL] for name, values in result.curves.items()}
    result.checks += [
        check(f"reading {SMALL} memos", small["reading"], 100, "ms CPU"),
        check(f"importing {SMALL} memos with vectors", small["wall"], 2, "s"),
        check(f"one word by bm25, word lane alone, {SMALL} memos", small["words"], 40, "µs"),
        check(f"one word by bm25, all lanes and the bridge, {SMALL} memos", small["bm25"], 40, "µs"),
        check(f"one word by hybrid, {SMALL} memos, beside its embedding", small["hybrid"], 150, "µs"),
    ]
    if large:
        _measure_large(result)
    return result


def _measure_large(result: Result) -> None:
    with tempfile.TemporaryDirectory() as work_dir:
        file, library = Path(work_dir) / "memos.jsonl", Path(work_dir) / "library"
        corpus.write_jsonl(file, LARGE_MEMOS)
        cost = run_child(["-m", "bunko", "build", "-i", str(file), "-o", str(library)], **VECTORS)
        search_times = run_apart(measure_modes, library)
    megabytes = cost.anonymous / 1e6
    result.tables["large-import"] = Table(
        ("import with vectors", "CPU s", "wall s", "CPU ÷ wall", "anonymous MB"),
        [(f"{LARGE_MEMOS:,} memos", *map(number, (cost.cpu, cost.wall, cost.cpu / cost.wall, megabytes)))],
    )
    result.checks += [
        check(f"import of {LARGE_MEMOS:,} memos", cost.wall, 150, "s"),
        check(f"import of {LARGE_MEMOS:,} memos, anonymous memory of all processes", megabytes, 600, "MB"),
        *(
            check(f"a search in process, {LARGE_MEMOS:,} memos, {mode}", search_times[mode] / 1e3, limit, "ms CPU")
            for mode, limit in LARGE_TARGETS.items()
        ),
    ]


def _measure(file: Path) -> dict[str, float]:
    library = file.parent / "library"
    first = run_child(["-m", "bunko", "build", "-i", str(file), "-o", str(library)], **VECTORS)
    search_times = run_apart(measure_search, library, file)
    text = file.read_text(encoding="utf-8")
    file.write_text(f"* 追記 2024-12-30\n  今日の一言。\n\n{text}", encoding="utf-8")
    second = run_child(["-m", "bunko", "build", "-i", str(file), "-o", str(library)], **VECTORS)
    import_costs = {"import": first.cpu, "wall": first.wall, "memory": first.anonymous / 1e6, "again": second.cpu}
    return import_costs | search_times


def measure_search(folder: Path, file: Path) -> dict[str, float]:
    """Return the times of reading a file and searching its library."""
    source = build("memos", file, extensions=(), exclude_dirs=(), max_file_bytes=20_000_000)
    times = {"reading": cpu(lambda: source.scan({}), rounds=3) * 1e3}
    words = [word for kind in queries.one_word().values() for word in kind]
    with open_library(locate_library(library=folder, environ=VECTORS), environ=VECTORS) as library:
        embedder = library.embedder()
        times["embedding"] = _median(words, lambda word: embedder.embed([word], query=True))
        times["words"] = _median(words, _word_lane(library))
        for mode in ("bm25", "hybrid"):
            times[mode] = _median(words, _ranking(library, mode))
            times[f"library, {mode}"] = _median(words, _library_search(library, mode))
    # The time to embed the query has its own row.
    times["hybrid"] -= times["embedding"]
    return times


def measure_modes(folder: Path) -> dict[str, float]:
    """Return the median of searches of all kinds by each mode, with the texts of the hits."""
    with open_library(locate_library(library=folder, environ=VECTORS), environ=VECTORS) as library:
        return {mode: _median(queries.all_queries(), _library_search(library, mode)) for mode in LARGE_TARGETS}


def _ranking(library: Library, mode: str) -> Callable[[str], object]:
    tools = library.tools()
    with library.store.read_transaction():
        view = library.index_view([tool.id for tool in tools])
    embedder = library.embedder()
    requests: dict[str, RankRequest] = {}

    def answer(word: str) -> object:
        if word not in requests:
            requests[word] = library.build_request(word, tools=tools, mode=mode, top_k=TOP)
        return rank_rows(view, embedder if mode == "hybrid" else None, requests[word])

    return answer


def _word_lane(library: Library) -> Callable[[str], object]:
    tools, memo_settings = library.tools(), library.settings.memos
    with library.store.read_transaction():
        view = library.index_view([tool.id for tool in tools])

    def answer(word: str) -> object:
        terms = [term for term in analyse_query(word, WORDS).terms if not term.is_gram]
        return view.rank(terms, TOP, k1=memo_settings.k1, b=memo_settings.b)

    return answer


def _library_search(library: Library, mode: str) -> Callable[[str], object]:
    return lambda word: library.search(word, tool="memos", mode=mode, top_k=TOP, refresh=False)


def _median(words: list[str], answer: Callable[[str], object]) -> float:
    return statistics.median(cpu(lambda word=word: answer(word), rounds=3) for word in words) * 1e6


def plot(curves: dict[str, dict[int, float]], path: Path) -> None:
    """Plot the times that grow with the number of memos."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.2), dpi=110)
    styles = {
        left: {
            "words": "v-C2", "bm25": "o-C0", "hybrid": "s-C3", "embedding": "^:C7",
            "library, bm25": "o--C0", "library, hybrid": "s--C3",
        },
        right: {"reading": "o-C2", "import": "s-C4", "again": "^-C1"},
    }  # fmt: skip
    names = {"reading": "reading, ms", "import": "first import, s", "again": "one entry more, s"}
    for axes, lines in styles.items():
        values = [value for name in lines for value in curves[name].values()]
        for name, style in lines.items():
            points = curves[name]
            axes.plot(list(points), list(points.values()), style, label=names.get(name, name), markersize=5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(10 ** floor(log10(min(values))), 10 ** ceil(log10(max(values))))
        axes.set_title("one word, µs CPU" if axes is left else "reading and importing, CPU", fontsize=11)
        axes.set_xlabel("memos")
        axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES], fontsize=8)
        axes.minorticks_off()
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
