"""A sweep measures what a plain evaluation measures, chooses on one half of the questions and proves on the other."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError, SourceError
from bunko.evaluation import files
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery, JudgedSet
from bunko.evaluation.evaluate import EvaluationPlan as EvaluationPlan
from bunko.evaluation.evaluate import evaluate
from bunko.evaluation.sweep.grid import Grid, parse_grid
from bunko.evaluation.sweep.heatmap import build_heatmap
from bunko.evaluation.sweep.report import conclusion
from bunko.evaluation.sweep.result import PointScore, SweepPlan, SweepResult, check_measure, point_key, split_queries
from bunko.evaluation.sweep.run import run_sweep
from bunko.settings import Settings
from bunko.settings.load import load_settings
from tests.cli.processes import ESCAPE, at_a_terminal, subprocess_environment
from tests.conftest import Run

OURS = files.find_judged_set(None, None, None, Settings())


def settings(flags: Mapping[str, object]) -> Settings:
    return load_settings(flags=flags, environ={}).settings


def some(judged: JudgedSet, number: int) -> JudgedSet:
    """Return a set with every document and some of the questions."""
    return JudgedSet(judged.name, judged.documents, judged.queries[:: len(judged.queries) // number])


def plan(*texts: str, measure: str = "ndcg@10", n_results: int = 10, whole: bool = False, **more: Any) -> SweepPlan:
    return SweepPlan(parse_grid(texts), measure, more.pop("mode", "hybrid"), n_results, whole, **more)


def plainly(judged: JudgedSet, asked: SweepPlan, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the means that `evaluate` gives for one point."""
    flags = {key: value for key, value in asked.grid.overrides(values).items() if value is not None}
    n_results = values.get("n_results", asked.n_results)
    mode = values.get("mode", asked.mode)
    chunks = None if asked.judge_documents else n_results
    return evaluate(judged, settings(flags), EvaluationPlan((mode,), n_results, chunks)).main_run.measures


# The grid


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("vector_weight=0:1:0.1", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ("search.k1=0.8, 1.2,1.2", (0.8, 1.2)),
        ("chunk_size=100:250:100", (100, 200)),
        ("b=0,0.5:0.7:0.1,1", (0.0, 0.5, 0.6, 0.7, 1.0)),
        ("threshold=none,0.5", (None, 0.5)),
        ("fusion=rrf,cc", ("rrf", "cc")),
        ("loanwords=true,false", (True, False)),
        ("n_results=3,10", (3, 10)),
    ],
)
def test_a_dimension_is_a_list_or_a_range_with_its_end(text: str, values: tuple[object, ...]) -> None:
    assert parse_grid([text]).dimensions[0].values == values


def test_a_grid_has_every_combination() -> None:
    found = parse_grid(["k1=1,2", "mode=bm25,hybrid"])
    assert len(found) == 4
    assert list(found.points()) == [
        {"k1": 1.0, "mode": "bm25"}, {"k1": 1.0, "mode": "hybrid"},
        {"k1": 2.0, "mode": "bm25"}, {"k1": 2.0, "mode": "hybrid"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["kk1=1"], "'kk1' is not a setting"),
        (["k1"], "not name=values"),
        (["=1"], "not name=values"),
        (["k1="], "empty value"),
        (["k1=1,,2"], "empty value"),
        (["k1=2:1:0.1"], "empty range"),
        (["k1=1:2:0"], "empty range"),
        (["k1=1:2:-1"], "empty range"),
        (["k1=1:nan:1"], "not a range of numbers"),
        (["k1=a:b:c"], "not a range of numbers"),
        (["k1=1:2"], "--grid k1=1:2 is not a range from:to:step"),
        (["k1=1:2:3:4"], "not a range from:to:step"),
        (["mode=a:b"], "one of bm25, semantic, hybrid"),
        (["b=1.5"], "from 0 to 1"),
        (["b=0:2:0.5"], "from 0 to 1"),
        (["mode=both"], "one of bm25, semantic, hybrid"),
        (["mode=a:b:c"], "no ranges"),
        (["chunk_size=100:200:0.5"], "whole number"),
        (["k1=0:1:0.0001"], "10,001 values"),
        (["k1=1", "search.k1=2"], "twice"),
        (["freshness_seconds=1"], "cannot be swept"),
        (["heading_levels=1"], "cannot be swept"),
        (["serve.token=x"], "cannot be swept"),
        (["k1=1:100:1", "b=0:1:0.01"], "10,100 points (100 × 101), and at most 10,000"),
    ],
)
def test_a_bad_grid_is_refused_with_its_reason(texts: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        parse_grid(texts)


def test_the_largest_grid_can_be_chosen() -> None:
    assert len(parse_grid(["k1=1:100:1", "b=0:1:0.01"], limit=20_000)) == 10_100
    with pytest.raises(SettingsError, match="at most 3") as refused:
        parse_grid(["k1=1,2,3,4"], limit=3)
    assert "--max-points" in refused.value.hint


@pytest.mark.parametrize(("name", "depth"), [("ndcg@10", 10), ("hit@1", 1), ("f1", None), ("map@1000", 1000)])
def test_a_measure_has_its_depth(name: str, depth: int | None) -> None:
    assert check_measure(name) == depth


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "ndcg@1001", "f1@3", "", "ndcg@10 "])
def test_what_is_no_measure_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="There is no measure"):
        check_measure(name)


