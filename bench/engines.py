"""Measure what every store and every index costs, beside a file with the embedded index, over the same chunks.

Run it with the environment that has the clients of all engines (`make bench-scale`). What is not installed is left out,
with a sentence.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.scale import engines as servers

from bench import corpus, engine_steps
from bench.clock import run_apart
from bench.engine_steps import Answers, Figures, Place
from bench.libraries import VECTORS, Libraries
from bench.table import Check, Result, Table, check, number

USUAL, LARGE = 22_000, 250_000
PACKAGES = ("psycopg", "chromadb", "pymilvus", "milvus-lite")
REFERENCE, BESIDE, MILVUS = "file, embedded", "PostgreSQL, embedded", "PostgreSQL, Milvus Lite"
_CHROMA, _MILVUS = {"BUNKO_INDEX_KIND": "chroma"}, {"BUNKO_INDEX_KIND": "milvus"}
# A busy machine must not make a search fall back to what is left on it.
_PATIENT = {"BUNKO_CHROMADB_TIMEOUT": "60", "BUNKO_MILVUS_TIMEOUT": "60"}


class Setup(NamedTuple):
    """A store and an index."""

    name: str
    store: str
    index: str
    environ: Mapping[str, str] = {}
    max_chunks: int = LARGE


SETUPS = (
    Setup(REFERENCE, "sqlite", "embedded"),
    Setup("file, Chroma in files", "sqlite", "chroma", _CHROMA),
    # It fills at the pace of the files, which take minutes for the largest size.
    Setup("file, Chroma as a server", "sqlite", "chroma server", _CHROMA, USUAL),
    Setup("file, Milvus Lite", "sqlite", "milvus", _MILVUS),
    Setup(BESIDE, "postgres", "embedded"),
    Setup(MILVUS, "postgres", "milvus", _MILVUS),
)


def run(libraries: Libraries, large: bool) -> Result:
    """Measure all setups."""
    result = Result()
    notes: list[str] = []
    for size in (USUAL, LARGE) if large else (USUAL,):
        figures = measure_size(libraries, size, notes)
        result.tables[f"engines-{size}"] = figure_table(figures)
        result.tables[f"engines-ratios-{size}"] = ratio_table(figures)
        if size == USUAL:
            result.checks += checks(figures)
    result.tables["engines-machine"] = Table(("measured with", ""), describe_machine(notes))
    return result


def measure_size(libraries: Libraries, size: int, notes: list[str]) -> dict[str, Figures]:
    """Return the figures of each setup over the same pages."""
    work = libraries.folder / f"engines-{size}"
    shutil.rmtree(work, ignore_errors=True)
    docs = work / "docs"
    corpus.write(docs, size)
    figures: dict[str, Figures] = {}
    reference: Answers | None = None
    with ExitStack() as stack:
        stores = Stores(work, docs, stack)
        for seed, setup in enumerate(SETUPS, start=100):
            if size > setup.max_chunks:
                continue
            try:
                with start_index(setup, stores.place(setup.store)) as place:
                    figures[setup.name], answers = measure_setup(place, reference, seed=seed)
            except pytest.skip.Exception as skipped:
                notes.append(f"{setup.name}: not measured: {skipped.msg}")
                print(notes[-1], file=sys.stderr)
                continue
            stores.imported.add(setup.store)
            reference = reference or answers
            print(f"{size:,} chunks, {setup.name}: {figures[setup.name]}", file=sys.stderr, flush=True)
    return figures


def measure_setup(place: Place, reference: Answers | None, *, seed: int) -> tuple[Figures, Answers]:
    """Return the figures of one setup; each step runs in a process of its own, as in use."""
    figures = run_apart(engine_steps.import_pages, place)
    figures |= run_apart(engine_steps.fill_index, place)
    searched, answers = run_apart(engine_steps.search, place, reference)
    figures |= searched
    figures |= run_apart(engine_steps.sync_changes, place, seed)
    return figures, answers


class Stores:
    """The stores of one size, each with one library that all of its setups use."""

    def __init__(self, work: Path, docs: Path, stack: ExitStack) -> None:
        self._work, self._docs, self._stack = work, docs, stack
        self._places: dict[str, Place] = {}
        self.imported: set[str] = set()

    def place(self, store: str) -> Place:
        """Return where a store is, after starting its server."""
        if store not in self._places:
            data = self._work / store
            data.mkdir(parents=True)
            place = Place(self._docs, data, {**VECTORS, **_PATIENT}, store_files=[data / "library.db"])
            self._places[store] = self._start_postgres(place) if store == "postgres" else place
        return self._places[store]._replace(is_imported=store in self.imported)

    def _start_postgres(self, place: Place) -> Place:
        try:
            from tests.scale.postgres_server import PostgresServer, environment
        except ImportError:
            pytest.skip("psycopg is not installed here: make bench-scale installs it")
        server = PostgresServer(durable=True)
        self._stack.callback(server.remove)
        environ = {**place.environ, **environment(server.new_library())}
        return place._replace(environ=environ, pids=[server.pid], store_files=[server.folder / "data" / "base"])


@contextmanager
def start_index(setup: Setup, place: Place) -> Iterator[Place]:
    """Start the server of an index, and yield the place with its address; what it wrote is deleted afterwards."""
    environ, pids, index = {**place.environ, **setup.environ}, [*place.pids], place.data / "index"
    folder = place.data / "server"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if setup.index == "chroma":
            servers.require_chroma()
        elif setup.index == "milvus":
            servers.require_milvus()
            environ["BUNKO_MILVUS_URI"] = str(index / "milvus.db")
        elif setup.index == "chroma server":
            chroma = stack.enter_context(servers.chroma_server(folder))
            environ["CHROMADB_URL"] = f"http://127.0.0.1:{chroma.port}"
            pids.append(chroma.pid)
        yield place._replace(environ=environ, pids=pids, index_files=[index, folder])
        shutil.rmtree(index / "chroma", ignore_errors=True)


ROWS = {
    "import": "first import, s CPU",
    "store MB": "store, MB",
    "fill": "filling the index, s CPU",
    "fill wall": "filling the index, s on the clock",
    "index MB": "index, MB",
    "sync": "index after 1 % of the files changed, s CPU",
    "open": "first search of a process, s on the clock",
    "first": "hybrid search, a query for the first time, ms CPU",
    "first wall": "the same, ms on the clock",
    "hybrid": "hybrid search, the same queries again, ms CPU",
    "bm25": "search by words, ms CPU",
    "semantic": "search by vectors, ms CPU",
    "recall": "recall@10 of vectors against exact",
    "equal": "hybrid top 10 equal to the embedded index",
    "overlap": "hybrid hits shared with the embedded index",
    "rss": "memory of the searching process, MB",
    "server rss": "memory of the servers, MB",
}
_SHARES = ("recall", "equal", "overlap")


def figure_table(figures: Mapping[str, Figures]) -> Table:
    """Return the figures, one column for each setup."""
    rows = []
    for key, label in ROWS.items():
        cells = [_cell(key, setup_figures.get(key)) for setup_figures in figures.values()]
        rows.append((label, *cells))
    return Table(("CPU times include those of the servers", *figures), rows)


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if key in _SHARES else number(value)


def ratio_table(figures: Mapping[str, Figures]) -> Table:
    """Return the figures as multiples of those of a file with the embedded index."""
    reference = figures[REFERENCE]
    table = Table((f"× {REFERENCE}", *figures))
    for key, label in ROWS.items():
        if key not in _SHARES and reference.get(key):
            ratios = [values[key] / reference[key] if key in values else None for values in figures.values()]
            cells = ["–" if ratio is None else number(ratio) for ratio in ratios]
            table.rows.append((re.sub(r",? (s|ms|MB)\b", ",", label).rstrip(","), *cells))
    return table


def checks(figures: Mapping[str, Figures]) -> list[Check]:
    """Compare Milvus with the embedded index over the same store."""
    if MILVUS not in figures:
        return []
    return [
        check(
            f"{label}, {USUAL:,} chunks, {MILVUS}, against {BESIDE}, CPU",
            figures[MILVUS][key] / figures[BESIDE][key],
            aim,
            "×",
        )
        for key, label, aim in (("bm25", "search by words", 4), ("hybrid", "hybrid search", 2))
    ]


def describe_machine(notes: list[str]) -> list[tuple[str, str]]:
    """Return what the figures were measured with, and what was left out."""
    rows = [
        ("machine", f"{os.cpu_count()} cores ({platform.machine()}, {platform.system()})"),
        ("load average at the end", f"{os.getloadavg()[2]:.1f} over 15 minutes"),
        ("Python", platform.python_version()),
    ]
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "not installed"))
    return rows + [tuple(note.split(": ", 1)) for note in dict.fromkeys(notes)]  # type: ignore[misc]
