"""Several processes with one library on a server: changes are seen at once, and whatever is killed, nothing is lost."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from bunko.errors import LibraryError
from bunko.interfaces.cli.commands.search import NOTHING_FOUND_EXIT_CODE
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.library.watch import WatchEvent, watch_library
from bunko.stores.postgres import database as databases
from bunko.types import Tool
from bunko.types.records import DatabaseServer
from tests.scale.postgres_server import PostgresServer, environment
from tests.slow import corpus

pytestmark = pytest.mark.scale

# How long everything is killed at random; longer runs are for those who change how connections are kept.
CHAOS_SECONDS = float(os.environ.get("BUNKO_TEST_CHAOS_SECONDS", "15"))
NAMES = [f"{number % 7}/{number}.md" for number in range(80)]
VERSIONS = {name: [corpus.document(f"{name} {version}") for version in range(3)] for name in NAMES}
QUERIES = ("京都の寺", "recovery signal", "server 索引")


def open_machine(server: DatabaseServer, folder: Path, **more: str) -> Library:
    """Open the library as a machine would, with a folder of its own."""
    return open_library(paths_for_folder(folder), environ=environment(server) | more)


def documents(library: Library, tool: Tool) -> corpus.Files:
    """Return the text of each document."""
    store = library.store
    stored = {uri: store.documents.get(tool.id, uri) for uri in store.documents.fingerprints(tool.id)}
    return {uri: document.text for uri, document in stored.items() if document is not None}


def answers(library: Library) -> list[tuple[str, int, float]]:
    return [
        (hit.uri, hit.chunk.index, round(hit.score, 6))
        for query in QUERIES
        for hit in library.search(query, top_k=20, refresh=False).hits
    ]


def test_a_search_sees_what_another_process_has_just_imported(
    server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    corpus.write(docs, {name: VERSIONS[name][0] for name in NAMES[:20]})
    place = ("--library", tmp_path / "importing")
    with open_machine(server, tmp_path / "searching") as library:
        library.add(docs, name="docs")
        imported = corpus.run("import", "-n", "docs", *place, **environment(server))
        assert imported.returncode == 0, imported.stderr
        assert library.search("京都の寺", top_k=50, refresh=False).hits
        (docs / "late.md").write_text("# 遅れた文書\n\n宇治の抹茶について、とても詳しく書いてある。", encoding="utf-8")
        library.store.wait_for_change(0)
        imported = corpus.run("import", "-n", "docs", "--mode", "update", *place, **environment(server))
        assert imported.returncode == 0, imported.stderr
        assert library.store.wait_for_change(1)
        assert library.search("宇治の抹茶", refresh=False).hits[0].uri == "late.md"
        (docs / "late.md").unlink()
        assert corpus.run("import", "-n", "docs", "--mode", "update", *place, **environment(server)).returncode == 0
        assert "late.md" not in {hit.uri for hit in library.search("宇治の抹茶", refresh=False).hits}


def test_several_machines_import_their_tools_and_each_finds_all_of_them(server: DatabaseServer, tmp_path: Path) -> None:
    folders = [tmp_path / f"docs {number}" for number in range(3)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        corpus.write(folder, {name: VERSIONS[name][number] for name in NAMES[:30]})
    with open_machine(server, tmp_path / "machine") as library:
        for number, folder in enumerate(folders):
            library.add(folder, name=f"docs{number}")
        processes = [
            corpus.start(
                "import", "-n", f"docs{number}", "--library", tmp_path / f"machine {number}", **environment(server)
            )
            for number in range(3)
        ]
        for process in processes:
            _, errors = process.communicate(timeout=corpus.PATIENCE)
            assert process.returncode == 0, errors
        for number, tool in enumerate(library.tools()):
            assert documents(library, tool) == {name: VERSIONS[name][number] for name in NAMES[:30]}
        assert {hit.tool for hit in library.search("京都の寺", top_k=100, refresh=False).hits} == {
            "docs0", "docs1", "docs2",
        }  # fmt: skip


def test_only_the_machine_that_imported_a_tool_imports_its_changes_by_itself(
    server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    """The same path is another folder on another machine: a search there must not replace the documents."""
    corpus.write(docs, {"a.md": VERSIONS[NAMES[0]][0]})
    at_once = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    with (
        open_machine(server, tmp_path / "first", **at_once) as first,
        open_machine(server, tmp_path / "second", **at_once) as second,
    ):
        tool = first.add(docs, name="docs")
        assert second.search("京都の寺").hits == []
        assert second.reindex().added == 0
        first.import_("docs")
        corpus.write(docs, {"b.md": VERSIONS[NAMES[1]][0]})
        answer = second.search("京都の寺")
        assert {hit.uri for hit in answer.hits} <= {"a.md"}
        assert answer.notices == []
        assert second.local_tools() == []
        assert documents(second, tool).keys() == {"a.md"}
        first.search("京都の寺")
        assert documents(second, tool).keys() == {"b.md"}
        # An import that is asked for moves the tool to the machine that it is asked on.
        corpus.write(docs, {"c.md": VERSIONS[NAMES[2]][0]})
        assert second.import_("docs").added == 1
        corpus.write(docs, {"d.md": VERSIONS[NAMES[3]][0]})
        first.search("京都の寺")
        assert documents(first, tool).keys() == {"c.md"}
        assert [local.name for local in second.local_tools()] == ["docs"]


def test_a_tool_of_another_machine_is_not_called_missing_where_its_folder_is_not(
    server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    corpus.write(docs, {"a.md": VERSIONS[NAMES[0]][0]})
    with open_machine(server, tmp_path / "first") as first, open_machine(server, tmp_path / "second") as second:
        first.add(docs, name="docs")
        first.import_("docs")
        docs.rename(tmp_path / "elsewhere")
        assert [status.source_state for status in first.status().tools] == ["missing"]
        assert [status.source_state for status in second.status().tools] == ["elsewhere"]
        assert second.tool_status("docs").changes is None
        assert not [finding for finding in second.maintenance.diagnose() if finding.state != "ok"]
        (notice,) = second.reindex().notices
        assert notice.startswith("Other machines import the tools of this library, and this one none")
        assert "bunko import -n NAME --mode update" in notice


def test_a_watch_outlives_a_restart_of_the_server(
    postgres: PostgresServer, server: DatabaseServer, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "READ_RETRY_SECONDS", 0.1)

    def open_watched() -> Library:
        return open_machine(server, tmp_path / "watching")

    with open_machine(server, tmp_path / "searching") as library:
        with open_watched() as watched:
            watched.add(docs, name="docs")
        events: list[WatchEvent] = []
        stop = threading.Event()
        watching = threading.Thread(
            target=watch_library, args=(open_watched, events.append, stop), kwargs={"poll": 0.1}
        )
        watching.start()
        try:
            corpus.wait_until(lambda: bool(events), "the watch has begun")
            postgres.stop()
            corpus.wait_until(lambda: any("has disappeared" in event.message for event in events), "it noticed")
            corpus.write(docs, {"a.md": VERSIONS[NAMES[0]][0]})
            postgres.start()
            corpus.wait_until(lambda: any(event.kind == "imported" for event in events), "it imports again")
        finally:
            stop.set()
            watching.join(corpus.PATIENCE)
        assert any(event.kind == "recovered" for event in events)
        assert {hit.uri for hit in library.search("京都の寺", refresh=False).hits} <= {"a.md"}
        assert documents(library, library.tools()[0]).keys() == {"a.md"}


class Searching(threading.Thread):
    """Searches all the time, and checks that every hit is a part of a document that somebody once wrote."""

    def __init__(self, library: Library) -> None:
        super().__init__(daemon=True)
        self._library = library
        self.finished = threading.Event()
        self.problems: list[str] = []
        self.searches = self.failures = 0

    def run(self) -> None:
        while not self.finished.is_set():
            try:
                hits = self._library.search(random.choice(QUERIES), top_k=20, refresh=False).hits
            except LibraryError as error:  # the server was killed: a sentence, and the next search works again
                self.failures += 1
                if not error.hint or "postgresql:" not in error.message:
                    self.problems.append(str(error))
                continue
            except Exception as error:
                self.problems.append(repr(error))
                return
            self.searches += 1
            for hit in hits:
                if not any(hit.chunk.text.strip() in text for text in VERSIONS[hit.uri]):
                    self.problems.append(f"{hit.uri} has a text that nobody wrote")


def test_nothing_is_lost_or_half_visible_when_importers_searches_and_the_server_are_killed(
    postgres: PostgresServer, server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    chance = random.Random(17)
    place = ("--library", tmp_path / "importing")
    end = time.monotonic() + CHAOS_SECONDS
    with open_machine(server, tmp_path / "searching") as library:
        tool = library.add(docs, name="docs")
        searching = Searching(library)
        searching.start()
        while time.monotonic() < end:
            files = {name: chance.choice(VERSIONS[name]) for name in NAMES if chance.random() < 0.9}
            corpus.write(docs, files)
            mode = chance.choice(["update", "update", "replace"])
            importer = corpus.start("import", "-n", "docs", "--mode", mode, *place, **environment(server))
            search = corpus.start("search", "京都の寺", "--no-refresh", *place, **environment(server))
            time.sleep(chance.uniform(0.3, 1.5))
            victim = chance.choice(["importer", "server", "both", "search", "nobody"])
            if victim in ("importer", "both"):
                importer.kill()
            if victim == "search":
                search.kill()
            if victim in ("server", "both"):
                postgres.kill()
                postgres.start()
            check_ended(importer, killed=victim in ("importer", "both"))
            check_ended(search, killed=victim == "search", ends_well=(0, NOTHING_FOUND_EXIT_CODE))
        searching.finished.set()
        searching.join(corpus.PATIENCE)
        assert searching.problems == []
        assert searching.searches
        corpus.write(docs, files)
        done = corpus.run("import", "-n", "docs", "--mode", "update", *place, **environment(server))
        assert done.returncode == 0, done.stderr
        assert documents(library, tool) == files
        assert [finding for finding in library.maintenance.diagnose() if finding.state == "error"] == []
        scratch = open_library(paths_for_folder(tmp_path / "scratch"), environ={})
        with scratch:
            scratch.add(docs, name="docs")
            scratch.import_("docs")
            assert answers(library) == answers(scratch)
        # The other machine, whose processes were killed, has an index of its own.
        with open_machine(server, tmp_path / "importing") as importing:
            assert answers(importing) == answers(library)


def check_ended(process: subprocess.Popen[str], *, killed: bool, ends_well: tuple[int, ...] = (0,)) -> None:
    """Wait for a process; one that was not killed ends well, or with one sentence and no traceback."""
    _, errors = process.communicate(timeout=2 * corpus.PATIENCE)
    if not killed and process.returncode not in ends_well:
        assert "Traceback" not in errors, errors
        assert "Error: " in errors
