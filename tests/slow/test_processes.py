"""Many processes over one library: some import, many search, and every answer is true."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from filelock import FileLock

from bunko.protocols import Look
from bunko.sources.folder import Folder
from bunko.sources.walk import ignore_folder
from bunko.types import Mode
from tests.slow import corpus
from tests.slow.corpus import Files

pytestmark = pytest.mark.slow

DOCUMENTS = 30
SEARCHERS = 10
ROUNDS = 6
SEARCH_MODES: tuple[Mode, ...] = ("bm25", "hybrid", "semantic")
MOST_SEARCHES = 1000  # for each searcher, should the imports never end
_VERSION = re.compile(r"第(\d+)版")


def version(number: int, version: int) -> str:
    """Return one document in one version; every chunk tells which."""
    return "".join(
        f"## 文書{number}の第{version}版、{part}\n\n"
        f"京都の寺の庭 {number}-{version}-{part} を訪ねた日の長い記録、{'続き、' * 20}\n\n"
        for part in ("前編", "後編")
    )


def files_of(round: int) -> Files:
    """Return the folder of a round: every document in a new version, and a third of them away."""
    return {f"{n}.md": version(n, round) for n in range(DOCUMENTS) if (n + round) % 3}


class Clock:
    """Rounds that have begun to be written and that were imported to the end, for all processes to see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set(self, name: str, round: int) -> None:
        """Move on to a round; a file is replaced whole, so nobody reads half a number."""
        fresh = self._folder / f"{name}.fresh"
        fresh.write_text(str(round), encoding="utf-8")
        fresh.replace(self._folder / name)

    def get(self, name: str) -> int:
        """Return the round that was set last."""
        return int((self._folder / name).read_text(encoding="utf-8"))


def search_again_and_again(docs: Path, folder: Path, *, refresh: bool, read_only: bool, number: int) -> int:
    """Search until the last round is imported, now in one opened library and now in a new one; count what was found."""
    clock = Clock(folder)
    checked = 0
    library = corpus.opened(docs, read_only=read_only)
    try:
        for search in range(MOST_SEARCHES):
            if search % 8 == number % 8:
                library.close()
                library = corpus.opened(docs, read_only=read_only)
            imported = clock.get("imported")
            if imported == ROUNDS:
                break
            mode = SEARCH_MODES[search % 3]
            answer = library.search("京都の寺の庭を訪ねた日", mode=mode, top_k=200, refresh=refresh)
            begun = clock.get("begun")
            versions = set()
            for hit in answer.hits:
                told = _VERSION.search(hit.chunk.text)
                assert told, hit.chunk.text
                round = int(told[1])
                versions.add(round)
                text = files_of(round)[hit.uri]
                assert hit.chunk.text.strip() in text
                assert hit.content_hash == hashlib.sha256(text.encode()).hexdigest()
                assert imported <= round <= begun, f"{hit.uri} of round {round} found in round {imported} to {begun}"
            checked += len(answer.hits)
            if not refresh:
                # Nobody absorbs half-written rounds, so an answer is one round as a whole; but what the next
                # round has no more leaves first, in a transaction of its own.
                assert len(versions) == 1, versions
                now, next = files_of(min(versions)).keys(), files_of(min(versions) + 1).keys()
                assert {hit.uri for hit in answer.hits} in (now, now & next)
    finally:
        library.close()
    return checked


def import_rounds(docs: Path, clock: Clock, rounds: Iterable[int]) -> None:
    for round in rounds:
        clock.set("begun", round)
        corpus.write(docs, files_of(round))
        done = corpus.run("reindex", "--docs-dir", docs)
        assert done.returncode == 0, done.stderr
        clock.set("imported", round)


@pytest.mark.parametrize("refresh", [True, False], ids=["absorbing changes", "only reading"])
def test_ten_processes_search_while_one_imports_and_every_answer_is_true(tmp_path: Path, refresh: bool) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    clock = Clock(tmp_path)
    import_rounds(docs, clock, [0])
    with ProcessPoolExecutor(SEARCHERS, mp_context=get_context("spawn")) as pool:
        searchers = [
            pool.submit(
                search_again_and_again,
                docs,
                tmp_path,
                refresh=refresh,
                read_only=not refresh and number % 2 == 0,
                number=number,
            )
            for number in range(SEARCHERS)
        ]
        import_rounds(docs, clock, range(1, ROUNDS + 1))
        assert all(searcher.result() > 0 for searcher in searchers)
    with corpus.opened(docs) as library:
        assert library.store.check() == ""
        library.reindex()
        assert corpus.stored(library) == files_of(ROUNDS)


