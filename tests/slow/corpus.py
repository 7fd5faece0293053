"""Folders of documents in known states, real bunko processes over them, and what a library made of them."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Mode

Files = dict[str, str]

# Long enough for a machine that is busy with other tests, short enough that a hang is seen.
PATIENCE = 60.0

# What runs bunko, where it is not to be run as we are.
PREFIX: tuple[str, ...] = ()

_JAPANESE = "京都 寺 庭 検索 設計 玉葱 特許 出願 手順 環境 構築 方法 索引 文書 試験 港 城 鹿 料理 音楽 歴史".split()
_ENGLISH = "quick index engine server garden temple river patent method recovery signal document import".split()
QUERIES = ("京都の寺", "特許の出願手順", "recovery signal", "server 索引", "K0007", "誰も書かなかったこと")
_MODES: tuple[Mode, ...] = ("bm25", "hybrid")


def document(name: str, *, sections: int = 3, sentences: int = 4) -> str:
    """Return a document that is always the same for a name, with a heading for each chunk and no table."""
    chance = random.Random(name)
    parts = [f"# {name}\n\n"]
    for number in range(sections):
        parts.append(f"## 節 {number} K{chance.randrange(60):04d}\n\n")
        for _ in range(sentences):
            a, b, c = chance.choices(_JAPANESE, k=3)
            parts.append(f"{a}の{b}は{c}を{chance.randrange(10**6)}回考える。")
            parts.append(f"The {' '.join(chance.choices(_ENGLISH, k=4))} of {chance.randrange(10**6)}.\n")
        parts.append("\n")
    return "".join(parts)


@dataclass(frozen=True)
class Change:
    """A folder before and after somebody worked in it."""

    before: Files
    after: Files
    moved: dict[str, str]  # from → to

    @property
    def kept(self) -> set[str]:
        """Return the places that hold a document all the time."""
        return self.before.keys() & self.after.keys()


def change(*, files: int, added: int, updated: int, removed: int, moved: int, **shape: int) -> Change:
    """Return a folder of some files, and what adding, rewriting, removing and moving makes of it."""
    before = {f"{n % 7}/{n}.md": document(f"{n}", **shape) for n in range(files)}
    names = sorted(before)
    random.Random(files).shuffle(names)
    after = dict(before)
    for name in names[:updated]:
        after[name] = document(f"{name} anew", **shape)
    for name in names[updated : updated + removed]:
        del after[name]
    moves = {name: f"moved/{name}" for name in names[updated + removed : updated + removed + moved]}
    for old, new in moves.items():
        after[new] = after.pop(old)
    for n in range(added):
        after[f"new/{n}.md"] = document(f"new {n}", **shape)
    return Change(before, after, moves)


def write(docs: Path, files: Files) -> None:
    """Make a folder hold these files and no others, leaving those alone that are right already."""
    own = ".rag-index"
    for path in [path for path in docs.rglob("*.md") if own not in path.parts]:
        if path.relative_to(docs).as_posix() not in files:
            path.unlink()
    for name, text in files.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="")


def environment(**more: str) -> dict[str, str]:
    """Return the environment of this process without any setting of bunko's, and with these."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BUNKO_", "RAG_"))}
    # A coverage or development run may make warnings errors for us; what users run has the defaults.
    plain.pop("PYTHONWARNINGS", None)
    return {**plain, "XDG_CONFIG_HOME": "/nonexistent", "PYTHONUTF8": "1", "COLUMNS": "200", **more}


def start(*arguments: str | Path, **environ: str) -> subprocess.Popen[str]:
    """Start a bunko of its own, in a process of its own."""
    return subprocess.Popen(
        [*PREFIX, sys.executable, "-m", "bunko", *map(str, arguments)],
        env=environment(**environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )


def run(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a bunko to its end."""
    with start(*arguments, **environ) as process:
        out, err = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_until(true: Callable[[], bool], what: str, *, seconds: float = PATIENCE) -> None:
    """Look again and again until something holds; other processes give no event to wait on."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(0.002)


def opened(docs: Path, *, data: Path | None = None, read_only: bool = False) -> Library:
    """Open the library of a folder in this process."""
    home = locate_library(docs_dir=docs, data_dir=data, environ={})
    return open_library(home, environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}, read_only=read_only)


# A rebuild collects its documents under a tool of its own, which nobody sees.
_OURS = "FROM documents JOIN tools ON tools.id = tool_id WHERE tools.name = 'documents'"


def stored(library: Library) -> Files:
    """Return the text of each document as it lies in the library's file."""
    connection = sqlite3.connect(library.paths.database)
    try:
        return dict(connection.execute(f"SELECT uri, text {_OURS}").fetchall())
    finally:
        connection.close()


@dataclass(frozen=True)
class Contents:
    """All of a library that a user can see."""

    documents: Files
    chunks: dict[tuple[str, int], str]
    answers: dict[tuple[str, Mode], list[tuple[str, int, float]]]


def contents(library: Library) -> Contents:
    """Return the documents, the chunks and some answers of a library, without looking for changes."""
    connection = sqlite3.connect(library.paths.database)
    ids = [
        row[0]
        for row in connection.execute(f"SELECT id FROM chunks WHERE document_id IN (SELECT documents.id {_OURS})")
    ]
    connection.close()
    chunks = {}
    for at in range(0, len(ids), 500):
        for one in library.store.documents.chunks(ids[at : at + 500]).values():
            chunks[one.uri, one.chunk.index] = one.chunk.text
    answers = {
        (query, mode): [
            (hit.uri, hit.chunk.index, round(hit.score, 6))
            for hit in library.search(query, mode=mode, top_k=20, refresh=False).hits
        ]
        for query in QUERIES
        for mode in _MODES
    }
    return Contents(stored(library), chunks, answers)


def built_from_scratch(files: Files, folder: Path) -> Contents:
    """Return what a library holds that saw only these files."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    write(docs, files)
    with opened(docs) as library:
        report = library.reindex()
        assert report.added == len(files)
        assert not report.problems
        return contents(library)


def check_between(library: Library, change: Change, *, moves_at_once: bool = True) -> None:
    """Assert that each document is as it was before a change or as it is after, and that searches tell the truth."""
    assert library.store.check() == ""
    found = stored(library)
    for uri, text in found.items():
        assert text in (change.before.get(uri), change.after.get(uri)), f"{uri} is neither old nor new"
    assert change.kept <= found.keys()
    for old, new in change.moved.items() if moves_at_once else ():
        assert (old in found) != (new in found), f"{old} is in both places or in none"
    for query in QUERIES:
        for mode in _MODES:
            for hit in library.search(query, mode=mode, top_k=20, refresh=False).hits:
                assert hit.chunk.text.strip() in found[hit.uri]


def workers_of(pid: int) -> list[int]:
    """Return the workers of an import; the process that cleans up after spawned ones is none."""
    found = []
    for below in processes_below(pid):
        with suppress(OSError):
            if b"resource_tracker" not in Path(f"/proc/{below}/cmdline").read_bytes():
                found.append(below)
    return found


def processes_below(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            state = _state(int(entry.name))
            if state is not None:
                parents[int(entry.name)] = state[1]
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [deeper for child in found for deeper in processes_below(child)]


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that ended and was not buried yet does not."""
    state = _state(pid)
    return state is not None and state[0] not in "ZX"


def _state(pid: int) -> tuple[str, int] | None:
    try:
        # The name, in brackets, may hold anything; what follows the last bracket is plain.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1])
