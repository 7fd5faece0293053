"""Measure imports of Markdown folders, beside fugashi's parse of the same text."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import corpus
from bench.clock import Cost, cpu
from bench.libraries import NO_VECTORS, VECTORS, Libraries, open_docs, reindex
from bench.table import Check, Result, Table, check, number

# Sixteen hundred pages, more than ten megabytes.
CHUNKS = 12_800
ROUNDS = 3
HEAD = ("import", "MB", "chunks", "CPU s", "wall s", "CPU ÷ wall", "chunks/s", "MB/s", "× parse", "index ÷ source")


def run(libraries: Libraries, folders: Sequence[tuple[str, Path]] = ()) -> Result:
    """Import generated pages, and the given folders."""
    result = Result({"importing": Table(HEAD)})
    with tempfile.TemporaryDirectory() as work_dir:
        generated = Path(work_dir) / "made"
        corpus.write(generated, CHUNKS)
        for name, folder in (("generated Markdown", generated), *folders):
            copy = Path(work_dir) / "copy" / name
            shutil.copytree(folder, copy)
            _measure(result, name, copy)
    return result


def _measure(result: Result, name: str, docs: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(docs.rglob("*.md"))]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    # The steps take turns, since the speed of the machine varies.
    parse_seconds = float("inf")
    best: dict[str, tuple[Cost, int, int]] = {}
    for _ in range(ROUNDS):
        parse_seconds = min(parse_seconds, _parse_seconds(texts))
        for label, environ in ((name, NO_VECTORS), (f"{name}, vectors", VECTORS)):
            shutil.rmtree(docs / ".rag-index", ignore_errors=True)
            cost = reindex(docs, environ)
            if label not in best or cost.cpu < best[label][0].cpu:
                best[label] = (cost, *_index_size(docs, environ))
    table = result.tables["importing"]
    table.rows.append((f"{name}, fugashi's parse alone", number(megabytes), "", number(parse_seconds), *[""] * 6))
    for label, (cost, chunks, index_bytes) in best.items():
        cells = (
            megabytes, chunks, cost.cpu, cost.wall, cost.cpu / cost.wall, chunks / cost.wall,
            megabytes / cost.wall, cost.cpu / parse_seconds, index_bytes / megabytes / 1e6,
        )  # fmt: skip
        table.rows.append((label, *map(number, cells)))
    result.checks.append(
        check(f"import of {name}, CPU against fugashi's parse", best[name][0].cpu / parse_seconds, 2.5, "×")
    )
    result.checks.append(_core_check(name, best[name][0]))


def _core_check(name: str, cost: Cost) -> Check:
    cores = cost.cpu / cost.wall
    return Check(f"cores used by the import of {name}", f"{cores:.2f} of {os.cpu_count()}", "> 1.3", cores > 1.3)


def _parse_seconds(texts: Sequence[str]) -> float:
    import fugashi

    parse = fugashi.Tagger().parse
    return cpu(lambda: [parse(text) for text in texts], rounds=2)


def _index_size(docs: Path, environ: dict[str, str]) -> tuple[int, int]:
    with open_docs(docs, environ) as library:
        status = library.status()
    return sum(tool.totals.chunks for tool in status.tools), status.bytes + status.derived_bytes
