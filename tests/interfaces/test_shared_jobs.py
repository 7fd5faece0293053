"""Jobs of a server with several workers: each finds, shows and cancels those of the others."""

from __future__ import annotations

import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import LibraryBusy, UnknownName
from bunko.interfaces.tools import jobs
from bunko.interfaces.tools.jobs import Job, Jobs
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.access import LibraryAccess
from bunko.types.access import ALL_RIGHTS, Caller, Rights
from tests.conftest import Opener

EVERYTHING = Caller("owner", "http", ALL_RIGHTS)
PATIENCE = 30.0


@pytest.fixture
def access(open_docs: Opener) -> LibraryAccess:
    return LibraryAccess(open_docs(), EVERYTHING)


def wait_until_cancelled(call: ToolCall) -> ToolReply:
    call.report_progress(1, 4, "one of four")
    while not call.stop.is_set():
        threading.Event().wait(0.01)
    return ToolReply("stopped", {"stopped": True})


def wait_for(jobs: Jobs, job_id: str, state: str) -> Job:
    for _ in range(int(PATIENCE / 0.01)):
        job = jobs.find(job_id, EVERYTHING)
        if job.state == state:
            return job
        threading.Event().wait(0.01)
    raise AssertionError(job)


def test_a_worker_sees_and_cancels_the_job_of_another(tmp_path: Path, access: LibraryAccess) -> None:
    first, second = Jobs(tmp_path), Jobs(tmp_path)
    job = first.start("import", wait_until_cancelled, ToolCall(access, {}))
    seen = second.find(job.id, EVERYTHING)
    assert (seen.name, seen.state, seen.owner) == ("import", "running", "owner")
    second.cancel(job.id, EVERYTHING)
    assert wait_for(second, job.id, "cancelled").result == {"stopped": True}
    assert [other.id for other in second.visible(EVERYTHING)] == [job.id]


def test_progress_reaches_the_other_workers(
    tmp_path: Path, access: LibraryAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SAVE_SECONDS", 0.0)
    first, second = Jobs(tmp_path), Jobs(tmp_path)
    reported, finish = threading.Event(), threading.Event()

    def work(call: ToolCall) -> ToolReply:
        call.report_progress(3, 10, "3 chunks")
        reported.set()
        finish.wait(PATIENCE)
        return ToolReply("", {})

    job = first.start("import", work, ToolCall(access, {}))
    assert reported.wait(PATIENCE)
    seen = second.find(job.id, EVERYTHING)
    assert (seen.done, seen.total, seen.message) == (3, 10, "3 chunks")
    finish.set()
    wait_for(second, job.id, "done")


def test_two_workers_never_give_two_jobs_the_same_id(tmp_path: Path, access: LibraryAccess) -> None:
    workers = [Jobs(tmp_path) for _ in range(3)]
    jobs = [worker.start("import", lambda _: ToolReply("", {}), ToolCall(access, {})) for worker in workers * 3]
    assert len({job.id for job in jobs}) == 9


def _start_and_die(folder: str, queue: Any) -> None:
    access = type("Access", (), {"caller": EVERYTHING})()
    job = Jobs(Path(folder)).start("import", wait_until_cancelled, ToolCall(access, {}))
    queue.put(job.id)
    queue.close()
    queue.join_thread()
    import os

    os._exit(9)


@pytest.mark.slow
def test_the_job_of_a_worker_that_died_has_failed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_start_and_die, args=(str(tmp_path), queue))
    process.start()
    job_id = queue.get(timeout=PATIENCE)
    process.join(PATIENCE)
    job = Jobs(tmp_path).find(job_id, EVERYTHING)
    assert (job.state, job.error) == ("failed", "The process that ran it has ended. Start it again.")


def test_only_its_owner_and_who_may_change_everything_see_a_job(tmp_path: Path, access: LibraryAccess) -> None:
    first, second = Jobs(tmp_path), Jobs(tmp_path)
    job = first.start("import", lambda _: ToolReply("", {}), ToolCall(access, {}))
    stranger = Caller("stranger", "http", Rights(write=("notes",)))
    assert second.visible(stranger) == []
    with pytest.raises(UnknownName):
        second.find(job.id, stranger)
    with pytest.raises(UnknownName):
        second.cancel(job.id, stranger)


def test_all_workers_together_run_a_limited_number_of_jobs(tmp_path: Path, access: LibraryAccess) -> None:
    first, second = Jobs(tmp_path), Jobs(tmp_path)
    for half in (first, second) * 10:
        half.start("import", wait_until_cancelled, ToolCall(access, {}))
    with pytest.raises(LibraryBusy):
        second.start("import", wait_until_cancelled, ToolCall(access, {}))
    first.stop_all()
    second.stop_all()


def test_a_damaged_file_of_a_job_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "import-1.job").write_text("{", "utf-8")
    (tmp_path / "import-2.job").write_text(json.dumps([1]), "utf-8")
    assert Jobs(tmp_path).visible(EVERYTHING) == []


def test_finished_jobs_are_forgotten_after_a_while(
    tmp_path: Path, access: LibraryAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bunko.interfaces.tools import jobs as jobs_module

    monkeypatch.setattr(jobs_module, "MAX_FINISHED_JOBS", 2)
    jobs = Jobs(tmp_path)
    for _ in range(5):
        job = jobs.start("import", lambda _: ToolReply("", {}), ToolCall(access, {}))
        wait_for(jobs, job.id, "done")
    assert len(jobs.visible(EVERYTHING)) <= 3
    assert len(list(tmp_path.glob("*.job"))) <= 3