def test_ten_processes_that_make_the_first_search_at_once_all_answer_and_leave_a_whole_library(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    corpus.write(docs, files_of(1))
    for attempt in range(3):
        data = tmp_path / f"data{attempt}"
        started = [
            corpus.start("search", "京都の寺", "--docs-dir", docs, "--data-dir", data, "--json")
            for _ in range(SEARCHERS)
        ]
        answers = [(*process.communicate(timeout=corpus.PATIENCE), process.returncode) for process in started]
        for out, err, code in answers:
            assert code == 0, err
            assert "Traceback" not in err
            found = json.loads(out)
            assert found["results"] or found["freshness"]["missing"]
        assert any(json.loads(out)["results"] for out, _, _ in answers)
        with corpus.opened(docs, data=data) as library:
            assert library.store.check() == ""
            assert len(library.tools()) == 1
            library.reindex()
            assert corpus.stored(library) == files_of(1)


def test_a_second_import_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    corpus.write(docs, files_of(1))
    assert corpus.run("reindex", "--docs-dir", docs).returncode == 0
    corpus.write(docs, files_of(2))
    lock = FileLock(docs / ".rag-index" / "library.db.lock")
    with lock, corpus.start("reindex", "--docs-dir", docs) as second:
        try:
            assert second.stderr is not None
            told = second.stderr.readline()
            assert "Another process is importing" in told
            assert "waiting" in told
            reader = corpus.run(
                "search", "京都の寺", "--docs-dir", docs, "--json", BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="0.1"
            )
            assert reader.returncode == 0, reader.stderr
            assert {hit["file_path"] for hit in json.loads(reader.stdout)["results"]} <= files_of(1).keys()
            assert "results come from the existing index" in reader.stderr
            assert second.poll() is None
        finally:
            lock.release()  # or the end of the block would wait for a process that waits for us
        out, err = second.communicate(timeout=corpus.PATIENCE)
    assert second.returncode == 0, err
    assert re.match(r"\d+ added, \d+ updated", out)


def test_two_imports_started_at_once_both_end_well(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    files = {f"{n}.md": corpus.document(f"{n}") for n in range(300)}
    corpus.write(docs, files)
    both = [corpus.start("reindex", "--docs-dir", docs, "--json") for _ in range(2)]
    reports = []
    for process in both:
        out, err = process.communicate(timeout=corpus.PATIENCE)
        assert process.returncode == 0, err
        reports.append(json.loads(out))
    assert sorted(report["added"] for report in reports) == [0, 300]
    assert sorted(report["unchanged"] for report in reports) == [0, 300]
    with corpus.opened(docs) as library:
        assert library.store.check() == ""
        assert corpus.stored(library) == files


def test_a_search_that_looked_before_another_import_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    corpus.write(docs, files_of(1))
    with corpus.opened(docs) as library:
        library.reindex()
        away = docs / "1.md"
        text = away.read_text(encoding="utf-8")
        away.unlink()
        look = Folder.look

        def look_and_be_overtaken(self: Folder, on_folder: Callable[[str], None] = ignore_folder) -> Look:
            found = look(self, on_folder)
            monkeypatch.setattr(Folder, "look", look)
            assert corpus.run("reindex", "--docs-dir", docs).returncode == 0
            away.write_text(text, encoding="utf-8")
            assert corpus.run("reindex", "--docs-dir", docs).returncode == 0
            return found

        monkeypatch.setattr(Folder, "look", look_and_be_overtaken)
        answer = library.search("京都の寺", top_k=200)
        assert "1.md" in {hit.uri for hit in answer.hits}
        assert corpus.stored(library) == files_of(1)


def test_a_process_that_searches_keeps_answering_when_the_derived_files_are_replaced_under_it(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    files = {f"{n}.md": corpus.document(f"{n}") for n in range(150)}
    corpus.write(docs, files)
    with corpus.opened(docs) as library:
        library.reindex()
        before = corpus.contents(library)
        for path in (docs / ".rag-index" / "index").iterdir():
            path.unlink()
        assert corpus.contents(library) == before
        corpus.write(docs, {name: f"{text}\n追伸。" for name, text in files.items()})
        assert corpus.run("reindex", "--docs-dir", docs).returncode == 0
        hits = library.search("追伸", top_k=200, refresh=False).hits
    assert {hit.uri for hit in hits} == files.keys()
