"""Imports on a cluster, as far as they need no Ray: what workers do, and how they are fed."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import bunko
from bunko.embedders import build
from bunko.errors import EmbedderError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.cluster.connection import Cluster, WorkerLost
from bunko.ingest.cluster.preparer import ClusterPreparer
from bunko.ingest.cluster.tasks import (
    EmbeddedTexts,
    EmbedTask,
    PreparedBatch,
    PrepareTask,
    Task,
    component_versions,
    read_contents,
    run_task,
)
from bunko.ingest.cluster.worker import run_on_worker
from bunko.ingest.policy import ImportPolicy
from bunko.ingest.preparer import Preparer
from bunko.ingest.run import ImportRun
from bunko.protocols import Source
from bunko.runtime.installation import install_command
from bunko.sources import build as build_source
from bunko.sources.web.pages import PageSource
from bunko.stores import sqlite
from bunko.types import Report, SourceEntry, Tool
from bunko.types.records import StoreAddress, WebPage
from tests.conftest import Run
from tests.ingest.stores import dump_library, write_old

CHUNKER = ChunkerSettings()


class InlineCluster(Cluster):
    """A cluster whose tasks run here, when their results are taken."""

    def __init__(
        self,
        tasks: int = 4,
        kills: Callable[[Task], bool] = lambda task: False,
        around: Callable[[Task], AbstractContextManager[None]] = lambda task: nullcontext(),  # what a task runs in
    ) -> None:
        self._tasks, self._kills, self._around = tasks, kills, around
        self.in_flight, self.most_in_flight, self.cancelled = 0, 0, 0

    def max_tasks(self) -> int:
        return self._tasks

    def submit(self, task: Task) -> Any:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return pickle.dumps(task)

    def wait(self, reference: Any, is_cancelled: Callable[[], bool]) -> bool:
        return not is_cancelled()

    def result(self, reference: Any) -> PreparedBatch | EmbeddedTexts:
        self.in_flight -= 1
        task: Task = pickle.loads(reference)
        if self._kills(task):
            raise WorkerLost
        with self._around(task):
            answer = run_on_worker(reference, bunko.__version__, component_versions())
        assert not isinstance(answer, str)
        copy: PreparedBatch | EmbeddedTexts = pickle.loads(pickle.dumps(answer))
        return copy

    def cancel(self, references: Sequence[Any]) -> None:
        self.cancelled += len(references)
        self.in_flight -= len(references)


def folder_source(root: Path) -> Source:
    return build_source(
        "folder", root, extensions=(".md", ".txt", ".pdf", ".mbox"), exclude_dirs=(), exclude=(), include=(),
        respect_gitignore=False, max_file_bytes=10_000_000, max_memo_file_bytes=10_000_000, pages=None,
    )  # fmt: skip


def entries_of(source: Source) -> list[SourceEntry]:
    return list(source.scan({}).added)


def write_notes(root: Path, count: int = 30) -> None:
    for number in range(count):
        write_old(
            root / f"{number:03}.md", f"# 京都 {number}\n\n寺を巡る旅の記録 {number}\n\n## Part\n\nA day in Kyoto.\n"
        )
    write_old(root / "vault" / ".obsidian" / "app.json", "{}")
    write_old(root / "vault" / "note.md", "# Note\n\nText with a #tag in it.\n")
    write_old(root / "broken.pdf", b"%PDF-1.7 broken")
    write_old(root / "blank.txt", "  \n")
    write_old(root / "mail.mbox", "From a@b.c Mon Jan  1 00:00:00 2024\nSubject: Hello\n\nA message about Kyoto.\n")


def import_folder(
    docs: Path, data: Path, preparer: Preparer | None, embedder: str = "static", **options: Any
) -> Report:
    data.mkdir(parents=True, exist_ok=True)
    store = sqlite.build(StoreAddress("sqlite", data / "library.db").location)
    try:
        tool = store.tools.put(Tool("docs", "folder", source=str(docs)))
        policy = ImportPolicy(preparer=preparer, **options)
        return ImportRun(store, tool, folder_source(docs), CHUNKER, build(embedder), policy).run()
    finally:
        store.close()


def test_a_cluster_writes_the_same_library_as_an_import_on_this_machine(docs: Path, tmp_path: Path) -> None:
    write_notes(docs)
    reports = [
        import_folder(docs, tmp_path / "local", None),
        import_folder(docs, tmp_path / "cluster", ClusterPreparer(InlineCluster())),
    ]
    assert reports[0] == reports[1]
    assert reports[0].added == 32
    assert len(reports[0].problems) == 2
    local, cluster = dump_library(tmp_path / "local"), dump_library(tmp_path / "cluster")
    assert local == cluster
    assert len(local["vectors"]) > 30
    assert len(local["failures"]) == 2


def test_a_worker_reads_only_the_file_that_was_scanned(docs: Path) -> None:
    write_old(docs / "same.md", "# Same\n\nKyoto")
    write_old(docs / "other.md", "# Other\n\nKyoto")
    write_old(docs / "gone.md", "# Gone\n\nKyoto")
    source = folder_source(docs)
    entries = entries_of(source)
    os.utime(docs / "other.md", (1_600_000_000, 1_600_000_000))
    (docs / "gone.md").unlink()
    batch = PrepareTask(source, CHUNKER, entries, 1).run()
    assert batch.unread_uris == {"gone.md", "other.md"}
    assert [result.entry.uri for result in batch.results if result.document] == ["same.md"]


def test_files_that_workers_do_not_see_are_sent_and_one_sentence_says_so(docs: Path, tmp_path: Path) -> None:
    write_notes(docs, 250)
    import_folder(docs, tmp_path / "local", None)

    @contextmanager
    def another_machine(task: Task) -> Iterator[None]:
        """Run a task where the folder is another one."""
        if isinstance(task, EmbedTask):
            yield
            return
        docs.rename(tmp_path / "away")
        docs.mkdir()
        yield
        docs.rmdir()
        (tmp_path / "away").rename(docs)

    cluster = InlineCluster(around=another_machine)
    report = import_folder(docs, tmp_path / "cluster", ClusterPreparer(cluster))
    assert [notice for notice in report.notices if "workers do not see the files" in notice] == report.notices
    assert len(report.notices) == 1
    assert dump_library(tmp_path / "cluster") == dump_library(tmp_path / "local")


def test_a_file_that_changes_during_the_import_is_read_here_without_a_notice(docs: Path, tmp_path: Path) -> None:
    write_notes(docs, 3)

    @contextmanager
    def change_a_file(task: Task) -> Iterator[None]:
        if isinstance(task, PrepareTask) and not task.contents:
            write_old(docs / "000.md", "# New\n\nShort.")
        yield

    report = import_folder(docs, tmp_path / "cluster", ClusterPreparer(InlineCluster(around=change_a_file)))
    assert report.notices == []
    documents = dump_library(tmp_path / "cluster")["documents"]
    assert any("'000.md'" in row and "Short." in row for row in documents)


def test_a_document_that_kills_its_worker_is_a_problem_of_its_own(docs: Path, tmp_path: Path) -> None:
    write_notes(docs, 20)

    def kills(task: Task) -> bool:
        return isinstance(task, PrepareTask) and any(entry.uri == "007.md" for entry in task.entries)

    report = import_folder(docs, tmp_path / "cluster", ClusterPreparer(InlineCluster(kills=kills)))
    assert report.added == 21
    assert "its worker process was killed twice while it was prepared" in [
        problem.reason for problem in report.problems if problem.uri == "007.md"
    ]
    again = import_folder(docs, tmp_path / "cluster", None)
    assert again.added == 1, "it was not recorded as failed, so the next import tries it again"


def test_only_a_few_batches_are_in_flight(docs: Path, tmp_path: Path) -> None:
    for number in range(600):
        write_old(docs / f"{number:04}.txt", f"Kyoto {number}")
    cluster = InlineCluster(tasks=2)
    report = import_folder(docs, tmp_path / "cluster", ClusterPreparer(cluster), embedder="none")
    assert report.added == 600
    assert cluster.most_in_flight == 3, "6 batches of 100 files: two of them wait while one is taken"
    assert cluster.in_flight == 0


def test_a_cancelled_import_keeps_what_was_written_and_stops_its_tasks(docs: Path, tmp_path: Path) -> None:
    from bunko.runtime.observer import ImportProgress, Observer

    for number in range(600):
        write_old(docs / f"{number:04}.txt", f"Kyoto {number}")
    cluster, steps = InlineCluster(tasks=2), list[ImportProgress]()
    observer = Observer(on_progress=steps.append, is_cancelled=lambda: len(steps) > 1)
    report = import_folder(docs, tmp_path / "cluster", ClusterPreparer(cluster), embedder="none", observer=observer)
    assert (report.interrupted, report.added) == (True, 100)
    assert cluster.in_flight == 0
    assert cluster.cancelled > 0


def test_a_worker_with_another_version_refuses_with_a_sentence() -> None:
    refusal = run_on_worker(b"", "9.9.9", component_versions())
    assert refusal.endswith(f"is version {bunko.__version__}, here it is version 9.9.9")
    versions = component_versions() | {"selectolax": "0.1"}
    refusal = str(run_task(b"", versions))
    assert refusal.startswith("selectolax on ")
    assert refusal.endswith("here it is version 0.1")
    refusal = str(run_task(b"", component_versions() | {"PyYAML": ""}))
    assert refusal.endswith("here it is not installed")


def test_a_worker_without_bunko_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bunko", None)
    assert "cannot be imported" in run_on_worker(b"", "1", {})


@pytest.mark.parametrize("name", ["static", "hashing"])
def test_a_local_model_is_sent_by_its_description(name: str) -> None:
    embedder = build(name)
    assert embedder is not None
    pickled = pickle.dumps(embedder)
    assert len(pickled) < 1000
    answer = EmbedTask(pickled, embedder.name, ["京都", "a day in Kyoto"]).run()
    assert answer.vectors is not None
    assert (answer.vectors == embedder.embed(["京都", "a day in Kyoto"])).all()


def test_a_transformers_model_is_sent_with_its_options() -> None:
    embedder = build("transformers", model="nobody/nothing", device="cpu", max_tokens=100)
    copy = pickle.loads(pickle.dumps(embedder))
    assert (copy.label, copy._device, copy._max_tokens) == ("transformers:nobody/nothing", "cpu", 100)


def test_another_model_of_the_same_name_is_refused() -> None:
    embedder = build("static", size=128)
    answer = EmbedTask(pickle.dumps(embedder), "static:other:128", ["京都"]).run()
    assert isinstance(answer.error, EmbedderError)
    assert "is not the model of the importing machine" in answer.error.message


def test_a_service_stays_on_the_importing_machine() -> None:
    embedder = build("openai", api_key="key")
    assert ClusterPreparer(InlineCluster()).place_embedder(embedder) is embedder
    assert ClusterPreparer(InlineCluster()).place_embedder(None) is None


def test_pages_are_sent_without_the_address_of_the_library() -> None:
    class Pages:
        """Pages of a store that must not leave this machine."""

        def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
            return []

        def content(self, url: str) -> bytes | None:
            return b"<p>Kyoto</p>"

        def __reduce__(self) -> Any:
            raise AssertionError("the library was sent")

    source = PageSource(Pages())
    entry = SourceEntry("https://example.org/", 1, 0)
    contents = read_contents(source, [entry])
    assert contents[entry.uri] == (b"<p>Kyoto</p>", entry)
    pickle.dumps(source.portable_copy([entry]))
    assert source.is_local_only


def test_an_error_of_reading_reaches_the_report_unchanged(docs: Path) -> None:
    write_old(docs / "gone.md", "Kyoto")
    source = folder_source(docs)
    entries = entries_of(source)
    (docs / "gone.md").unlink()
    task = PrepareTask(source, CHUNKER, entries, 1, read_contents(source, entries))
    (result,) = pickle.loads(pickle.dumps(task)).run().results
    assert result.problem.startswith("gone.md no longer exists\n")


@pytest.mark.parametrize("place", ["rey", "ray:", "ray://", "ray://host", "ray://host:port", "ray://host:1/x", "spark"])
def test_a_place_that_does_not_exist_is_refused(place: str, docs: Path, run: Run) -> None:
    write_old(docs / "a.md", "Kyoto")
    result = run("reindex", "--docs-dir", docs, "--on", place)
    assert result.code == 2
    assert f"An import cannot run on {place!r}" in result.err
    assert "ray://HOST:10001" in result.err


def test_without_ray_one_sentence_says_how_to_install_it(docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_old(docs / "a.md", "Kyoto")
    run("reindex", "--docs-dir", docs)
    before = dump_library(docs / ".rag-index")
    write_old(docs / "b.md", "Kyoto")
    monkeypatch.setitem(sys.modules, "ray", None)
    result = run("reindex", "--docs-dir", docs, "--on", "ray")
    assert result.code == 20
    assert result.err == f"Error: The package ray is not installed\nInstall it with: {install_command('ray')}.\n"
    assert dump_library(docs / ".rag-index") == before


def test_the_setting_chooses_the_place_and_the_option_overrides_it(
    docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_old(docs / "a.md", "Kyoto")
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("BUNKO_INGEST_ON", "ray")
    assert run("reindex", "--docs-dir", docs).code == 20
    assert run("reindex", "--docs-dir", docs, "--on", "local").code == 0
    assert run("search", "Kyoto", "--docs-dir", docs).code == 0, "a search never starts a cluster"
