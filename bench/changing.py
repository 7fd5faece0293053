"""A folder of many small files in, what it costs to take in the few that changed out, beside those few alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import corpus
from bench.clock import spent
from bench.libraries import VECTORS, open_docs, reindex
from bench.table import Result, Table, check, number
from bunko.types import Report

FILES, CHANGED = 10_000, 10
ROUNDS = 9
Cost = tuple[float, float]  # CPU and wall seconds


def run(_: object) -> Result:
    with tempfile.TemporaryDirectory() as place:
        many, few = Path(place) / "many", Path(place) / "few"
        _write(many)
        first = reindex(many, VECTORS)
        spread = sorted(many.rglob("*.md"))[:: FILES // CHANGED]
        few.mkdir()
        alone = [Path(shutil.copy(path, few / f"{at}.md")) for at, path in enumerate(spread)]
        same, some, new, own = (min(costs) for costs in zip(*_rounds(many, spread, few, alone), strict=True))
    costs = {
        f"first import of {FILES:,} files, in a process of its own": (first.cpu, first.wall),
        "update, nothing changed": same,
        f"update, {CHANGED} files changed": some,
        f"first import of a folder of {CHANGED} files": new,
        f"update of that folder, all {CHANGED} changed": own,
    }
    table = Table(("small files, vectors included", "CPU s", "wall s"))
    table.rows += [(label, number(cpu), number(wall)) for label, (cpu, wall) in costs.items()]
    what = f"{CHANGED} changed of {FILES:,} files, less finding them, against importing {CHANGED}"
    return Result({"changing": table}, [check(what, (some[0] - same[0]) / new[0], 2, "×")])


def _rounds(many: Path, spread: Sequence[Path], few: Path, alone: Sequence[Path]) -> Iterator[Sequence[Cost]]:
    """Return what each step costs, round by round: they take turns, since differences count and noise must meet all."""
    with open_docs(many) as library:
        for at in range(ROUNDS):
            same = _cost(library.reindex, unchanged=FILES)
            _change(spread, at)
            some = _cost(library.reindex, updated=CHANGED)
            shutil.rmtree(few / ".rag-index", ignore_errors=True)
            new = _cost(lambda: _imported(few), added=CHANGED)
            _change(alone, at)
            with open_docs(few) as other:
                yield same, some, new, _cost(other.reindex, updated=CHANGED)


def _cost(work: Callable[[], Report], **expected: int) -> Cost:
    with spent() as cost:
        report = work()
    if any(getattr(report, name) != count for name, count in expected.items()):
        raise SystemExit(f"{report} is not {expected}: this run measures something else")
    return cost.cpu, cost.wall


def _imported(docs: Path) -> Report:
    with open_docs(docs) as library:
        return library.reindex()


def _write(folder: Path) -> None:
    for name, text in corpus.pages(FILES):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_short(text), encoding="utf-8")


def _change(paths: Sequence[Path], at: int) -> None:
    for path, (_, text) in zip(paths, corpus.pages(CHANGED, seed=100 + at), strict=True):
        path.write_text(_short(text), encoding="utf-8")


def _short(page: str) -> str:
    """Return a page with its first section alone: one chunk of about 400 characters."""
    return "## ".join(page.split("## ")[:2])
