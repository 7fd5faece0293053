"""Libraries in, what it costs to build one of a hundred files and to add one file to a larger one out."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import corpus
from bench.clock import spent
from bench.libraries import MEDIUM, VECTORS, Libraries, open_docs, reindex
from bench.table import Result, Table, check, number

FILES = 100
ROUNDS = 3


def run(libraries: Libraries) -> Result:
    table = Table(("bringing up to date, vectors included", "CPU s", "wall s"))
    with tempfile.TemporaryDirectory() as place:
        docs = Path(place) / "hundred"
        corpus.write(docs, FILES * corpus.CHUNKS_A_PAGE)
        full = reindex(docs, VECTORS)
        table.rows.append((f"`bunko reindex` of {FILES} new files", number(full.cpu), number(full.wall)))
        docs = Path(place) / "medium"
        shutil.copytree(libraries.docs(MEDIUM), docs)
        added = _added(docs)
        table.rows.append((f"one new file beside {MEDIUM:,} chunks", number(added[0]), number(added[1])))
        searched = _searched(docs)
        table.rows.append(("the same, by a search that notices it", number(searched[0]), number(searched[1])))
    return Result(
        {"updating": table},
        [
            check("adding one file", added[1], 3, "s"),
            check(f"full index of {FILES} files", full.wall, 300, "s"),
        ],
    )


def _added(docs: Path) -> tuple[float, float]:
    """Return the best CPU and wall seconds of an import that finds one new file."""
    best = []
    with open_docs(docs) as library:
        library.search("設定")
        for page in _new_pages(docs):
            with spent() as cost:
                report = library.reindex()
            if report.added != 1:
                raise SystemExit(f"{page} was not the one thing added: this run measures something else")
            best.append((cost.cpu, cost.wall))
    return min(best)


def _searched(docs: Path) -> tuple[float, float]:
    best = []
    for page in _new_pages(docs):
        # Opened anew each time: a library that has just looked at the folder does not look again at once.
        with open_docs(docs) as library, spent() as cost:
            [hit] = library.search(page.stem, top_k=1).hits
        if hit.uri != page.name:
            raise SystemExit(f"{page} was not found: this run measures something else")
        best.append((cost.cpu, cost.wall))
    return min(best)


def _new_pages(docs: Path) -> Iterator[Path]:
    start = time.time_ns()
    for at, (_, text) in zip(range(ROUNDS), corpus.pages(ROUNDS, seed=11), strict=True):
        path = docs / f"added{start + at}.md"
        path.write_text(f"{text}\n\n{path.stem}\n", encoding="utf-8")
        yield path
