"""Imports on real Ray clusters on loopback: the same library, whatever dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.cluster.connection import connect
from bunko.ingest.policy import ImportPolicy
from bunko.ingest.preparer import open_preparer
from bunko.ingest.run import ImportRun
from bunko.stores import memory
from bunko.types import Tool
from tests.ingest.stores import dump_library, write_old
from tests.scale.engines import free_port
from tests.scale.ray_cluster import (
    ENVIRONMENT,
    ROOT,
    RayHead,
    descendants,
    listening_addresses,
    process_name,
    ray_head,
    require_ray,
    wait_until_gone,
)
from tests.scale.ray_parts import DeadlyNotes, LargeModel

pytestmark = pytest.mark.scale
_LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.fixture(scope="module")
def short_folder() -> Iterator[Path]:
    """A folder with a short path: the path of a socket has at most 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def head(short_folder: Path) -> Iterator[RayHead]:
    with ray_head(short_folder / "head", "--num-gpus=1") as started:
        yield started


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder of many kinds of documents, and a library that an import on this machine made of it."""
    folder = tmp_path_factory.mktemp("ray")
    docs = folder / "docs"
    for number in range(400):
        text = f"# 京都 {number}\n\n" + "\n\n".join(
            f"## 節 {part}\n\n寺を巡る旅の記録 {number}-{part}。" + "検索エンジンの設計と更新。A day in Kyoto. " * 3
            for part in range(4)
        )
        write_old(docs / f"{number % 7}" / f"{number:03}.md", text)
    write_old(docs / "vault" / ".obsidian" / "app.json", "{}")
    write_old(docs / "vault" / "note.md", "# Note\n\nText with a #tag in it.\n")
    write_old(docs / "blank.txt", "  \n")
    write_old(docs / "broken.docx", b"PK broken")
    mail = "From a@b.c Mon Jan  1 00:00:00 2024\nSubject: Hello {}\n\nA message about Kyoto.\n\n"
    write_old(docs / "mail.mbox", "".join(mail.format(number) for number in range(20)))
    for name in ("report.pdf", "handbook.docx", "novel.epub", "slides.pptx", "prices.xlsx", "report.html"):
        write_old(docs / name, (ROOT / "tests" / "fixtures" / "documents" / name).read_bytes())
    result = bunko("reindex", docs, folder / "local")
    assert result.returncode == 0, result.stderr
    return docs, folder / "local"


def command(name: str, docs: Path, data: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "bunko", name, "--docs-dir", str(docs), "--data-dir", str(data), *options]


def bunko(
    name: str, docs: Path, data: Path, *options: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **ENVIRONMENT, **(environment or {})}
    return subprocess.run(
        command(name, docs, data, *options), capture_output=True, text=True, env=environment, timeout=300
    )


def own_ray_environment() -> dict[str, str]:
    """Return the environment of a user who has not told Ray anything."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def document_count(data: Path) -> int:
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{data / 'library.db'}?mode=ro", uri=True)) as db,
    ):
        return int(db.execute("SELECT count(*) FROM documents").fetchone()[0])
    return 0  # the library is just being created


def test_a_cluster_writes_the_same_library_and_then_the_same_changes(
    head: RayHead, corpus: tuple[Path, Path], tmp_path: Path
) -> None:
    docs, local = tmp_path / "docs", tmp_path / "local"
    shutil.copytree(corpus[0], docs)
    first = [
        bunko("reindex", docs, tmp_path / "local"),
        bunko("reindex", docs, tmp_path / "cluster", "--on", head.address),
    ]
    assert first[0].stdout == first[1].stdout
    problems = [re.sub("(?m)^Importing: .*\n", "", result.stderr) for result in first]
    assert problems[0] == problems[1]
    assert "broken.docx" in problems[0]
    assert dump_library(local) == dump_library(tmp_path / "cluster")
    assert len(dump_library(local)["vectors"]) > 1500
    write_old(docs / "0" / "000.md", "# New\n\nAnother text.")
    (docs / "1" / "001.md").unlink()
    (docs / "2" / "002.md").rename(docs / "2" / "moved.md")
    second = [
        bunko("reindex", docs, tmp_path / "local", "--json"),
        bunko("reindex", docs, tmp_path / "cluster", "--json", environment={"BUNKO_INGEST_ON": head.address}),
    ]
    assert second[0].stdout == second[1].stdout
    assert '"moved": 1' in second[0].stdout
    assert dump_library(local) == dump_library(tmp_path / "cluster")


