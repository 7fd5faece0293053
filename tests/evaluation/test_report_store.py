"""Reports in the folder of a library: kept by evaluations of its tools, listed with those that commands wrote there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import UnknownName
from bunko.evaluation.judge import Judgements
from bunko.evaluation.report_store import ReportStore


def report(day: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "bunko": "0.1.0", "created_at": f"2026-01-{day:02}T10:00:00+00:00", "judged": {"name": "notes", "queries": 3},
        "mode": "hybrid", "modes": {"hybrid": {"measures": {"ndcg@5": 0.5}, "intervals": {"ndcg@5": [0.4, 0.6]}}},
    } | changes  # fmt: skip


def test_reports_are_listed_with_the_newest_first(tmp_path: Path) -> None:
    store = ReportStore(tmp_path)
    assert store.all() == []
    for day in (2, 3, 1):
        store.keep(report(day))
    reports = store.all()
    assert [stored.created_at[8:10] for stored in reports] == ["03", "02", "01"]
    assert (reports[0].kind, reports[0].measure, reports[0].score) == ("evaluation", "ndcg@5", 0.5)
    assert store.load(reports[0].id)[1] == report(3)


def test_two_reports_of_one_second_are_both_kept(tmp_path: Path) -> None:
    store = ReportStore(tmp_path)
    store.keep(report(1))
    store.keep(report(1, mode="hybrid"))
    assert len({stored.id for stored in store.all()}) == 2


def test_a_folder_that_a_command_wrote_to_is_listed_too(tmp_path: Path) -> None:
    folder = tmp_path / "evaluations" / "night"
    folder.mkdir(parents=True)
    sweep = {
        "created_at": "2026-02-01T10:00:00+00:00", "judged": {"name": "notes", "queries": 3}, "measure": "ndcg@10",
        "grid": [], "points": [], "best": {"held_out": 0.7},
    }  # fmt: skip
    (folder / "sweep.json").write_text(json.dumps(sweep), "utf-8")
    (folder / "report.json").write_text(json.dumps(report()), "utf-8")
    reports = {stored.id: stored for stored in ReportStore(tmp_path).all()}
    assert set(reports) == {"night.sweep", "night.evaluation"}
    assert reports["night.sweep"].score == 0.7


@pytest.mark.parametrize(
    "change",
    [
        {"modes": float("inf")},
        {"modes": {"bm25": {"measures": [1]}}, "mode": "bm25"},
        {"judged": {"name": "notes", "queries": float("inf")}},
        {"settings": {"k1": float("nan")}},
        {"settings": {"k1": 10**400}},
        {"settings": {"fusion": "\ud800"}},
    ],
)
def test_a_report_with_values_that_are_none_is_left_out(tmp_path: Path, change: dict[str, Any]) -> None:
    store = ReportStore(tmp_path)
    store.keep(report())
    (store.folder / "other.json").write_text(json.dumps(report(**change)), "utf-8")
    assert len(store.all()) == 1
    with pytest.raises(UnknownName):
        store.load("other")


def test_a_pipe_and_a_device_among_the_reports_are_not_read(tmp_path: Path) -> None:
    store = ReportStore(tmp_path)
    store.keep(report())
    os.mkfifo(store.folder / "pipe.json")
    (store.folder / "zeros.json").symlink_to("/dev/zero")
    assert len(store.all()) == 1


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"modes": 1}', '{"created_at": 1, "judged": [], "grid": 1}', "["])
def test_a_file_that_is_no_report_is_left_out(tmp_path: Path, content: str) -> None:
    store = ReportStore(tmp_path)
    store.keep(report())
    (store.folder / "other.json").write_text(content, "utf-8")
    assert len(store.all()) == 1
    with pytest.raises(UnknownName):
        store.load("../secret")


def test_judgements_of_somebody_else_meanwhile_are_not_lost(tmp_path: Path) -> None:
    first, second = (Judgements(tmp_path / "judged.json", "notes") for _ in range(2))
    first.set_grade("mirror", "a.md", 2)
    second.set_grade("mirror", "b.md", 0)
    first.set_grade("鏡", "a.md", 3)
    reread = Judgements(tmp_path / "judged.json", "notes")
    assert [reread.grade("mirror", "a.md"), reread.grade("mirror", "b.md"), reread.grade("鏡", "a.md")] == [2, 0, 3]