# The halves


def test_halves_do_not_depend_on_the_order_and_spread_every_kind_evenly() -> None:
    first, second = split_queries(OURS.queries)
    assert (first, second) == split_queries(OURS.queries[::-1])
    assert first.isdisjoint(second)
    assert abs(len(first) - len(second)) <= 1
    for kind in {(query.language, query.kind) for query in OURS.queries}:
        own = {query.id for query in OURS.queries if (query.language, query.kind) == kind}
        assert abs(len(own & first) - len(own & second)) <= 1, kind


# The same numbers


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "texts",
    [
        ("vector_weight=0:1:0.05", "k1=0.4,1,2.5", "b=0,0.3,1"),
        ("mode=bm25,semantic,hybrid", "fusion=cc,rrf", "threshold=none,0.6,0.9", "rrf_k=10,60", "n_results=1,5,40"),
        ("min_combined_score=none,0.3,0.6", "vector_weight=0,0.3,0.8", "loanwords=true,false", "n_results=3,10"),
        ("chunk_size=80,200", "chunk_overlap=20", "k1=1,2", "vector_weight=0.1,0.5"),
    ],
)
def test_every_point_is_what_a_plain_evaluation_gives(texts: tuple[str, ...], whole: bool) -> None:
    judged = some(OURS, 25)
    asked = plan(*texts, whole=whole, workers=1)
    done = run_sweep(judged, settings, asked)
    assert len(done.scores) == len(asked.grid)
    for at in random.Random(7).sample(range(len(asked.grid)), 4):
        expected = plainly(judged, asked, done.points[at])
        found = done.scores[at].measures
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12), done.points[at]
        assert "ndcg@10" in found
    assert done.notices == []


def test_documents_in_many_chunks_are_looked_for_further_down_as_in_an_evaluation() -> None:
    long = "\n\n".join(f"猫は魚を食べる動物である。第{i}章。" * 4 for i in range(60))
    documents = [JudgedDocument("long", "猫", long)]
    documents += [JudgedDocument(f"d{i}", f"犬 {i}", f"犬は猫と遊ぶ動物である。{i} 匹。") for i in range(12)]
    asking = ("猫 動物", "猫 魚", "犬 猫", "動物 匹")
    queries = tuple(JudgedQuery(f"q{i}", text, {f"d{i}": 1.0}) for i, text in enumerate(asking))
    judged = JudgedSet("test", tuple(documents), queries)
    asked = plan("vector_weight=0,0.2,0.6,1", "chunk_size=60,120", "chunk_overlap=10", n_results=10, whole=True)
    done = run_sweep(judged, settings, asked)
    for at, values in enumerate(done.points):
        assert dict(done.scores[at].measures) == pytest.approx(plainly(judged, asked, values), abs=1e-12), values


def test_workers_find_what_one_process_finds() -> None:
    judged = some(OURS, 30)
    texts = ("vector_weight=0:1:0.25", "k1=0.8,1.2,2", "chunk_size=100,200", "chunk_overlap=20")
    alone = run_sweep(judged, settings, plan(*texts, workers=1))
    together = run_sweep(judged, settings, plan(*texts, workers=2))
    assert together.scores == alone.scores
    assert together.best is not None
    assert alone.best is not None
    assert together.best.values == alone.best.values


def test_each_text_is_embedded_once_however_often_documents_are_cut(tmp_path: Path) -> None:
    from bunko.evaluation.eval_library import open_library

    texts = ("chunk_size=80,100000,200000", "chunk_overlap=0")
    run_sweep(some(OURS, 20), settings, plan(*texts, workers=1), persist_dir=tmp_path / "kept")
    with open_library(tmp_path / "kept", settings({})) as library:
        tools = library.tools()
        chunks = [library.store.totals(tool.id).chunks for tool in tools]
    # As things are, in small pieces, and twice in pieces so large that each document is one.
    assert len(tools) == 4
    assert sum(number == len(OURS.documents) for number in chunks) == 2