def test_the_cluster_of_this_machine_is_found_by_itself(
    head: RayHead, corpus: tuple[Path, Path], tmp_path: Path
) -> None:
    environment = {"RAY_ADDRESS": head.gcs_address}
    result = bunko("reindex", corpus[0], tmp_path, "--on", "ray:auto", environment=environment)
    assert result.returncode == 0, result.stderr
    assert dump_library(tmp_path) == dump_library(corpus[1])


def test_a_ray_of_its_own_listens_on_loopback_only_prints_nothing_and_leaves_nothing(
    corpus: tuple[Path, Path], tmp_path: Path
) -> None:
    require_ray()
    home = tmp_path / "home"
    home.mkdir()
    environment = own_ray_environment() | {"HOME": str(home), "TMPDIR": tempfile.mkdtemp(prefix="own-", dir="/tmp")}
    process = subprocess.Popen(
        command("reindex", corpus[0], tmp_path / "data", "--on", "ray"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    wait_for(lambda: document_count(tmp_path / "data") > 0, process)
    processes = [process.pid, *descendants(process.pid)]
    assert len(processes) > 4
    addresses = listening_addresses(processes)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert addresses
    assert addresses <= _LOOPBACK
    assert "added" in output
    assert len(output.splitlines()) == 1
    expected = ("Importing: ", "2 documents not indexed", "  blank.txt: ", "  broken.docx: ")
    assert [line for line in errors.splitlines() if not line.startswith(expected)] == []
    assert dump_library(tmp_path / "data") == dump_library(corpus[1])
    wait_until_gone(processes)
    assert list(home.iterdir()) == [], "Ray has not written its own token or files"
    assert list(Path(environment["TMPDIR"]).iterdir()) == []
    Path(environment["TMPDIR"]).rmdir()


@pytest.mark.parametrize(
    "reason",
    [
        "Starting Ray client server failed. See ray_client_server_23000.err",
        "Traceback (most recent call last):\npsutil.ZombieProcess: PID still exists but it's a zombie (pid=7)",
    ],
)
def test_a_process_for_the_client_that_ends_at_once_is_started_again(
    head: RayHead, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    failures, init = [reason, reason], ray.init

    def init_at_the_third_time(**options: object) -> object:
        if failures:
            raise ConnectionError(failures.pop())
        return init(**options)

    monkeypatch.setattr(ray, "init", init_at_the_third_time)
    with connect(head.address, workers=None) as cluster:
        assert cluster.max_tasks() == 4
    assert not failures


def test_a_killed_worker_loses_nothing(head: RayHead, corpus: tuple[Path, Path], tmp_path: Path) -> None:
    docs, local, cluster = tmp_path / "docs", tmp_path / "local", tmp_path / "cluster"
    shutil.copytree(corpus[0], docs)
    for number in range(2):  # a worker takes seconds for each, so that it is seen while it works
        write_old(docs / f"long{number}.md", f"寺を巡る旅の記録 {number}。検索エンジンの設計と更新。\n\n" * 20_000)
    assert bunko("reindex", docs, local).returncode == 0
    process = subprocess.Popen(
        command("reindex", docs, cluster, "--on", head.address),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    killed = 0

    def kill_workers() -> bool:
        nonlocal killed
        for pid in head.worker_processes()[:1]:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        return killed == 1

    wait_for(kill_workers, process)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert "Error" not in errors
    assert "killed" not in errors
    assert "added" in output
    assert dump_library(cluster) == dump_library(local)


def test_a_killed_import_is_continued_by_the_next_one_and_its_ray_ends_with_it(
    corpus: tuple[Path, Path], tmp_path: Path
) -> None:
    require_ray()
    environment = own_ray_environment() | {"BUNKO_FAILPOINT": "ingest.batch:2"}
    process = subprocess.Popen(
        command("reindex", corpus[0], tmp_path, "--on", "ray"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=environment,
    )  # fmt: skip
    processes: set[int] = set()
    deadline = time.monotonic() + 120
    while process.poll() is None:
        # Those that look after Ray itself take a minute to notice.
        names = ("raylet", "gcs_server", "ray::run_on_worker", "ray::IDLE")
        processes |= {pid for pid in descendants(process.pid) if process_name(pid).startswith(names)}
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert process.returncode == -signal.SIGKILL
    assert len(processes) >= 3
    wait_until_gone(list(processes))
    committed = document_count(tmp_path)
    assert 0 < committed < 400
    result = bunko("reindex", corpus[0], tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    assert f'"unchanged": {committed}' in result.stdout
    finished, expected = dump_library(tmp_path), dump_library(corpus[1])
    assert {name: len(rows) for name, rows in finished.items()} == {name: len(rows) for name, rows in expected.items()}
    assert finished["vectors"] == expected["vectors"]


def test_ctrl_c_stops_an_import_on_a_ray_of_its_own(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    require_ray()
    process = subprocess.Popen(
        command("reindex", corpus[0], tmp_path, "--on", "ray"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own_ray_environment(), start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: document_count(tmp_path) > 0, process)
    processes = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"^Stopped after \d+ of 4\d\d files\.$", errors, re.MULTILINE), errors
    assert "Traceback" not in errors
    wait_until_gone(processes)


def test_a_cluster_that_is_away_is_one_sentence_and_changes_nothing(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    require_ray()
    docs, data = tmp_path / "docs", tmp_path / "data"
    write_old(docs / "a.md", "Kyoto")
    bunko("reindex", docs, data)
    before = dump_library(data)
    write_old(docs / "b.md", "Kyoto")
    (docs / "a.md").unlink()
    for place, message in {
        f"ray://127.0.0.1:{free_port()}": r"The Ray cluster at 127\.0\.0\.1:\d+ cannot be reached: Connection refused",
        "ray://nowhere.invalid:10001": r"The Ray cluster at nowhere\.invalid:10001 cannot be reached: .*",
        "ray:auto": "The Ray cluster of this machine cannot be reached: Connection refused",
    }.items():
        environment = {"RAY_ADDRESS": f"127.0.0.1:{free_port()}"}
        result = bunko("reindex", docs, data, "--on", place, environment=environment)
        assert result.returncode == 20, result.stderr
        error, hint = result.stderr.splitlines()
        assert re.fullmatch(f"Error: {message}", error), result.stderr
        assert hint.startswith("Check that it runs")
        assert dump_library(data) == before


def test_workers_that_do_not_see_the_files_get_them_and_those_of_another_version_are_refused(
    corpus: tuple[Path, Path], short_folder: Path, tmp_path: Path
) -> None:
    """One cluster for both: its workers have an empty folder where the documents are, and first another bunko."""
    hide = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs "{corpus[0]}" && exec "$@"', "hide"]
    if subprocess.run([*hide, "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount")
    package = tmp_path / "path" / "bunko"
    shutil.copytree(ROOT / "src" / "bunko", package, ignore=shutil.ignore_patterns("__pycache__"))
    module = (package / "version.py").read_text()
    (package / "version.py").write_text(re.sub('__version__ = ".*"', '__version__ = "9.9.9"', module))
    with ray_head(short_folder / "other", prefix=hide, python_path=[tmp_path / "path"]) as head:
        refused = bunko("reindex", corpus[0], tmp_path / "data", "--on", head.address)
        assert refused.returncode == 20, refused.stderr
        error, hint = refused.stderr.splitlines()
        assert re.fullmatch(
            r"Error: A worker cannot be used: bunko on \S+ is version 9\.9\.9, here it is version \S+", error
        )
        assert hint == "Install the same versions of bunko and its packages on every machine of the cluster."
        assert document_count(tmp_path / "data") == 0
        (package / "version.py").write_text(module)
        result = bunko("reindex", corpus[0], tmp_path / "data", "--on", head.address)
        assert result.returncode == 0, result.stderr
        assert "The workers do not see the files of this machine" in result.stderr
        assert dump_library(tmp_path / "data") == dump_library(corpus[1])


def test_a_document_that_kills_every_worker_is_a_problem_and_a_large_model_has_a_gpu(head: RayHead) -> None:
    store = memory.build()
    tool = store.tools.put(Tool("notes", "folder"))
    source, model = DeadlyNotes(30, deadly=7), LargeModel()
    with open_preparer(head.address, None) as preparer:
        report = ImportRun(
            store, tool, source, ChunkerSettings(), model, ImportPolicy(preparer=preparer, needs_vectors=True)
        ).run()
    assert (report.added, report.embedded) == (29, 29)
    assert [(problem.uri, problem.reason) for problem in report.problems] == [
        ("7.md", "its worker process was killed twice while it was prepared")
    ]
    vectors = [tuple(chunk.vector) for chunk in store.changes.chunks_since(tool.id, 0) if chunk.vector is not None]
    assert len(set(vectors)) == 1, "one process has the model"
    process, gpu, threads = vectors[0]
    assert (process != os.getpid(), gpu, threads) == (True, 1, 2), "with the one GPU, and the CPUs of its machine"
