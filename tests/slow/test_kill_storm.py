"""Commands that are killed again and again lose nothing: imports, moves, packs and crawls, each in one library.

`BUNKO_TEST_KILLS=500` kills 500 times; with `-s`, the test prints what it did.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.site import Answer, Site
from tests.slow import corpus
from tests.slow.test_kill import kill, wait_for_a_moment
from tests.web.articles import article

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("BUNKO_TEST_KILLS", "24")) // 4  # of each command
PAGES = 40

Row = tuple[str, str]


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database, timeout=corpus.PATIENCE)) as connection:
        return connection.execute(query).fetchall()


def documents(database: Path) -> list[Row]:
    """Return path and text of each document of the tool, without those that a rebuild or a pack has not finished."""
    query = "SELECT uri, text FROM documents JOIN tools ON tools.id = tool_id WHERE name = 'docs' ORDER BY uri"
    return [(str(uri), str(text)) for uri, text in rows(database, query)]


def check_file(database: Path) -> None:
    """Assert that a library is whole: its pages, its references, and a vector for each chunk that has a key."""
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]
    assert rows(database, "PRAGMA foreign_key_check") == []
    without = "SELECT count(*) FROM chunks WHERE vector_key IS NULL OR vector_key NOT IN (SELECT key FROM vectors)"
    assert rows(database, without) == [(0,)]


def orphans(database: Path) -> int:
    """Return how many vectors no chunk uses and nobody will delete."""
    tables = [name for (name,) in rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    kept = " EXCEPT SELECT key FROM kept" if "kept" in tables else ""
    query = f"SELECT count(*) FROM (SELECT key FROM vectors EXCEPT SELECT vector_key FROM chunks{kept})"
    return int(str(rows(database, query)[0][0]))


class Storm:
    """Starts a command, kills it at a random moment, and counts."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.killed = self.attempts = 0
        self._seconds = 0.0  # that the command takes, at most
        self._process: subprocess.Popen[str] | None = None

    def run(self, *arguments: str | Path, **environ: str) -> None:
        """Run the command to its end."""
        begin = time.monotonic()
        done = corpus.run(*arguments, **environ)
        assert done.returncode == 0, done.stderr
        self._seconds = max(self._seconds, time.monotonic() - begin)

    def is_over(self) -> bool:
        """Return whether the command was killed often enough."""
        assert self.attempts <= 4 * KILLS, "most commands ended before they were killed, so this proves little"
        return self.killed >= KILLS

    def strike(self, database: Path, *arguments: str | Path, **environ: str) -> bool:
        """Start the command and kill it; return whether it had ended before."""
        self.attempts += 1
        process = self._process = corpus.start(*arguments, **environ)
        wait_for_a_moment(self.chance, process, database.with_name(f"{database.name}-wal"), self._seconds)
        kill(process)
        err = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), err
        self.killed += process.returncode != 0
        return process.returncode == 0

    def end(self) -> None:
        """Kill what still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def storm() -> Iterator[Storm]:
    started = Storm(29)
    yield started
    started.end()


def write_all(docs: Path, names: Callable[[int], str], count: int) -> dict[str, str]:
    files = {f"{number}.md": corpus.document(names(number), sections=2) for number in range(count)}
    docs.mkdir(exist_ok=True)
    corpus.write(docs, files)
    return files


def test_imports_lose_nothing_and_leave_no_vector_that_nobody_deletes(storm: Storm, tmp_path: Path) -> None:
    docs, database, most = tmp_path / "docs", tmp_path / "library.db", 0
    files = write_all(docs, str, 60)
    written = set(files.values())
    storm.run("add", docs, "-n", "docs", "--database", database)
    command = ("import", "-n", "docs", "--mode", "update", "--database", database)
    while not storm.is_over():
        for number in storm.chance.sample(range(40), 20):  # some come back to what they were
            files[f"{number}.md"] = corpus.document(f"{number} {storm.chance.randrange(4)}", sections=2)
        for name in storm.chance.sample([name for name, text in files.items() if int(text.split()[1]) >= 40], 4):
            files[f"moved/{storm.attempts}-{Path(name).name[-9:]}"] = files.pop(name)
        written |= set(files.values())
        corpus.write(docs, files)
        storm.strike(database, *command)
        check_file(database)
        texts = [text for _, text in documents(database)]
        assert set(texts) <= written
        assert sorted(int(text.split()[1]) for text in texts) == list(range(60)), "each document is there once"
        assert orphans(database) == 0
        unused = rows(database, "SELECT count(*) FROM vectors WHERE key NOT IN (SELECT vector_key FROM chunks)")
        most = max(most, int(str(unused[0][0])))
    storm.run(*command)
    check_file(database)
    assert dict(documents(database)) == files
    unused = rows(database, "SELECT count(*) FROM (SELECT key FROM vectors EXCEPT SELECT vector_key FROM chunks)")
    assert unused == [(0,)]
    print(f"\nimport: {storm.killed} kills in {storm.attempts} runs; at most {most} unused vectors, 0 at the end")


def test_moves_lose_nothing(storm: Storm, tmp_path: Path) -> None:
    docs, place, moved = tmp_path / "docs", tmp_path / "0.db", 0
    write_all(docs, str, 60)
    storm.run("add", docs, "-n", "docs", "--database", place)
    whole = [rows(place, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("documents", "chunks", "vectors")]
    storm.run("move", "--to", f"sqlite:{tmp_path / '1.db'}", "--database", place)
    place, number = tmp_path / "1.db", 2
    while not storm.is_over():
        target = tmp_path / f"{number}.db"
        storm.strike(target, "move", "--to", f"sqlite:{target}", "--database", place)
        check_file(place)
        if rows(place, "SELECT 1 FROM meta WHERE key = 'moved'"):
            place.unlink()
            place, number, moved = target, number + 1, moved + 1
            check_file(place)
        tables = [rows(place, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("documents", "chunks", "vectors")]
        assert tables == whole
    storm.run("move", "--to", f"sqlite:{tmp_path / 'last.db'}", "--database", place)
    storm.run("import", "-n", "docs", "--mode", "update", "--database", tmp_path / "last.db")
    check_file(tmp_path / "last.db")
    assert orphans(tmp_path / "last.db") == 0
    print(f"\nmove: {storm.killed} kills in {storm.attempts} runs, of which {moved} arrived")


def test_packs_are_imported_whole_or_not_at_all(storm: Storm, tmp_path: Path) -> None:
    database, packs, wanted = tmp_path / "library.db", [], []
    for version in ("old", "new"):
        docs, source, pack = tmp_path / version, tmp_path / f"{version}.db", tmp_path / f"{version}.bunko"
        wanted.append(sorted(write_all(docs, lambda number, version=version: f"{number} {version}", 60).items()))  # type: ignore[misc]
        storm.run("add", docs, "-n", "docs", "--database", source)
        storm.run("export", "-n", "docs", "-o", pack, "--database", source)
        packs.append(pack)
    storm.run("import-pack", packs[0], "-y", "--database", database)
    current = wanted[0]
    while not storm.is_over():
        other = packs[wanted.index(current) - 1]
        storm.strike(database, "import-pack", other, "-y", "--replace", "--database", database)
        check_file(database)
        current = sorted(documents(database))
        assert current in wanted
    left = orphans(database)
    storm.run("import-pack", packs[1], "-y", "--replace", "--database", database)
    check_file(database)
    assert sorted(documents(database)) == wanted[1]
    assert orphans(database) == 0
    print(f"\npack: {storm.killed} kills in {storm.attempts} runs; {left} orphans before the last import, 0 after it")


def test_crawls_lose_no_page(storm: Storm, tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        f"/{number}": article(f"頁{number}", f"合言葉は鍵{number}番。") for number in range(PAGES)
    }
    finished, library = 0, tmp_path / "library"
    with Site(pages | {"/": article("目次", "", *pages)}) as site:
        environ = {"BUNKO_CRAWL_ALLOWED_HOSTS": site.host, "RAG_CRAWL_DELAY_SEC": "0"}
        command = ("web", "crawl", site.url("/"), "--max-pages", "100", "--library", library)
        storm.run(*command, **environ)
        held: set[str] = set()
        shutil.rmtree(library)
        while not storm.is_over():
            database = library / "library.db"
            has_ended = storm.strike(database, *command, **environ)
            if not database.exists() or not rows(database, "SELECT 1 FROM sqlite_master WHERE name = 'pages'"):
                assert not held
                continue
            check_file(database)
            now_held = {str(url) for (url,) in rows(database, "SELECT url FROM pages WHERE content IS NOT NULL")}
            assert held <= now_held
            held = now_held
            if has_ended:
                assert len(held) == PAGES + 1
                assert rows(database, "SELECT count(*) FROM documents") == [(PAGES + 1,)]
                assert orphans(database) == 0
                shutil.rmtree(library)
                finished, held = finished + 1, set()
        storm.run(*command, **environ)
        assert rows(library / "library.db", "SELECT count(*) FROM pages WHERE state = 'held'") == [(PAGES + 1,)]
        assert rows(library / "library.db", "SELECT count(*) FROM documents") == [(PAGES + 1,)]
        check_file(library / "library.db")
        assert orphans(library / "library.db") == 0
    print(f"\nweb: {storm.killed} kills in {storm.attempts} runs, of which {finished} finished a crawl")
