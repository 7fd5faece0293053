"""Measures what it costs to find out that nothing changed in a folder, next to a bare walk in one run."""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bunko.sources.folder import Folder
from bunko.types import Known

FOLDERS, FILES_EACH = 100, 100
FILES = FOLDERS * FILES_EACH
ROUNDS = 9
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


def make(root: Path) -> dict[str, Known]:
    known = {}
    for number in range(FILES):
        uri = f"chapter-{number // FILES_EACH:03}/メモ-{number % FILES_EACH:03}.md"
        content = f"# Note {number}\n\n{number}番目のメモです。\n".encode()
        path = root / uri
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (LONG_AGO, LONG_AGO))
        known[uri] = Known(hashlib.sha256(content).hexdigest(), len(content), LONG_AGO * 10**9)
    return known


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


def cpu_seconds(step: Callable[[], object]) -> float:
    step()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return statistics.median(times)


def folder(root: Path) -> Folder:
    return Folder(root, extensions=[".md", ".txt"], exclude_dirs=[".git", "node_modules"], max_file_bytes=10_000_000)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        known = make(root)

        def rescan() -> None:
            unchanged = folder(root).scan(known).unchanged
            if unchanged != FILES:
                raise SystemExit(f"{unchanged} of {FILES} files unchanged: this run measures something else")

        rows = [("bare scandir + stat", cpu_seconds(lambda: bare_walk(root)))]
        rows.append(("no-change scan", cpu_seconds(rescan)))
        (root / ".gitignore").write_text(GITIGNORE)
        rows.append(("no-change scan, .gitignore of 20 patterns", cpu_seconds(rescan)))

    floor = rows[0][1]
    print(f"{FILES:,} files in {FOLDERS} folders, median of {ROUNDS}")
    print(f"{'':42} {'CPU s':>7} {'ns/file':>8} {'× bare':>7}")
    for label, seconds in rows:
        print(f"{label:42} {seconds:7.3f} {seconds / FILES * 1e9:8,.0f} {seconds / floor:7.2f}")


if __name__ == "__main__":
    main()
