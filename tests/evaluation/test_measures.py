"""The numbers are the ones everybody else computes: trec_eval, through ir_measures, is the oracle."""

from __future__ import annotations

import random
from typing import Any

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.evaluation import measures
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.files import trec_lines
from bunko.evaluation.run import QueryResult, RetrievedDocument, Run

K = 10
# Our name, and the oracle's measure.
MEASURES = {
    f"ndcg@{K}": ir_measures.nDCG @ K, f"recall@{K}": ir_measures.R @ K, f"mrr@{K}": ir_measures.RR @ K,
    f"map@{K}": ir_measures.AP @ K, f"precision@{K}": ir_measures.P @ K, "hit@1": ir_measures.Success @ 1,
    f"hit@{K}": ir_measures.Success @ K, "precision": ir_measures.SetP, "recall": ir_measures.SetR,
    "f1": ir_measures.SetF,
}  # fmt: skip


def oracle(ranked: list[str], grades: dict[str, float]) -> dict[str, float]:
    judgements = [ir_measures.Qrel("q", document, int(grade)) for document, grade in grades.items()]
    found = [ir_measures.ScoredDoc("q", document, float(-rank)) for rank, document in enumerate(ranked[:K])]
    values = {one.measure: one.value for one in ir_measures.iter_calc(list(MEASURES.values()), judgements, found)}
    return {name: values[measure] for name, measure in MEASURES.items()}


@pytest.mark.parametrize("seed", range(40))
def test_every_measure_is_what_trec_eval_computes(seed: int) -> None:
    chance = random.Random(seed)
    documents = [f"d{number}" for number in range(30)]
    ranked = chance.sample(documents, chance.randint(1, 25))
    grades = {one: float(chance.choice([0, 1, 1, 2, 3])) for one in chance.sample(documents, chance.randint(1, 12))}
    grades[chance.choice(documents)] = 1.0
    assert measures.ranking_measures(ranked, grades, K) == pytest.approx(oracle(ranked, grades))


def test_a_grade_earns_gain_without_being_what_is_expected() -> None:
    found = measures.ranking_measures(["near", "right"], {"right": 3.0, "near": 1.0}, K, expected=["right"])
    assert (found[f"mrr@{K}"], found["precision"], found["recall"], found["hit@1"]) == (0.5, 0.5, 1.0, 0.0)
    assert found[f"ndcg@{K}"] == pytest.approx((1 + 3 / 1.5849625) / (3 + 1 / 1.5849625))


@given(
    st.lists(st.sampled_from("abcdefghij"), unique=True),
    st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0.5, 5), min_size=1),
    st.integers(1, 12),
)
def test_every_measure_lies_between_0_and_1(ranked: list[str], grades: dict[str, float], k: int) -> None:
    assert all(0 <= value <= 1 + 1e-12 for value in measures.ranking_measures(ranked, grades, k).values())


def test_precision_and_recall_count_each_source_once() -> None:
    found = measures.precision_recall(["a", "b", "a", "c"], ["a", "d"])
    assert found == pytest.approx((1 / 3, 1 / 2, 2 / 5))


@pytest.mark.parametrize(
    ("retrieved", "expected", "value"),
    [([], ["a"], 0.0), (["b"], ["a"], 0.0), ([], [], 1.0), (["a"], [], 0.0), (["a"], ["a"], 1.0)],
)
def test_precision_and_recall_at_the_edges(retrieved: list[str], expected: list[str], value: float) -> None:
    assert measures.precision_recall(retrieved, expected) == (value, value, value)


def test_ndcg_is_1_when_the_best_come_first_and_less_when_they_do_not() -> None:
    grades = {"best": 3.0, "good": 1.0}
    assert measures.ndcg(["best", "good", "other"], grades) == 1.0
    assert 0 < measures.ndcg(["good", "best", "other"], grades) < 1
    assert measures.ndcg(["other", "best"], grades, k=1) == 0.0


@pytest.mark.parametrize(("rank", "value"), [(1, 1.0), (2, 0.5), (3, 1 / 3)])
def test_the_reciprocal_rank_is_that_of_the_first_right_one(rank: int, value: float) -> None:
    ranked = ["x"] * (rank - 1) + ["a", "b"]
    assert measures.reciprocal_rank(ranked, {"a", "b"}) == pytest.approx(value)
    assert measures.reciprocal_rank(ranked, {"nobody"}) == 0.0


def test_a_run_file_gives_other_programs_the_same_scores(tmp_path: Any) -> None:
    # Equal scores: trec_eval would put them in the order of their names, and ours must hold.
    found = tuple(RetrievedDocument(name, 0.5, 0.0, name, "") for name in ("z last", "a", "m"))
    grades = {"a": 1.0}
    values = measures.ranking_measures([one.uri for one in found], grades, K)
    run = Run("two words", "bm25", (QueryResult(JudgedQuery("q 1", "?", grades), found, values, 1.0),))
    path = tmp_path / "run.txt"
    path.write_text("".join(f"{line}\n" for line in trec_lines(run)), encoding="utf-8")
    read = list(ir_measures.read_trec_run(str(path)))  # type: ignore[no-untyped-call]
    assert [one.doc_id for one in sorted(read, key=lambda one: -one.score)] == ["z_last", "a", "m"]
    judged = [ir_measures.Qrel("q_1", "a", 1)]
    assert (
        ir_measures.calc_aggregate([ir_measures.RR @ K], judged, read)[ir_measures.RR @ K] == values[f"mrr@{K}"] == 0.5
    )
