"""A sweep measures what a plain evaluation measures, chooses on one half of the questions and proves on the other."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError, SourceError
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery, JudgedSet
from bunko.evaluation.evaluate import EvaluationPlan as EvaluationPlan
from bunko.evaluation.evaluate import evaluate
from bunko.evaluation.sweep.grid import parse_grid
from bunko.evaluation.sweep.heatmap import build_heatmap
from bunko.evaluation.sweep.report import conclusion
from bunko.evaluation.sweep.result import PointScore, SweepPlan, SweepResult, point_key, split_queries
from bunko.evaluation.sweep.run import run_sweep
from bunko.settings import Settings
from tests.evaluation.sweep_sets import OURS, generated_set, sample_queries, settings_with, sweep_plan


def evaluate_point(judged: JudgedSet, asked: SweepPlan, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the means that `evaluate` gives for one point."""
    flags = {key: value for key, value in asked.grid.overrides(values).items() if value is not None}
    n_results = values.get("n_results", asked.n_results)
    mode = values.get("mode", asked.mode)
    chunks = None if asked.judge_documents else n_results
    return evaluate(judged, settings_with(flags), EvaluationPlan((mode,), n_results, chunks)).main_run.measures


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


@pytest.mark.slow
@pytest.mark.parametrize("judge_documents", [False, True])
@pytest.mark.parametrize(
    "texts",
    [
        ("vector_weight=0:1:0.05", "k1=0.4,1,2.5", "b=0,0.3,1"),
        ("mode=bm25,semantic,hybrid", "fusion=cc,rrf", "threshold=none,0.6,0.9", "rrf_k=10,60", "n_results=1,5,40"),
        ("min_combined_score=none,0.3,0.6", "vector_weight=0,0.8", "keep_full_matches=true,false", "n_results=3,10"),
        ("chunk_size=80,200", "chunk_overlap=20", "k1=1,2", "vector_weight=0.1,0.5"),
    ],
)
def test_every_point_is_what_a_plain_evaluation_gives(texts: tuple[str, ...], judge_documents: bool) -> None:
    judged = sample_queries(OURS, 25)
    asked = sweep_plan(*texts, documents=judge_documents, workers=1)
    done = run_sweep(judged, settings_with, asked)
    assert len(done.scores) == len(asked.grid)
    for at in random.Random(7).sample(range(len(asked.grid)), 4):
        expected = evaluate_point(judged, asked, done.points[at])
        found = done.scores[at].measures
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12), done.points[at]
        assert "ndcg@10" in found
    assert done.notices == []


