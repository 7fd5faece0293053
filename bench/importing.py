"""Measure imports of Markdown folders, beside fugashi's parse of the same text."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import corpus
from bench.clock import Cost, cpu, environment
from bench.libraries import NO_VECTORS, VECTORS, Libraries, open_docs, reindex
from bench.table import Check, Result, Table, check, number
from bunko.text.analyzer import load_tagger

# Sixteen hundred pages, more than ten megabytes.
CHUNKS = 12_800
ROUNDS = 3
# The steps of an import as `--verbose` names them, in the order in which a chunk goes through them.
STEPS = {
    "file_read": "read and decoded",
    "chunk_split": "split into chunks",
    "tokenise": "analysed into words",
    "embed": "embedded, with its sentences",
    "sqlite_write": "written and committed",
    "index_sync": "indexed",
}
_SHARE = re.compile(r"(\w+) (\d+)%")
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
        result.tables["chunk-cost"] = _chunk_costs(Path(work_dir) / "copy" / "generated Markdown")
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


def _chunk_costs(docs: Path) -> Table:
    """Return what a chunk costs from its bytes to the commit and the index, in one process."""
    shutil.rmtree(docs / ".rag-index", ignore_errors=True)
    parse_seconds = _parse_seconds([path.read_text(encoding="utf-8") for path in sorted(docs.rglob("*.md"))])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        [sys.executable, "-m", "bunko", "reindex", "--docs-dir", str(docs), "--workers", "1", "--verbose"],
        env=environment(**VECTORS), capture_output=True, text=True, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    _, _, line = process.stderr.rpartition("work by step: ")
    shares = {name: int(percent) / 100 for name, percent in _SHARE.findall(line.partition("\n")[0])}
    chunks = _index_size(docs, VECTORS)[0]
    costs = {text: shares[name] * seconds for name, text in STEPS.items()}
    costs = {"fugashi's parse alone": parse_seconds, **costs, "all": seconds}
    rows = [(name, number(cost / chunks * 1e6), number(cost / parse_seconds)) for name, cost in costs.items()]
    return Table(("generated Markdown, one process", "µs CPU a chunk", "× parse"), rows)


def _core_check(name: str, cost: Cost) -> Check:
    cores = cost.cpu / cost.wall
    return Check(f"cores used by the import of {name}", f"{cores:.2f} of {os.cpu_count()}", "> 1.3", cores > 1.3)


def _parse_seconds(texts: Sequence[str]) -> float:
    parse = load_tagger().parse
    return cpu(lambda: [parse(text) for text in texts], rounds=2)


def _index_size(docs: Path, environ: dict[str, str]) -> tuple[int, int]:
    with open_docs(docs, environ) as library:
        status = library.status()
    return sum(tool.totals.chunks for tool in status.tools), status.bytes + status.derived_bytes
