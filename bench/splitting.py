"""Measure the CPU time of splitting files into chunks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bench import corpus
from bench.table import Result, Table, check, number
from bunko import readers
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.protocols import Chunker
from bunko.types import Text

PAGES = 100
ROUNDS = 5


def run(_: object, folders: Sequence[tuple[str, Path]] = ()) -> Result:
    """Split generated pages, and the given folders."""
    table = Table(("splitting", "files", "kB a file", "chunks a file", "ms a file, mean", "ms a file, worst"))
    sources = {"generated Markdown": [(name, text.encode()) for name, text in corpus.pages(PAGES)]}
    for label, folder in folders:
        sources[label] = [(path.name, path.read_bytes()) for path in sorted(folder.rglob("*.md"))]
    worst, chunker = 0.0, ChunkerSettings().build()
    for label, files in sources.items():
        texts = [readers.read(data, name) for name, data in files]
        times = [_milliseconds(chunker, text) for text in texts]
        chunks = sum(len(chunker.chunks(text)) for text in texts)
        worst = max(worst, *times)
        size = sum(len(data) for _, data in files) / 1e3
        cells = (len(files), size / len(files), chunks / len(files), sum(times) / len(times), max(times))
        table.rows.append((label, *map(number, cells)))
    return Result({"splitting": table}, [check("splitting a file (the worst one)", worst, 10, "ms")])


def _milliseconds(chunker: Chunker, text: Text) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        chunker.chunks(text)
        best = min(best, time.process_time() - start)
    return best * 1e3