@pytest.mark.slow
def test_the_weights_of_wordings_are_measured_with_the_wordings() -> None:
    texts = {document.id: document.text for document in OURS.documents}
    queries = [replace(query, passage=texts[next(iter(query.grades))][:80]) for query in OURS.queries if query.grades]
    judged = JudgedSet("reworded", OURS.documents, tuple(queries[:: len(queries) // 20]))
    asked = sweep_plan("passage_weight=0,0.5,1", "vector_weight=none,0.3", "mode=hybrid,bm25", workers=1)
    done = run_sweep(judged, settings_with, asked)
    for at, values in enumerate(done.points):
        flags = {key: value for key, value in asked.grid.overrides(values).items() if value is not None}
        plan = EvaluationPlan((values["mode"],), 10, 10)  # type: ignore[arg-type]
        alone, reworded = evaluate(judged, settings_with(flags), plan).runs
        assert done.scores[at].measures["ndcg@10"] == pytest.approx(reworded.measures["ndcg@10"], abs=1e-12), values
        if values["passage_weight"]:
            assert reworded.measures["ndcg@10"] > alone.measures["ndcg@10"]


@pytest.mark.slow
def test_documents_in_many_chunks_are_looked_for_further_down_as_in_an_evaluation() -> None:
    long = "\n\n".join(f"猫は魚を食べる動物である。第{i}章。" * 4 for i in range(60))
    documents = [JudgedDocument("long", "猫", long)]
    documents += [JudgedDocument(f"d{i}", f"犬 {i}", f"犬は猫と遊ぶ動物である。{i} 匹。") for i in range(12)]
    asking = ("猫 動物", "猫 魚", "犬 猫", "動物 匹")
    queries = tuple(JudgedQuery(f"q{i}", text, {f"d{i}": 1.0}) for i, text in enumerate(asking))
    judged = JudgedSet("test", tuple(documents), queries)
    asked = sweep_plan(
        "vector_weight=0,0.2,0.6,1", "chunk_size=60,120", "chunk_overlap=10", n_results=10, documents=True
    )
    done = run_sweep(judged, settings_with, asked)
    for at, values in enumerate(done.points):
        assert dict(done.scores[at].measures) == pytest.approx(evaluate_point(judged, asked, values), abs=1e-12), values


@pytest.mark.slow
def test_workers_find_what_one_process_finds() -> None:
    judged = sample_queries(OURS, 30)
    texts = ("vector_weight=0:1:0.25", "k1=0.8,1.2,2", "chunk_size=100,200", "chunk_overlap=20")
    alone = run_sweep(judged, settings_with, sweep_plan(*texts, workers=1))
    together = run_sweep(judged, settings_with, sweep_plan(*texts, workers=2))
    assert together.scores == alone.scores
    assert together.best is not None
    assert alone.best is not None
    assert together.best.values == alone.best.values


@pytest.mark.slow
def test_each_text_is_embedded_once_however_often_documents_are_cut(tmp_path: Path) -> None:
    from bunko.evaluation.eval_library import open_library

    texts = ("chunk_size=80,100000,200000", "chunk_overlap=0")
    run_sweep(sample_queries(OURS, 20), settings_with, sweep_plan(*texts, workers=1), persist_dir=tmp_path / "kept")
    with open_library(tmp_path / "kept", settings_with({})) as library:
        tools = library.tools()
        chunks = [library.store.stats.totals(tool.id).chunks for tool in tools]
    # As things are, in small pieces, and twice in pieces so large that each document is one.
    assert len(tools) == 4
    assert sum(number == len(OURS.documents) for number in chunks) == 2


# The best point, and its proof


def scored_sweep(texts: list[str], tuning: list[float], in_force: Mapping[str, Any]) -> SweepResult:
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
    done = scored_sweep(["k1=0.4,0.8,2", "b=0.5,0.75"], [0.5, 0.5, 0.5, 0.5, 0.5, 0.4], {})
    assert [done.points[at] for at in done.rank_points()][:3] == [
        {"k1": 0.8, "b": 0.75}, {"k1": 0.4, "b": 0.75}, {"k1": 0.8, "b": 0.5},
    ]  # fmt: skip


@pytest.mark.slow
def test_a_measure_of_what_should_not_happen_is_best_when_it_is_low() -> None:
    judged = OURS
    if not any(query.negatives for query in judged.queries):
        pytest.skip("the set forbids nothing")
    done = run_sweep(judged, settings_with, sweep_plan("vector_weight=0:1:0.25", measure="negative_rate", n_results=5))
    assert done.scores[done.rank_points()[0]].tuning == min(one.tuning for one in done.scores.values())


@pytest.mark.slow
def test_settings_that_hold_nothing_back_are_compared_with_those_that_do() -> None:
    done = run_sweep(OURS, settings_with, sweep_plan("threshold=none,0.01", measure="abstention", mode="semantic"))
    assert done.best is not None
    assert done.current is not None
    assert done.best.values == {"similarity_threshold": 0.01}
    assert (done.best.held_out, done.current.held_out) == (1.0, 0.0)
    assert "similarity_threshold = 0.01" in done.toml


@pytest.mark.slow
def test_a_mode_that_needs_vectors_is_refused_where_there_are_none() -> None:
    def bare(flags: Mapping[str, object]) -> Settings:
        return settings_with({"embedding.provider": "none"} | dict(flags))

    with pytest.raises(SettingsError, match="need vectors"):
        run_sweep(sample_queries(OURS, 20), bare, sweep_plan("mode=bm25,semantic", mode="bm25"))
    assert run_sweep(sample_queries(OURS, 20), bare, sweep_plan("k1=1,2", mode="bm25")).is_complete


def test_the_map_shows_the_two_settings_that_matter_most() -> None:
    done = scored_sweep(
        ["k1=1,2", "b=0.5,0.75,1", "rrf_k=10,60"],
        [0.10, 0.10, 0.20, 0.21, 0.30, 0.30, 0.50, 0.50, 0.60, 0.60, 0.70, 0.71], {},
    )  # fmt: skip
    found = build_heatmap(done)
    assert found is not None
    assert found.y_dimension is not None
    assert (found.x_dimension.name, found.y_dimension.name) == ("b", "k1")
    assert found.cells[0.75, 1.0] == 0.21
    assert found.best == (1.0, 2.0)


def test_what_is_really_better_is_said_to_be() -> None:
    done = run_sweep(generated_set(40), settings_with, sweep_plan("b=0,0.75,1", mode="bm25", documents=True))
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
    done = run_sweep(generated_set(10), settings_with, sweep_plan("rrf_k=10,20", mode="bm25", documents=True))
    assert done.verdict == "not proven"
    assert "Not proven" in conclusion(done)


def test_the_settings_in_force_can_win() -> None:
    done = run_sweep(generated_set(10), settings_with, sweep_plan("rrf_k=10,60", mode="bm25", documents=True))
    assert done.verdict == "same"
    assert done.toml == ""
    assert "nothing to change" in conclusion(done)


@pytest.mark.slow
def test_a_mode_that_is_not_usual_is_part_of_the_lines_to_keep() -> None:
    usual = run_sweep(sample_queries(OURS, 30), settings_with, sweep_plan("vector_weight=0.1,0.2"))
    assert usual.toml.startswith("[search]\nvector_weight = 0.")
    assert "mode" not in usual.toml
    done = run_sweep(generated_set(10), settings_with, sweep_plan("b=0", mode="bm25", documents=True))
    assert 'mode = "bm25"' in done.toml.splitlines()


def test_too_few_questions_cannot_prove_anything() -> None:
    with pytest.raises(SourceError, match="too few questions"):
        run_sweep(generated_set(3), settings_with, sweep_plan("b=0,1", mode="bm25", documents=True))
    with pytest.raises(SourceError, match="too few questions with keywords"):
        run_sweep(generated_set(30), settings_with, sweep_plan("b=0,1", mode="bm25", measure="keywords"))


def test_points_that_were_measured_before_are_not_measured_again() -> None:
    judged = generated_set(10)
    former = {point_key({"b": 0.5}): PointScore(9.0, 9.0, {"ndcg@10": 9.0})}
    done = run_sweep(judged, settings_with, sweep_plan("b=0,0.5", mode="bm25", documents=True), previous_scores=former)
    assert done.reused_count == 1
    assert done.scores[1].tuning == 9.0
    assert done.scores[0].tuning == 1.0
    assert done.notices  # asked again, the point is not as good as it was said to be