# The best point, and its proof


def scored(texts: list[str], tuning: list[float], in_force: Mapping[str, Any]) -> SweepResult:
    """Return a sweep whose points have these scores."""
    found = parse_grid(texts)
    now = {f"search.{name}": value for name, value in vars(Settings().search).items()} | dict(in_force)
    done = SweepResult(
        OURS,
        SweepPlan(found, "ndcg@10", "hybrid", 10, False),
        "",
        now,
        frozenset("a"),
        frozenset("b"),
        list(found.points()),
    )
    done.scores = {at: PointScore(value, value, {"ndcg@10": value}) for at, value in enumerate(tuning)}
    return done


def test_of_equal_points_the_one_nearest_to_the_settings_in_force_is_the_best() -> None:
    done = scored(["k1=0.4,0.8,2", "b=0.5,0.75"], [0.5, 0.5, 0.5, 0.5, 0.5, 0.4], {})
    assert [done.points[at] for at in done.rank_points()][:3] == [
        {"k1": 0.8, "b": 0.75}, {"k1": 0.4, "b": 0.75}, {"k1": 0.8, "b": 0.5},
    ]  # fmt: skip


def test_a_measure_of_what_should_not_happen_is_best_when_it_is_low() -> None:
    judged = OURS
    if not any(query.negatives for query in judged.queries):
        pytest.skip("the set forbids nothing")
    done = run_sweep(judged, settings, plan("vector_weight=0:1:0.25", measure="negative_rate", n_results=5))
    assert done.scores[done.rank_points()[0]].tuning == min(one.tuning for one in done.scores.values())


def test_settings_that_hold_nothing_back_are_compared_with_those_that_do() -> None:
    done = run_sweep(OURS, settings, plan("threshold=none,0.01", measure="abstention", mode="semantic"))
    assert done.best is not None
    assert done.current is not None
    assert done.best.values == {"similarity_threshold": 0.01}
    assert (done.best.held_out, done.current.held_out) == (1.0, 0.0)
    assert "similarity_threshold = 0.01" in done.toml


def test_a_mode_that_needs_vectors_is_refused_where_there_are_none() -> None:
    def bare(flags: Mapping[str, object]) -> Settings:
        return settings({"embedding.provider": "none"} | dict(flags))

    with pytest.raises(SettingsError, match="need vectors"):
        run_sweep(some(OURS, 20), bare, plan("mode=bm25,semantic", mode="bm25"))
    assert run_sweep(some(OURS, 20), bare, plan("k1=1,2", mode="bm25")).is_complete


def test_the_map_shows_the_two_settings_that_matter_most() -> None:
    done = scored(
        ["k1=1,2", "b=0.5,0.75,1", "rrf_k=10,60"],
        [0.10, 0.10, 0.20, 0.21, 0.30, 0.30, 0.50, 0.50, 0.60, 0.60, 0.70, 0.71], {},
    )  # fmt: skip
    found = build_heatmap(done)
    assert found is not None
    assert found.y_dimension is not None
    assert (found.x_dimension.name, found.y_dimension.name) == ("b", "k1")
    assert found.cells[0.75, 1.0] == 0.21
    assert found.best == (1.0, 2.0)


def corpus(number: int) -> JudgedSet:
    """Return questions that only b = 0 answers: the right document is long, and a short one says half as much."""
    documents, queries = [], []
    for i in range(number):
        word = f"word{chr(97 + i % 26)}{chr(97 + i // 26)}"
        documents.append(JudgedDocument(f"long{i}", "", f"{word} {word} {word} " + "filler text goes on. " * 60))
        documents.append(JudgedDocument(f"short{i}", "", f"{word} brief"))
        queries.append(JudgedQuery(f"q{i}", word, {f"long{i}": 1.0}, language="en"))
    return JudgedSet("made", tuple(documents), tuple(queries))


def test_what_is_really_better_is_said_to_be() -> None:
    done = run_sweep(corpus(40), settings, plan("b=0,0.75,1", mode="bm25", whole=True))
    assert done.best is not None
    assert done.current is not None
    assert done.best.values == {"b": 0.0}
    assert done.verdict == "better"
    assert done.difference is not None
    assert done.difference.low > 0
    assert done.best.held_out > done.current.held_out
    assert done.toml == '[search]\nb = 0.0\nmode = "bm25"'
    assert conclusion(done).startswith("Better")


