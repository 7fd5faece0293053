"""A folder of many files in, what it costs to find out that nothing changed out, next to a bare walk."""

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
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        make(root)
        reindex(root, NO_VECTORS)
        with open_docs(root, NO_VECTORS) as library:
            [tool] = library.tools()

            def scan() -> None:
                _all_unchanged(_folder(root).scan(library.store.fingerprints(tool.id)).unchanged)

            steps = {
                "bare scandir and stat": lambda: bare_walk(root),
                "no-change scan": scan,
                "whole no-change reindex": lambda: _all_unchanged(library.reindex().unchanged),
            }
            seconds = race(steps, rounds=5)
            (root / ".gitignore").write_text(GITIGNORE)
            seconds["no-change scan, .gitignore of 20 patterns"] = race({"": scan}, rounds=5)[""]
    floor = seconds["bare scandir and stat"]
    table = Table((f"{FILES:,} files in {FOLDERS} folders", "CPU s", "µs a file", "× bare"))
    for label, value in seconds.items():
        table.rows.append((label, number(value), number(value / FILES * 1e6), f"{value / floor:.1f}"))
    whole = seconds["whole no-change reindex"]
    return Result(
        {"rescan": table},
        [
            check(f"no-change reindex of {FILES:,} files", whole, 0.4, "CPU-s"),
            check("skipping an unchanged file", whole / FILES * 1e3, 1, "ms"),
        ],
    )


def _folder(root: Path) -> Folder:
    excluded = [".git", ".rag-index", "node_modules"]
    return Folder(root, extensions=[".md", ".txt"], exclude_dirs=excluded, max_file_bytes=10_000_000)


def make(root: Path) -> None:
    for at in range(FILES):
        path = root / f"chapter-{at // FILES_EACH:03}/メモ-{at % FILES_EACH:03}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Note {at}\n\n{at}番目のメモです。\n", encoding="utf-8")
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


def _all_unchanged(unchanged: int) -> None:
    if unchanged != FILES:
        raise SystemExit(f"{unchanged} of {FILES} files unchanged: this run measures something else")
