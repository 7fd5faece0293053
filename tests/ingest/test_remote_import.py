"""Imports through a remote embedder: full requests, nothing paid for twice, and what it took is remembered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.embedders import openai
from bunko.errors import EmbedderError
from bunko.ingest.embed import embed_batches
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.library.packs.pack import open_pack
from bunko.protocols import Store
from bunko.runtime.observer import Observer
from bunko.stores import memory, sqlite
from bunko.types import Text, Tool
from bunko.types.records import EmbeddingUsage, PreparedDocument
from tests.conftest import Opener, Run
from tests.contracts.documents import prepared
from tests.loopback import Asked, Loopback, Reply, openai_error


def remote(service: Loopback, **more: str) -> dict[str, str]:
    return {
        "EMBEDDING_PROVIDER": "local",
        "LMSTUDIO_BASE_URL": f"{service.address}/v1",
        "BUNKO_RETRY_MAX_RETRIES": "0",
    } | more


def write(docs: Path, files: int, sections: int = 1, first: int = 0) -> None:
    for number in range(first, first + files):
        body = "".join(
            f"## Part {part}\n\nNumber {number} in part {part} {'all about it ' * 6}.\n\n" for part in range(sections)
        )
        (docs / f"{number:04}.md").write_text(f"# Page {number}\n\n{body}", encoding="utf-8")


def documents(service: Loopback) -> list[str]:
    return [text for text in service.texts() if text.startswith(openai.DOCUMENT_PREFIX)]


def failing_after(service: Loopback, number: int) -> None:
    """Let the service answer so many requests, and then refuse all."""
    left = threading.Semaphore(number)
    service.always = lambda _: None if left.acquire(blocking=False) else openai_error(500, "out of order")


# How often it is asked


@pytest.mark.parametrize(("files", "sections"), [(100, 7), (100, 1), (30, 1), (250, 3)])
def test_requests_are_full(files: int, sections: int, service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, files, sections)
    report = open_docs(**remote(service)).reindex()
    assert report.embedded == report.total_chunks >= files * sections
    assert len(service.asked) == -(-report.total_chunks // 100)
    assert sorted(documents(service)) == sorted(set(documents(service)))


def test_nothing_is_asked_for_where_nothing_changed(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 20)
    library = open_docs(**remote(service))
    library.reindex()
    before = len(service.asked)
    assert library.reindex().embedded == 0
    assert len(service.asked) == before


def test_a_text_that_many_documents_share_is_paid_for_once(service: Loopback, docs: Path, open_docs: Opener) -> None:
    for number in range(450):  # more than one transaction, and more texts than are handed over at once
        (docs / f"{number}.md").write_text("# Same\n\nThe same words everywhere.\n", encoding="utf-8")
    report = open_docs(**remote(service)).reindex()
    assert (report.total_chunks, report.embedded) == (450, 1)
    assert len(documents(service)) == 1


@pytest.mark.slow
def test_requests_fly_while_the_next_documents_are_cut(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 900)
    together = threading.Barrier(4)
    early = threading.Semaphore(4)

    def wait(_: Asked) -> None:
        if early.acquire(blocking=False):
            together.wait(timeout=30)  # passes only if four requests are here at once

    service.always = wait
    assert open_docs(**remote(service)).reindex().embedded == 900
    assert not together.broken


def test_documents_do_not_wait_without_end_for_a_request_to_be_full(service: Loopback) -> None:
    embedder = openai.build("lmstudio", base_url=service.address)
    store = memory.build()
    tool = store.tools.put(Tool("docs"))
    pulled = 0

    def batches() -> Iterator[tuple[int, list[PreparedDocument]]]:
        nonlocal pulled
        for number in range(200):
            pulled += 1
            yield number, [prepared(f"{number}.md", f"text {number}")]

    for number, one in enumerate(embed_batches(store, embedder, batches(), owner_id=tool.id)):
        assert (one.batch, one.documents[0].document.uri) == (number, f"{number}.md")
        assert pulled - number < 150, "memory is for a few of them"
        store.documents.write(tool.id, upsert=one.documents, vectors=one.vectors, usage=one.usage)
    totals = store.stats.totals(tool.id)
    assert (totals.documents, totals.vectors) == (200, 200)
    assert len(service.asked) < 20


# What is kept when it fails


@pytest.mark.slow
def test_what_came_before_a_failure_is_not_paid_for_again(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 120, sections=10)
    library = open_docs(**remote(service))
    failing_after(service, 5)
    report = library.reindex()
    assert report.added == 120, "all of them are found by their words"
    assert ["out of order" in notice for notice in report.notices] == [True]
    library.close()
    service.always = lambda _: None
    service.asked.clear()
    library = open_docs(**remote(service))
    report = library.reindex()
    assert report.total_chunks == 1200
    assert report.embedded <= 700
    assert len(documents(service)) == 700, "five requests of a hundred were answered, and every text is wanted"
    assert len(service.asked) <= 7 + 1
    assert library.reindex().embedded == 0


@pytest.mark.slow
def test_a_sweep_between_two_attempts_throws_nothing_away(service: Loopback, docs: Path, tmp_path: Path) -> None:
    write(docs, 120, sections=10)
    other = tmp_path / "other"
    other.mkdir()
    write(other, 3, first=5000)
    environ = remote(service)
    with open_library(paths_for_folder(tmp_path / "library"), environ=environ) as library:
        for name, place in (("docs", docs), ("other", other)):
            library.store.tools.put(Tool(name, source=str(place)))
        library.import_tools(["other"])
        service.asked.clear()
        failing_after(service, 5)
        with pytest.raises(EmbedderError):
            library.import_tools(["docs"], "replace")
        service.always = lambda _: None
        library.delete_tool("other")  # forgets vectors that no chunk has
        service.asked.clear()
        library.import_tools(["docs"], "replace")
        assert len(documents(service)) == 700
        held = library.store.stats.totals(library.resolve_tool("docs").id)
        assert held.vectors == held.chunks == 1200


def test_what_was_kept_and_is_wanted_no_more_is_forgotten(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 120, sections=10)
    library = open_docs(**remote(service))
    failing_after(service, 5)
    library.reindex()
    service.always = lambda _: None
    for path in docs.glob("*.md"):
        path.unlink()
    write(docs, 2, first=7000)
    library.reindex(rebuild=True)
    rows = library.store._database.rows("SELECT count(*) FROM vectors")  # type: ignore[attr-defined]
    assert rows == [(2,)]


@pytest.mark.slow
def test_ctrl_c_keeps_what_came(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 500)
    library = open_docs(**remote(service))

    def interrupt(_: object) -> None:
        if documents(service):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.reindex(observer=Observer(on_progress=interrupt))
    assert documents(service)
    service.asked.clear()
    library.reindex()
    assert len(documents(service)) <= 400
    assert library.store.stats.totals(library.resolve_tool(None).id).vectors == 500


@pytest.mark.slow
def test_whoever_presses_ctrl_c_does_not_wait_for_a_service_that_hangs(
    service: Loopback, docs: Path, tmp_path: Path
) -> None:
    write(docs, 800)
    answered = threading.Semaphore(6)
    hung = threading.Semaphore(0)

    def hang(_: Asked) -> None:
        if not answered.acquire(blocking=False):
            hung.release()
            service.released.wait(300)

    service.always = hang
    command = [sys.executable, "-m", "bunko", "reindex", "--docs-dir", str(docs)]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} | remote(service)
    ran = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert hung.acquire(timeout=60)
        assert hung.acquire(timeout=60)  # two of the second four; what came of these is not lost either
        ran.send_signal(signal.SIGINT)
        _, told = ran.communicate(timeout=40)  # nobody lets the service go on meanwhile
    finally:
        ran.kill()
        ran.wait()
    assert ran.returncode == 130
    assert "Interrupted" in told
    service.released.set()
    service.always = lambda _: None
    service.asked.clear()
    assert subprocess.run(command, env=environ, capture_output=True).returncode == 0
    assert len(documents(service)) == 200, f"six requests of a hundred were answered before: {told}"


def test_texts_that_are_given_are_kept_too(service: Loopback, tmp_path: Path) -> None:
    library = open_library(paths_for_folder(tmp_path / "library"), environ=remote(service))
    texts = {f"{number}": Text(f"About {number}", "text/plain", "utf-8") for number in range(600)}
    tool = Tool("given", "given")
    failing_after(service, 3)
    with pytest.raises(EmbedderError):
        library.replace_texts(tool, texts)
    service.always = lambda _: None
    service.asked.clear()
    assert library.replace_texts(tool, texts).total_chunks == 600
    assert len(documents(service)) == 300
    library.close()


@pytest.mark.slow
def test_a_pack_whose_texts_are_embedded_here_is_gone_on_with_and_counted(
    service: Loopback, docs: Path, open_docs: Opener, tmp_path: Path
) -> None:
    write(docs, 600)
    home = open_docs()
    home.reindex()
    _, path, _ = home.packs.export_tool(None, tmp_path / "docs.bunko")
    with open_library(paths_for_folder(tmp_path / "library"), environ=remote(service)) as library:
        failing_after(service, 4)
        with open_pack(path) as packed, pytest.raises(EmbedderError):
            library.packs.import_pack(packed)
        assert library.tools() == []
        before = len(documents(service))
        service.always = lambda _: None
        service.asked.clear()
        with open_pack(path) as packed:
            library.packs.import_pack(packed)
        assert len(documents(service)) <= 300 < before
        assert spent(library).texts == 600
        assert spent(library).calls == 6


def test_texts_too_long_for_the_model_are_told_of_in_the_report(
    service: Loopback, docs: Path, open_docs: Opener
) -> None:
    (docs / "long.md").write_text("# Long\n\n" + "猫である。" * 400, encoding="utf-8")
    (docs / "short.md").write_text("# Short\n\nA few words.\n", encoding="utf-8")
    report = open_docs(**remote(service, BUNKO_EMBEDDING_MAX_TOKENS="500")).reindex()
    assert [one for one in report.notices if "too long for lmstudio nomic-embed-text" in one] == report.notices
    assert len(report.notices) == 1


@pytest.mark.parametrize("command", ["add", "import"])
def test_a_command_ends_with_a_check_and_one_that_cannot_be_made_is_a_notice_and_no_failure(
    command: str, service: Loopback, docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(docs, 10)

    def refuse_questions(asked: Asked) -> Reply | None:
        return openai_error(500, "tired") if asked.texts[0].startswith(openai.QUERY_PREFIX) else None

    service.always = refuse_questions
    for name, value in remote(service).items():
        monkeypatch.setenv(name, value)
    if command == "add":
        ran = run("add", docs, "--verbose")
    else:
        run("tool", "add", "-n", "docs", "-s", docs, "-d", "Pages")
        ran = run("import", "-n", "docs", "--verbose")
    assert ran.code == 0
    problems = [line for line in ran.err.splitlines() if "not checked" in line]
    assert ["tired" in line for line in problems] == [True]
    before, _, after = ran.err.partition("Checking that searches find the texts of docs")
    assert "bm25_query" in after, "the searches of the check are told apart from the import"
    assert "bm25_query" not in before


@pytest.mark.parametrize("command", ["reindex", "search"])
def test_an_import_alone_asks_no_questions(
    command: str, service: Loopback, docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(docs, 10)
    for name, value in remote(service).items():
        monkeypatch.setenv(name, value)
    words = ["page", "--mode", "bm25"] if command == "search" else []
    assert run(command, *words, "--docs-dir", docs).code == 0
    assert [text for text in service.texts() if text.startswith(openai.QUERY_PREFIX)] == []


# What is remembered of it


def spent(library: Library) -> EmbeddingUsage:
    (found,) = library.status().embedding_usage.values()
    return found


def test_a_library_remembers_what_was_spent_and_saved(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 250)
    library = open_docs(**remote(service))
    library.reindex()
    assert spent(library) == EmbeddingUsage(250, 3, 0, 0)
    library.reindex(rebuild=True)
    assert len(service.asked) == 3, "all vectors were known"
    assert spent(library) == EmbeddingUsage(250, 3, 250, 3)
    library.maintenance.search_problems(["documents"])
    assert len(service.asked) == 3 + 1, "a check asks its questions"
    assert spent(library) == EmbeddingUsage(250, 3 + 1, 250, 3)
    assert list(library.status().embedding_usage) == [library.embedder().name]  # type: ignore[union-attr]


def test_failed_calls_count_and_so_do_their_texts_that_came(service: Loopback, docs: Path, open_docs: Opener) -> None:
    write(docs, 120, sections=10)
    library = open_docs(**remote(service))
    failing_after(service, 5)
    library.reindex()
    found = spent(library)
    assert (found.texts, found.calls) == (500, len(service.asked))


def test_status_shows_it_in_words_and_in_json(docs: Path, run: Run) -> None:
    write(docs, 3)
    assert run("reindex", "--docs-dir", docs).code == 0
    assert run("reindex", "--force", "--docs-dir", docs).code == 0
    (told,) = [line for line in run("status", "--docs-dir", docs).out.splitlines() if line.startswith("embedder ")]
    assert told.endswith("3 texts embedded in 1 call; 3 texts reused, 1 call saved")
    shown = json.loads(run("status", "--json", "--docs-dir", docs).out)["embedders"]
    assert list(shown.values()) == [{"texts": 3, "calls": 1, "saved_texts": 3, "saved_calls": 1}]


def test_a_model_of_unknown_size_is_asked_for_it_by_the_first_import_alone(
    service: Loopback, docs: Path, open_docs: Opener
) -> None:
    service.size = 12
    write(docs, 5)
    environ = remote(service, EMBEDDING_MODEL_LOCAL="own")
    first = open_docs(**environ)
    first.reindex()
    assert spent(first).calls == len(service.asked) == 2, "its size and its texts"
    service.asked.clear()
    later = open_docs(**environ)
    assert later.search("page", mode="bm25").hits
    assert service.asked == []
    assert later.search("page", mode="semantic").hits
    assert [asked.texts for asked in service.asked] == [["page"]]


def test_what_several_processes_spend_adds_up(tmp_path: Path) -> None:
    stores = [sqlite.build(tmp_path / "library.db") for _ in range(4)]
    tool = stores[0].tools.put(Tool("docs"))
    together = threading.Barrier(4)

    def spend(store: Store) -> None:
        together.wait(timeout=30)
        for _ in range(25):
            store.documents.write(tool.id, usage={"one": EmbeddingUsage(2, 1, 4, 3)})

    threads = [threading.Thread(target=spend, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[1].vectors.usage() == {"one": EmbeddingUsage(200, 100, 400, 300)}
    for store in stores:
        store.close()


def test_a_tool_that_has_gone_before_the_check_takes_nothing_of_the_report(docs: Path, open_docs: Opener) -> None:
    write(docs, 1)
    library = open_docs()
    report = library.reindex()
    assert library.maintenance.search_problems(["gone", *report.changed_tools]) == []