def test_a_best_point_that_changes_nothing_is_not_proven() -> None:
    # rrf_k has no part in a search by words: all points are equal, and the one that is in force is not among them.
    done = run_sweep(corpus(10), settings, plan("rrf_k=10,20", mode="bm25", whole=True))
    assert done.verdict == "not proven"
    assert "Not proven" in conclusion(done)


def test_the_settings_in_force_can_win() -> None:
    done = run_sweep(corpus(10), settings, plan("rrf_k=10,60", mode="bm25", whole=True))
    assert done.verdict == "same"
    assert done.toml == ""
    assert "nothing to change" in conclusion(done)


def test_a_mode_that_is_not_usual_is_part_of_the_lines_to_keep() -> None:
    usual = run_sweep(some(OURS, 30), settings, plan("vector_weight=0.1,0.2"))
    assert usual.toml.startswith("[search]\nvector_weight = 0.")
    assert "mode" not in usual.toml
    done = run_sweep(corpus(10), settings, plan("b=0", mode="bm25", whole=True))
    assert 'mode = "bm25"' in done.toml.splitlines()


def test_too_few_questions_cannot_prove_anything() -> None:
    with pytest.raises(SourceError, match="too few questions"):
        run_sweep(corpus(3), settings, plan("b=0,1", mode="bm25", whole=True))
    with pytest.raises(SourceError, match="too few questions with keywords"):
        run_sweep(corpus(30), settings, plan("b=0,1", mode="bm25", measure="keywords"))


def test_points_that_were_measured_before_are_not_measured_again() -> None:
    judged = corpus(10)
    former = {point_key({"b": 0.5}): PointScore(9.0, 9.0, {"ndcg@10": 9.0})}
    done = run_sweep(judged, settings, plan("b=0,0.5", mode="bm25", whole=True), previous_scores=former)
    assert done.reused_count == 1
    assert done.scores[1].tuning == 9.0
    assert done.scores[0].tuning == 1.0
    assert done.notices  # asked again, the point is not as good as it was said to be


# The command


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | Path, ...]:
    """The options that name the made set; reports go where one stands."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    made = corpus(24)
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
    assert "Better, and questions that had no part in the choice agree" in done.out
    assert '[search]\nb = 0.5\nk1 = 1.0\nmode = "bm25"\n' in done.out  # the smallest change that answers them all
    assert sorted(path.name for path in OUTPUT.iterdir()) == ["sweep.csv", "sweep.html", "sweep.json", "sweep.md"]
    found = json.loads((OUTPUT / "sweep.json").read_text(encoding="utf-8"))
    assert found["complete"] is True
    assert len(found["points"]) == found["total"] == 10
    rows = list(csv.DictReader((OUTPUT / "sweep.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["b"], row["k1"]) for row in rows][:3] == [("0", "1"), ("0", "2"), ("0.25", "1")]
    assert float(rows[0]["ndcg@10"]) == pytest.approx(found["points"][0]["measures"]["ndcg@10"], abs=1e-6)
    assert "| 10 |" in (OUTPUT / "sweep.md").read_text(encoding="utf-8")


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
    assert "not what a sweep has written" in run("sweep", *public, "--grid", "b=0", "--resume").err
    (OUTPUT / "sweep.json").unlink()
    assert "no sweep to go on with" in run("sweep", *public, "--grid", "b=0", "--resume").err


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal here")
def test_ctrl_c_keeps_what_was_finished_and_resume_goes_on(tmp_path: Path, run: Run) -> None:
    environ = subprocess_environment(tmp_path)
    command = [
        sys.executable, "-m", "bunko", "sweep", "--grid", "k1=0.1:10:0.1", "--grid", "b=0:1:0.1", "--mode", "bm25",
        "--output-dir", str(tmp_path / "out"),
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stderr is not None
        seen = ""
        while "Measuring" not in seen:
            line = process.stderr.readline()
            assert line, seen
            seen += line
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


def test_a_size_of_chunks_without_a_chunker_means_pieces_of_that_size() -> None:
    found: Grid = parse_grid(["chunk_size=100,200"])
    assert found.overrides({"chunk_size": 100})["chunker.kind"] == "prose"
    assert parse_grid(["chunk_size=100", "kind=paragraphs"]).overrides({"chunk_size": 100, "kind": "paragraphs"})[
        "chunker.kind"
    ] == "paragraphs"  # fmt: skip
