"""`bunko sweep` as people and scripts meet it: options, files, exit codes."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bunko.evaluation.report_store import ReportStore
from tests.cli.processes import ESCAPE, at_a_terminal, subprocess_environment
from tests.conftest import Run
from tests.evaluation.sweep_sets import generated_set


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | Path, ...]:
    """The options that name the made set; reports go where one stands."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    made = generated_set(24)
    rows = [{"id": one.id, "title": "<b>&", "text": one.text} for one in made.documents]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked = [{"id": one.id, "text": one.text} for one in made.queries]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    judged = "".join(f"{one.id}\t{next(iter(one.grades))}\t1\n" for one in made.queries)
    (tmp_path / "r.tsv").write_text(judged, encoding="utf-8")
    return "--corpus", tmp_path / "c.jsonl", "--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "r.tsv"


OUTPUT = Path(".tmp/rag-evaluation")


def test_a_sweep_prints_the_best_and_writes_every_point(run: Run, public: tuple[str, ...]) -> None:
    done = run("sweep", *public, "--grid", "b=0:1:0.25", "--grid", "k1=1,2", "--mode", "bm25")
    assert done.code == 0, done.err
    assert "10 points, 24 questions, 48 documents." in done.err
    assert "Better, and the held-out questions confirm it" in done.out
    assert '[search]\nb = 0.5\nk1 = 1.0\nmode = "bm25"\n' in done.out  # the smallest change that answers them all
    assert sorted(path.name for path in OUTPUT.iterdir()) == ["sweep.csv", "sweep.html", "sweep.json", "sweep.md"]
    found = json.loads((OUTPUT / "sweep.json").read_text(encoding="utf-8"))
    assert found["complete"] is True
    assert len(found["points"]) == found["total"] == 10
    rows = list(csv.DictReader((OUTPUT / "sweep.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["b"], row["k1"]) for row in rows][:3] == [("0", "1"), ("0", "2"), ("0.25", "1")]
    assert float(rows[0]["ndcg@10"]) == pytest.approx(found["points"][0]["measures"]["ndcg@10"], abs=1e-6)
    assert "| 10 |" in (OUTPUT / "sweep.md").read_text(encoding="utf-8")


def test_a_finished_sweep_is_kept_in_the_library_whose_settings_it_is_about(
    run: Run, public: tuple[str, ...], tmp_path: Path
) -> None:
    sweep = ("sweep", *public, "--grid", "b=0,0.75", "--mode", "bm25", "--library", tmp_path / "library")
    assert run(*sweep).code == 0
    assert not (tmp_path / "library").exists()
    assert run("init", "--library", tmp_path / "library").code == 0
    done = run(*sweep)
    [stored] = ReportStore(tmp_path / "library").all()
    assert (stored.kind, stored.measure, stored.queries) == ("sweep", "ndcg@10", 24)
    assert f"Wrote {stored.path}" in done.err
    assert len(ReportStore(tmp_path / "library").load(stored.id)[1]["points"]) == 2


def test_a_sweep_written_among_the_reports_of_the_library_is_there_once(
    run: Run, public: tuple[str, ...], tmp_path: Path
) -> None:
    library = tmp_path / "library"
    run("init", "--library", library)
    run("sweep", *public, "--grid", "b=0,0.75", "--library", library, "--output-dir", library / "evaluations" / "night")
    assert [stored.id for stored in ReportStore(library).all()] == ["night.sweep"]


class Tags(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        if tag not in ("meta", "br", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag


@pytest.mark.slow
def test_the_page_has_a_map_and_runs_nothing(run: Run, public: tuple[str, ...]) -> None:
    assert run("sweep", *public, "--grid", "b=0:1:0.25", "--grid", "k1=1,2").code == 0
    text = (OUTPUT / "sweep.html").read_text(encoding="utf-8")
    page = Tags()
    page.feed(text)
    assert page.open == []
    assert "script" not in page.tags
    assert "default-src 'none'" in text
    assert text.count("<title>b ") + text.count("<title>k1 ") == 10
    assert 'stroke-dasharray="4 3"' not in text  # k1 = 1.2 is in force and not on the grid
    assert run("sweep", *public, "--grid", "b=0:1:0.25", "--grid", "k1=1,1.2").code == 0
    assert (OUTPUT / "sweep.html").read_text(encoding="utf-8").count('stroke-dasharray="4 3"') == 1


def test_json_has_the_proof_without_the_points(run: Run, public: tuple[str, ...]) -> None:
    found: Any = run("sweep", *public, "--grid", "b=0,0.75", "--json").json()
    assert found["verdict"] == "better"
    assert found["best"]["settings"] == {"b": 0.0}
    assert found["now"]["settings"] == {"b": 0.75}
    assert found["best"]["interval"][0] <= found["best"]["held_out"] <= found["best"]["interval"][1]
    assert found["difference"]["interval"][0] > 0
    assert found["toml"] == "[search]\nb = 0.0"
    assert "points" not in found


@pytest.mark.slow
def test_without_a_grid_weight_and_bm25_are_swept_over_the_set_that_comes_with_bunko(
    run: Run, public: tuple[str, ...]
) -> None:
    found: Any = run("sweep", "--json", "--mode", "bm25").json()
    assert found["judged"]["name"] == "bunko's own set"
    assert [one["name"] for one in found["grid"]] == ["k1", "b"]


def test_a_grid_about_hybrid_searches_so(run: Run, public: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNKO_SEARCH_MODE", "bm25")
    found: Any = run("sweep", *public, "--grid", "vector_weight=0,1", "--json").json()
    assert found["best"]["mode"] == "hybrid"
    found = run("sweep", *public, "--grid", "k1=1,2", "--json").json()
    assert found["best"]["mode"] == "bm25"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--grid", "nope=1"), "'nope' is not a setting"),
        (("--grid", "k1=1:0:1"), "empty range"),
        (("--grid", "chunk_size=50,100", "--grid", "chunk_overlap=10,60"), "must be less than chunker.chunk_size"),
        (("--grid", "k1=1:9:1", "--max-points", "5"), "at most 5"),
        (("--measure", "best"), "There is no measure 'best'"),
        (("--corpus", "x"), "--queries"),
        (("--mode", "none"), "--mode"),
    ],
)
def test_a_bad_sweep_ends_with_2_before_anything_is_done(
    run: Run, public: tuple[str, ...], options: tuple[str, ...], words: str
) -> None:
    done = run("sweep", *options)
    assert done.code == 2
    assert words in done.err
    assert not OUTPUT.exists()


@pytest.mark.slow
def test_a_sweep_goes_on_from_what_was_kept(run: Run, public: tuple[str, ...]) -> None:
    assert run("sweep", *public, "--grid", "b=0,0.5").code == 0
    before = json.loads((OUTPUT / "sweep.json").read_text(encoding="utf-8"))
    wider: Any = run("sweep", *public, "--grid", "b=0,0.25,0.5,1", "--resume", "--json").json()
    assert (wider["reused"], wider["measured"]) == (2, 4)
    after = json.loads((OUTPUT / "sweep.json").read_text(encoding="utf-8"))
    assert after["points"][0] == before["points"][0]
    other = run("sweep", *public, "--grid", "b=0,0.25", "--measure", "mrr@10", "--resume")
    assert other.code == 3
    assert "other questions, documents or settings" in other.err
    (OUTPUT / "sweep.json").write_text("[]", encoding="utf-8")
    assert "was not written by bunko sweep" in run("sweep", *public, "--grid", "b=0", "--resume").err
    (OUTPUT / "sweep.json").unlink()
    assert "no sweep to resume" in run("sweep", *public, "--grid", "b=0", "--resume").err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal here")
def test_ctrl_c_keeps_what_was_finished_and_resume_goes_on(tmp_path: Path, run: Run) -> None:
    environ = subprocess_environment(tmp_path)
    command = [
        sys.executable, "-m", "bunko", "sweep", "--grid", "k1=0.1:10:0.1", "--grid", "b=0:1:0.1", "--mode", "bm25",
        "--output-dir", str(tmp_path / "out"),
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        while not (tmp_path / "out" / "sweep.json").exists():  # written after the first points
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    stopped = re.search(r"Stopped after ([\d,]+) of 1,100 points", err)
    assert stopped, err
    kept = json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8"))
    assert kept["complete"] is False
    assert len(kept["points"]) == int(stopped[1].replace(",", "")) > 0
    one = kept["points"][0]["settings"]
    again: Any = run(
        "sweep", "--grid", f"k1={one['k1']},{one['k1'] + 0.05:.2f}", "--grid", f"b={one['b']}", "--mode", "bm25",
        "--output-dir", tmp_path / "out", "--resume", "--json",
    ).json()  # fmt: skip
    assert (again["reused"], again["measured"], again["complete"]) == (1, 2, True)


@pytest.mark.slow
def test_a_terminal_gets_a_map_of_two_settings(public: tuple[str, ...], tmp_path: Path) -> None:
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="160", COLORTERM="truecolor")
    terminal.pop("NO_COLOR", None)
    out = tmp_path / "out"
    printed = at_a_terminal(
        "sweep", *public, "--grid", "b=0:1:0.25", "--grid", "k1=1,2", "--output-dir", out, env=terminal
    )
    assert "(across)" in printed
    assert f"{ESCAPE}[" in printed
    assert "48;2;" in printed
