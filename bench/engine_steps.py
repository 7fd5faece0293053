"""The steps that `bench.engines` measures, each in a process of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from bench import corpus, queries
from bench.clock import run_child
from bench.vocabulary import NOUNS
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library

TOP = 10
CHANGED_SHARE = 100  # one of so many files
Figures = dict[str, float]
Answers = dict[str, list[list[tuple[str, int]]]]  # by mode, for each query the URI and index of its hits


class Place(NamedTuple):
    """Where the library of a setup is."""

    docs: Path
    data: Path
    environ: Mapping[str, str]
    pids: Sequence[int] = ()  # of servers
    store_files: Sequence[Path] = ()
    index_files: Sequence[Path] = ()
    is_imported: bool = False  # by an earlier setup with the same store


@dataclass(slots=True)
class Cost:
    """Seconds on the clock, and of CPU with those of the servers."""

    wall: float = 0.0
    cpu: float = 0.0


def import_pages(place: Place) -> Figures:
    """Import all pages with the command line."""
    if place.is_imported:
        return {}
    before, size = _server_seconds(place), _megabytes(place.store_files)
    cost = run_child(["-m", "bunko", "reindex", *_flags(place)], **place.environ)
    servers = _server_seconds(place) - before
    return {"import": cost.cpu + servers, "store MB": _megabytes(place.store_files) - size}


def fill_index(place: Place) -> Figures:
    """Build the index anew from the store."""
    with _open(place) as library, _measure(place) as cost:
        library.index.rebuild("documents")
    return {"fill": cost.cpu, "fill wall": cost.wall, "index MB": _megabytes(place.index_files)}


def search(place: Place, reference: Answers | None) -> tuple[Figures, Answers]:
    """Open the library and search it, each query first for the first time and then again."""
    all_queries = queries.all_queries()
    start = time.perf_counter()
    with _open(place) as library:
        _hits(library, "準備", "hybrid")
        figures = {"open": time.perf_counter() - start}
        for noun in NOUNS[5:10]:  # which no query contains
            _hits(library, noun, "hybrid")
        answers: Answers = {}
        with _measure(place) as cost:
            walls, answers["hybrid"] = _search_all(library, all_queries, "hybrid")
        figures |= {"first": cost.cpu / len(walls) * 1e3, "first wall": statistics.median(walls) * 1e3}
        for mode in ("hybrid", "bm25", "semantic"):
            with _measure(place) as cost:
                walls, answers[mode] = _search_all(library, all_queries, mode)
            figures[mode] = cost.cpu / len(walls) * 1e3
            figures[f"{mode} wall"] = statistics.median(walls) * 1e3
        figures["rss"] = sum(process.memory_info().rss for process in _tree(psutil.Process())) / 1e6
        if place.pids:
            processes = [process for pid in place.pids for process in _tree(psutil.Process(pid))]
            figures["server rss"] = sum(map(_shared_memory, processes)) / 1e6
    truth = reference or answers
    figures["recall"] = _share(truth["semantic"], answers["semantic"])
    figures["overlap"] = _share(truth["hybrid"], answers["hybrid"])
    pairs = list(zip(truth["hybrid"], answers["hybrid"], strict=True))
    figures["equal"] = sum(expected == found for expected, found in pairs) / len(pairs)
    return figures, answers


def sync_changes(place: Place, seed: int) -> Figures:
    """Import other texts for some of the files, and then the old ones again, for the next setup."""
    files = sorted(place.docs.rglob("*.md"))[::CHANGED_SHARE]
    old_texts = [path.read_text(encoding="utf-8") for path in files]
    for path, (_, text) in zip(files, corpus.pages(len(files), seed=seed), strict=True):
        path.write_text(text, encoding="utf-8")
    with _open(place) as library:
        index: Any = library._index  # what an import calls last
        sync, costs = index.sync, []

        def measured_sync(tool_id: int) -> Any:
            with _measure(place) as cost:
                view = sync(tool_id)
            costs.append(cost)
            return view

        index.sync = measured_sync
        report = library.reindex()
        if report.updated != len(files) or report.notices:
            raise SystemExit(f"{report} is not {len(files)} updated files: this run measures something else")
        for path, text in zip(files, old_texts, strict=True):
            path.write_text(text, encoding="utf-8")
        library.reindex()
    return {"sync": costs[0].cpu, "sync wall": costs[0].wall}


def _search_all(library: Library, all_queries: Sequence[str], mode: str) -> tuple[list[float], list[Any]]:
    walls, answers = [], []
    for query in all_queries:
        start = time.perf_counter()
        hits = _hits(library, query, mode)
        walls.append(time.perf_counter() - start)
        answers.append(hits)
    return walls, answers


def _hits(library: Library, query: str, mode: str) -> list[tuple[str, int]]:
    answer = library.search(query, mode=mode, top_k=TOP, refresh=False)
    if answer.notices:
        raise SystemExit(f"{answer.notices}: this run measures something else")
    return [(hit.uri, hit.chunk.index) for hit in answer.hits]


def _share(expected: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> float:
    """Return the share of the expected hits that were found."""
    pairs = zip(expected, found, strict=True)
    return sum(len(set(first) & set(second)) for first, second in pairs) / sum(map(len, expected))


def _flags(place: Place) -> list[str]:
    return ["--docs-dir", str(place.docs), "--data-dir", str(place.data)]


def _open(place: Place) -> Library:
    paths = locate_library(docs_dir=place.docs, data_dir=place.data, environ=place.environ)
    return open_library(paths, environ=place.environ)


@contextmanager
def _measure(place: Place) -> Iterator[Cost]:
    cost, servers, children = Cost(), _server_seconds(place), _child_seconds()
    start, cpu = time.perf_counter(), time.process_time()
    yield cost
    cost.wall = time.perf_counter() - start
    cost.cpu = time.process_time() - cpu + _child_seconds() - children + _server_seconds(place) - servers


def _server_seconds(place: Place) -> float:
    return sum(_seconds(process) for pid in place.pids for process in _tree(psutil.Process(pid)))


def _child_seconds() -> float:
    # Milvus Lite runs in a child process.
    return sum(_seconds(process) for process in psutil.Process().children(recursive=True))


def _tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _seconds(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of the children that it waited for."""
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0


def _shared_memory(process: psutil.Process) -> int:
    """Return the memory of a process, and its share of what it has in common with others."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


def _megabytes(paths: Sequence[Path]) -> float:
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6
