"""Measure a full import of a hundred files, and adding one file to a larger library."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import corpus
from bench.clock import measure
from bench.libraries import MEDIUM, VECTORS, Libraries, open_docs, reindex
from bench.table import Result, Table, check, number

FILES = 100
ROUNDS = 3


def run(libraries: Libraries) -> Result:
    table = Table(("bringing up to date, vectors included", "CPU s", "wall s"))
    with tempfile.TemporaryDirectory() as work_dir:
        docs = Path(work_dir) / "hundred"
        corpus.write(docs, FILES * corpus.CHUNKS_PER_PAGE)
        full_import = reindex(docs, VECTORS)
        table.rows.append((f"`bunko reindex` of {FILES} new files", number(full_import.cpu), number(full_import.wall)))
        docs = Path(work_dir) / "medium"
        shutil.copytree(libraries.docs(MEDIUM), docs)
        added_seconds = _import_seconds(docs)
        table.rows.append(
            (f"one new file beside {MEDIUM:,} chunks", number(added_seconds[0]), number(added_seconds[1]))
        )
        search_seconds = _search_seconds(docs)
        table.rows.append(
            ("the same, by a search that notices it", number(search_seconds[0]), number(search_seconds[1]))
        )
    return Result(
        {"updating": table},
        [
            check("adding one file", added_seconds[1], 3, "s"),
            check(f"full index of {FILES} files", full_import.wall, 300, "s"),
        ],
    )


def _import_seconds(docs: Path) -> tuple[float, float]:
    """Return the best CPU and wall seconds of an import that finds one new file."""
    costs = []
    with open_docs(docs) as library:
        library.search("設定")
        for page in _new_pages(docs):
            with measure() as cost:
                report = library.reindex()
            if report.added != 1:
                raise SystemExit(f"{page} was not the one thing added: this run measures something else")
            costs.append((cost.cpu, cost.wall))
    return min(costs)


def _search_seconds(docs: Path) -> tuple[float, float]:
    costs = []
    for page in _new_pages(docs):
        # Opened anew each time: a library that has just scanned the folder does not scan again at once.
        with open_docs(docs) as library, measure() as cost:
            [hit] = library.search(page.stem, top_k=1).hits
        if hit.uri != page.name:
            raise SystemExit(f"{page} was not found: this run measures something else")
        costs.append((cost.cpu, cost.wall))
    return min(costs)


def _new_pages(docs: Path) -> Iterator[Path]:
    start = time.time_ns()
    for index, (_, text) in zip(range(ROUNDS), corpus.pages(ROUNDS, seed=11), strict=True):
        path = docs / f"added{start + index}.md"
        path.write_text(f"{text}\n\n{path.stem}\n", encoding="utf-8")
        yield path
