"""A library in PostgreSQL with an index on a server: whatever is killed, nothing is lost or half visible."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from bunko.errors import IndexFailure, LibraryError
from bunko.indexes import replica
from bunko.interfaces.cli.commands.search import NOTHING_FOUND_EXIT_CODE
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.types import Hit
from tests.scale import test_chroma, test_milvus
from tests.scale.engines import chroma_server, milvus_server
from tests.scale.postgres_server import PostgresServer, environment
from tests.scale.test_postgres_processes import NAMES, QUERIES, VERSIONS, check_ended, documents, open_machine
from tests.slow import corpus

pytestmark = pytest.mark.scale

# How long everything is killed at random; longer runs are for those who change how copies follow a library.
CHAOS_SECONDS = float(os.environ.get("BUNKO_TEST_CHAOS_SECONDS", "25"))
VICTIMS = ("importer", "search", "postgres", "engine", "importer and engine", "postgres and engine", "nobody")


# What errors say while servers are killed.
AWAY = ("postgresql:", "Milvus", "Chroma")
# Documents that change and are always there.
LASTING = {
    f"lasting/{number}.md": [corpus.document(f"{number} {version}") + f"\n宇治の抹茶 L{number}" for version in range(3)]
    for number in range(5)
}
ALL_VERSIONS = VERSIONS | LASTING


class Searching(threading.Thread):
    """Searches all the time; each answer shows one version of each document, and every failure is a sentence."""

    def __init__(self, library: Library) -> None:
        super().__init__(daemon=True)
        self._library = library
        self.finished = threading.Event()
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        while not self.finished.is_set():
            query = random.choice((*QUERIES, "宇治の抹茶"))
            try:
                hits = self._library.search(query, top_k=50, refresh=False).hits
            except (LibraryError, IndexFailure) as error:  # a server was killed, and the next search may work again
                self.counts["failed"] += 1
                if not error.hint or not any(part in error.message for part in AWAY):
                    self.problems.append(str(error))
                self.finished.wait(0.05)
                continue
            except Exception as error:
                self.problems.append(repr(error))
                return
            self.counts["answered" if hits else "empty"] += 1
            self.problems += mixed_versions(hits)
            if query not in QUERIES:
                missing = LASTING.keys() - {hit.uri for hit in hits}
                self.problems += [f"{uri} was not found" for uri in missing]


def mixed_versions(hits: list[Hit]) -> list[str]:
    """Return which documents do not show one version that somebody once wrote."""
    texts = defaultdict(list)
    for hit in hits:
        texts[hit.uri].append(hit.chunk.text.strip())
    return [
        f"{uri} has chunks that were never together"
        for uri, chunks in texts.items()
        if not any(all(chunk in version for chunk in chunks) for version in ALL_VERSIONS[uri])
    ]


def scores(library: Library) -> list[float]:
    return [hit.score for query in QUERIES for hit in library.search(query, top_k=20, refresh=False).hits]


@pytest.mark.parametrize("kind", ["chroma", "milvus"])
def test_nothing_is_lost_or_half_visible_whatever_is_killed(
    postgres: PostgresServer, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    chance = random.Random(23)
    monkeypatch.setattr(replica, "PAUSE_SECONDS", 0.2)
    database, place = postgres.new_library(), ("--library", tmp_path / "importing")
    with (chroma_server if kind == "chroma" else milvus_server)(tmp_path / "engine") as engine:
        url = f"http://127.0.0.1:{engine.port}"
        index = {"BUNKO_INDEX_KIND": kind, "CHROMADB_URL" if kind == "chroma" else "BUNKO_MILVUS_URI": url}
        sections = "CHROMADB", "MILVUS"
        limits = {f"BUNKO_{section}_{name}": "10" for section in sections for name in ("TIMEOUT", "WRITE_TIMEOUT")}
        limits["BUNKO_MILVUS_RETRIES"] = "1"
        settings = environment(database) | index | limits
        with open_machine(database, tmp_path / "searching", **index, **limits) as library:
            tool = library.add(docs, name="docs")
            files = {name: versions[0] for name, versions in ALL_VERSIONS.items()}
            corpus.write(docs, files)
            first = corpus.run("import", "-n", "docs", *place, **settings)
            assert first.returncode == 0, first.stderr
            searching = Searching(library)
            searching.start()
            killed: Counter[str] = Counter()
            end = time.monotonic() + CHAOS_SECONDS
            while time.monotonic() < end:
                files = {name: chance.choice(VERSIONS[name]) for name in NAMES if chance.random() < 0.9}
                files |= {name: chance.choice(versions) for name, versions in LASTING.items()}
                corpus.write(docs, files)
                mode = chance.choice(["update", "update", "replace"])
                importer = corpus.start("import", "-n", "docs", "--mode", mode, *place, **settings)
                search = corpus.start("search", "京都の寺", "--no-refresh", *place, **settings)
                time.sleep(chance.uniform(0.3, 3.0))
                victim = chance.choice(VICTIMS)
                killed[victim] += 1
                if "importer" in victim:
                    importer.kill()
                if victim == "search":
                    search.kill()
                if "engine" in victim:
                    engine.kill()
                if "postgres" in victim:
                    postgres.kill()
                    postgres.start()
                if "engine" in victim:
                    time.sleep(chance.uniform(0.0, 1.0))
                    engine.start()
                check_ended(importer, killed="importer" in victim)
                check_ended(search, killed=victim == "search", ends_well=(0, NOTHING_FOUND_EXIT_CODE))
            searching.finished.set()
            searching.join(corpus.PATIENCE)
            print(f"killed {dict(killed)}, searches {dict(searching.counts)}")
            assert searching.problems == []
            assert searching.counts["answered"]
            done = corpus.run("import", "-n", "docs", "--mode", "update", *place, **settings)
            assert done.returncode == 0, done.stderr
            assert documents(library, tool) == files
            if kind == "chroma":
                test_chroma.assert_in_step(library, test_chroma.server_place(engine))
            else:
                test_milvus.assert_in_step(library, index)
            findings = library.maintenance.diagnose()
            assert [finding for finding in findings if finding.state == "error"] == []
            with open_library(paths_for_folder(tmp_path / "scratch"), environ={}) as scratch:
                scratch.add(docs, name="docs")
                scratch.import_("docs")
                assert scores(library) == pytest.approx(scores(scratch), abs=1.01e-4)
