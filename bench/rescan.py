"""Measure how fast an import finds that nothing changed in a folder of many files, beside a bare walk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.clock import race
from bench.libraries import NO_VECTORS, open_docs, reindex
from bench.table import Result, Table, check, number
from bunko.sources.folder import Folder

FOLDERS, FILES_EACH = 100, 100
FILES = FOLDERS * FILES_EACH
LONG_AGO = 1_700_000_000
GITIGNORE = """\
# what a project of several languages ignores
__pycache__/
*.py[cod]
*.egg-info/
.venv/
/build/
/dist/
node_modules/
*.log
*.tmp
*.swp
*~
.DS_Store
Thumbs.db
.idea/
.vscode/*
!.vscode/settings.json
/docs/_build/
**/generated/**
coverage.xml
*.sqlite3
"""


def run(_: object) -> Result:
    with tempfile.TemporaryDirectory() as work_dir:
        root = Path(work_dir)
        write_files(root)
        reindex(root, NO_VECTORS)
        with open_docs(root, NO_VECTORS) as library:
            [tool] = library.tools()

            def scan() -> None:
                _require_unchanged(_folder_source(root).scan(library.store.documents.fingerprints(tool.id)).unchanged)

            steps = {
                "bare scandir and stat": lambda: bare_walk(root),
                "no-change scan": scan,
                "whole no-change reindex": lambda: _require_unchanged(library.reindex().unchanged),
            }
            seconds = race(steps, rounds=5)
            (root / ".gitignore").write_text(GITIGNORE)
            seconds["no-change scan, .gitignore of 20 patterns"] = race({"": scan}, rounds=5)[""]
    bare_seconds = seconds["bare scandir and stat"]
    table = Table((f"{FILES:,} files in {FOLDERS} folders", "CPU s", "µs a file", "× bare"))
    for label, value in seconds.items():
        table.rows.append((label, number(value), number(value / FILES * 1e6), f"{value / bare_seconds:.1f}"))
    reindex_seconds = seconds["whole no-change reindex"]
    return Result(
        {"rescan": table},
        [
            check(f"no-change reindex of {FILES:,} files", reindex_seconds, 0.4, "CPU-s"),
            check("skipping an unchanged file", reindex_seconds / FILES * 1e3, 1, "ms"),
        ],
    )


def _folder_source(root: Path) -> Folder:
    excluded = [".git", ".rag-index", "node_modules"]
    return Folder(root, extensions=[".md", ".txt"], exclude_dirs=excluded, max_file_bytes=10_000_000)


def write_files(root: Path) -> None:
    for index in range(FILES):
        path = root / f"chapter-{index // FILES_EACH:03}/メモ-{index % FILES_EACH:03}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Note {index}\n\n{index}番目のメモです。\n", encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))


def bare_walk(root: Path) -> int:
    """List and stat every file: no scan can cost less."""
    files = 0
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    files += 1
    return files


def _require_unchanged(unchanged: int) -> None:
    if unchanged != FILES:
        raise SystemExit(f"{unchanged} of {FILES} files unchanged: this run measures something else")
