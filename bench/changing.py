"""Measure an import of a few changed files in a folder of many, beside an import of those few alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import corpus
from bench.clock import measure
from bench.libraries import VECTORS, open_docs, reindex
from bench.table import Result, Table, check, number
from bunko.types import Report

FILES, CHANGED = 10_000, 10
ROUNDS = 9
Seconds = tuple[float, float]  # CPU and wall


def run(_: object) -> Result:
    with tempfile.TemporaryDirectory() as work_dir:
        many, few = Path(work_dir) / "many", Path(work_dir) / "few"
        _write_files(many)
        first_import = reindex(many, VECTORS)
        changed_files = sorted(many.rglob("*.md"))[:: FILES // CHANGED]
        few.mkdir()
        few_files = [Path(shutil.copy(path, few / f"{index}.md")) for index, path in enumerate(changed_files)]
        unchanged, changed, few_imported, few_changed = (
            min(costs) for costs in zip(*_measure_rounds(many, changed_files, few, few_files), strict=True)
        )
    costs = {
        f"first import of {FILES:,} files, in a process of its own": (first_import.cpu, first_import.wall),
        "update, nothing changed": unchanged,
        f"update, {CHANGED} files changed": changed,
        f"first import of a folder of {CHANGED} files": few_imported,
        f"update of that folder, all {CHANGED} changed": few_changed,
    }
    table = Table(("small files, vectors included", "CPU s", "wall s"))
    table.rows += [(label, number(cpu), number(wall)) for label, (cpu, wall) in costs.items()]
    label = f"{CHANGED} changed of {FILES:,} files, less finding them, against importing {CHANGED}"
    return Result({"changing": table}, [check(label, (changed[0] - unchanged[0]) / few_imported[0], 2, "×")])


def _measure_rounds(
    many: Path, changed_files: Sequence[Path], few: Path, few_files: Sequence[Path]
) -> Iterator[Sequence[Seconds]]:
    """Yield the cost of each step per round; the steps take turns, since differences count and noise must hit all."""
    with open_docs(many) as library:
        for round_index in range(ROUNDS):
            unchanged = _measure_step(library.reindex, unchanged=FILES)
            _change_files(changed_files, round_index)
            changed = _measure_step(library.reindex, updated=CHANGED)
            shutil.rmtree(few / ".rag-index", ignore_errors=True)
            few_imported = _measure_step(lambda: _import_folder(few), added=CHANGED)
            _change_files(few_files, round_index)
            with open_docs(few) as few_library:
                yield unchanged, changed, few_imported, _measure_step(few_library.reindex, updated=CHANGED)


def _measure_step(work: Callable[[], Report], **expected: int) -> Seconds:
    with measure() as cost:
        report = work()
    if any(getattr(report, name) != count for name, count in expected.items()):
        raise SystemExit(f"{report} is not {expected}: this run measures something else")
    return cost.cpu, cost.wall


def _import_folder(docs: Path) -> Report:
    with open_docs(docs) as library:
        return library.reindex()


def _write_files(folder: Path) -> None:
    for name, text in corpus.pages(FILES):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_first_section(text), encoding="utf-8")


def _change_files(paths: Sequence[Path], round_index: int) -> None:
    for path, (_, text) in zip(paths, corpus.pages(CHANGED, seed=100 + round_index), strict=True):
        path.write_text(_first_section(text), encoding="utf-8")


def _first_section(page: str) -> str:
    """Return the first section of a page: one chunk of about 400 characters."""
    return "## ".join(page.split("## ")[:2])
