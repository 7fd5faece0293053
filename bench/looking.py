"""Measure the look for changes before a search, beside listing the files and asking for their times."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import corpus
from bench.clock import cpu, race, run_apart, run_child
from bench.libraries import NO_VECTORS, open_docs, reindex
from bench.rescan import LONG_AGO, bare_walk
from bench.table import Result, Table, check, number
from bunko.ingest.changes import find_changes
from bunko.ingest.watched import WatchedFolders
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.protocols import Scan, Source
from bunko.sources import build
from bunko.types.records import Filter

FILES, LARGE_FILES = 10_000, 100_000
MEMOS, LARGE_MEMOS = 10_000, 500_000
FILES_EACH = 100  # in a folder


def run(_: object, large: bool) -> Result:
    """Measure a folder of many files and a file of many memos; `large` ones too, which takes some minutes."""
    result = Result({"looking": Table(("a look that finds nothing new", "CPU ms", "bare ms", "× bare"))})
    for count in (FILES, LARGE_FILES) if large else (FILES,):
        _measure_files(count, result)
    for count in (MEMOS, LARGE_MEMOS) if large else (MEMOS,):
        _measure_memos(count, result)
    return result


def _measure_files(count: int, result: Result) -> None:
    with tempfile.TemporaryDirectory() as work_dir:
        root = Path(work_dir)
        _write_files(root, count)
        reindex(root, NO_VECTORS)
        with open_docs(root, NO_VECTORS) as library:
            source = build("folder", root, extensions=[".md"], exclude_dirs=[".rag-index"], max_file_bytes=10_000_000)
            watched = WatchedFolders()
            seconds = race(
                {
                    "bare": lambda: bare_walk(root),
                    "listed": lambda: find_nothing(library, source, count),
                    "watched": lambda: find_nothing(library, source, count, watched),
                    "compared": lambda: _compare(library, source, count),
                },
                rounds=5,
            )
            watched.close()
    bare_seconds = seconds["bare"]
    for name, label in (
        ("listed", "in a process that has just started"),
        ("watched", "in a server, where nothing has happened"),
        ("compared", "compared with what is stored, as after a change"),
    ):
        _add_row(result, f"{count:,} files, {label}", seconds[name], bare_seconds)
    result.checks += [
        check(f"look at {count:,} files", seconds["listed"] * 1e3, 40 * count / FILES, "ms CPU"),
        check(f"look at {count:,} files in a server", seconds["watched"] * 1e3, 5, "ms CPU"),
    ]


def _measure_memos(count: int, result: Result) -> None:
    with tempfile.TemporaryDirectory() as work_dir:
        file, folder = Path(work_dir) / "memos.jsonl", Path(work_dir) / "library"
        corpus.write_jsonl(file, count)
        os.utime(file, (LONG_AGO, LONG_AGO))
        run_child(["-m", "bunko", "build", "-i", str(file), "-o", str(folder)], **NO_VECTORS)
        search = ["-m", "bunko", "search", "会議の設定", "--library", str(folder)]
        first = run_child(search, **NO_VECTORS)
        again = min(run_child(search, **NO_VECTORS).cpu for _ in range(3))
        run_apart(measure_filter, folder)  # writes the file of facts
        cold_filter, warm_filter = run_apart(measure_filter, folder)
        with open_library(locate_library(library=folder, environ=NO_VECTORS), environ=NO_VECTORS) as library:
            source = build("memos", file, extensions=(), exclude_dirs=(), max_file_bytes=20_000_000)
            steps: dict[str, Callable[[], object]] = {
                "bare": file.stat,
                "look": lambda: find_nothing(library, source, count),
            }
            seconds = race(steps, rounds=5)
            compared_seconds = cpu(lambda: _compare(library, source, count), rounds=1)
    _add_row(result, f"{count:,} memos in a file", seconds["look"], seconds["bare"])
    _add_row(result, f"{count:,} memos in a file, compared with what is stored", compared_seconds, seconds["bare"])
    _add_row(result, f"first `bunko search` after the import of {count:,} memos, in all", first.cpu, again)
    result.checks += [
        check(f"look at {count:,} memos in a file", seconds["look"] * 1e3, 1, "ms CPU"),
        check(f"first search after the import of {count:,} memos", first.cpu, 1, "CPU-s"),
        check(f"cold search in {count:,} memos", again, 0.6, "CPU-s"),
        check(f"filter by tag and date in {count:,} memos, in a new process", cold_filter * 1e3, 5, "ms CPU"),
        check(f"the same filter again, {count:,} memos", warm_filter * 1e3, 5, "ms CPU"),
    ]


def measure_filter(folder: Path) -> tuple[float, float]:
    """Return the CPU seconds of the first filter of a process, and of the same filter again."""
    where = Filter(tags=(corpus.TAGS[0],), since="2020", until="2021")
    with open_library(locate_library(library=folder, environ=NO_VECTORS), environ=NO_VECTORS) as library:
        [tool] = library.tools()

        def select() -> object:
            return library.store.documents.select(tool.id, where)

        start = time.process_time()
        select()
        return time.process_time() - start, cpu(select, rounds=5)


def find_nothing(library: Library, source: Source, count: int, watched: WatchedFolders | None = None) -> None:
    """Look for changes as a search does; stop the run if there are any."""
    [tool] = library.tools()
    _require_unchanged(find_changes(library.store, tool, source, watched), count)


def _compare(library: Library, source: Source, count: int) -> None:
    [tool] = library.tools()
    _require_unchanged(source.scan(library.store.documents.fingerprints(tool.id)), count)


def _require_unchanged(scan: Scan, count: int) -> None:
    if scan.unchanged != count or scan.has_changes:
        raise SystemExit(f"{scan.unchanged} of {count} entries unchanged: this run measures something else")


def _add_row(result: Result, label: str, seconds: float, bare_seconds: float) -> None:
    row = (label, number(seconds * 1e3), number(bare_seconds * 1e3), number(seconds / bare_seconds))
    result.tables["looking"].rows.append(row)


def _write_files(root: Path, count: int) -> None:
    for index in range(count):
        path = root / f"chapter-{index // FILES_EACH:04}" / f"メモ-{index % FILES_EACH:03}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Note {index}\n\n{index}番目のメモです。\n", encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))
