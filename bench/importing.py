"""Folders of Markdown in, what an import costs out, next to fugashi's bare parse of the same bytes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import corpus
from bench.clock import Spent, cpu
from bench.libraries import NO_VECTORS, VECTORS, Libraries, open_docs, reindex
from bench.table import Check, Result, Table, check, number

# Sixteen hundred pages, more than ten megabytes.
CHUNKS = 12_800
ROUNDS = 3
HEAD = ("import", "MB", "chunks", "CPU s", "wall s", "CPU ÷ wall", "chunks/s", "MB/s", "× parse", "index ÷ source")


def run(libraries: Libraries, folders: Sequence[tuple[str, Path]] = ()) -> Result:
    """Import generated pages, and folders of the user's own under the names given."""
    result = Result({"importing": Table(HEAD)})
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "made"
        corpus.write(made, CHUNKS)
        for name, folder in (("generated Markdown", made), *folders):
            copy = Path(place) / "copy" / name
            shutil.copytree(folder, copy)
            _measure(result, name, copy)
    return result


def _measure(result: Result, name: str, docs: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(docs.rglob("*.md"))]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    # Taking turns, since the machine is never as fast twice.
    parse = float("inf")
    best: dict[str, tuple[Spent, int, int]] = {}
    for _ in range(ROUNDS):
        parse = min(parse, _parse_seconds(texts))
        for row, environ in ((name, NO_VECTORS), (f"{name}, vectors", VECTORS)):
            shutil.rmtree(docs / ".rag-index", ignore_errors=True)
            spent = reindex(docs, environ)
            if row not in best or spent.cpu < best[row][0].cpu:
                best[row] = (spent, *_size(docs, environ))
    table = result.tables["importing"]
    table.rows.append((f"{name}, fugashi's parse alone", number(megabytes), "", number(parse), *[""] * 6))
    for row, (spent, chunks, stored) in best.items():
        cells = (
            megabytes, chunks, spent.cpu, spent.wall, spent.cpu / spent.wall, chunks / spent.wall,
            megabytes / spent.wall, spent.cpu / parse, stored / megabytes / 1e6,
        )  # fmt: skip
        table.rows.append((row, *map(number, cells)))
    result.checks.append(check(f"import of {name}, CPU against fugashi's parse", best[name][0].cpu / parse, 2.5, "×"))
    result.checks.append(_cores(name, best[name][0]))


def _cores(name: str, spent: Spent) -> Check:
    used = spent.cpu / spent.wall
    return Check(f"cores used by the import of {name}", f"{used:.2f} of {os.cpu_count()}", "> 1.3", used > 1.3)


def _parse_seconds(texts: Sequence[str]) -> float:
    import fugashi

    parse = fugashi.Tagger().parse
    return cpu(lambda: [parse(text) for text in texts], rounds=2)


def _size(docs: Path, environ: dict[str, str]) -> tuple[int, int]:
    with open_docs(docs, environ) as library:
        status = library.status()
    return sum(one.totals.chunks for one in status.tools), status.bytes + status.derived_bytes
