"""The script that chooses constants of the ranking measures what `bunko evaluate` measures."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.evaluation.dataset import bundled_files, load_judged_set
from bunko.evaluation.eval_library import judged_library
from bunko.evaluation.evaluate import EvaluationPlan, evaluate
from bunko.search import fusion
from bunko.settings import Settings
from bunko.types.ranking import DEFAULT_RANKING

BASE = "_BASE_VECTOR_WEIGHT"


def test_the_shipped_constants_score_as_an_evaluation_and_others_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "training")
    constants = importlib.import_module("constants")
    own = load_judged_set(*bundled_files())
    few = replace(own, queries=tuple(query for query in own.queries if query.is_answerable)[::8])
    bases, weights = (getattr(fusion, BASE), 0.9), (DEFAULT_RANKING.nearest_words, 0.0)
    cap = constants.nearest_words._MAX_COSINE
    groups = [
        constants.Group("base", fusion, {BASE: bases}, {}),
        constants.Group("weight", constants.nearest_words, {"_MAX_COSINE": (cap,)}, {"nearest_words": weights}),
    ]
    monkeypatch.setattr(constants, "GROUPS", groups)

    with judged_library(few.documents, Settings()) as library:
        measured = constants.measure_set(library, "", few)

    evaluation = evaluate(few, Settings(), EvaluationPlan(("bm25", "hybrid"), 10))
    scores = {run.name: run.measures["ndcg@10"] for run in evaluation.runs}
    assert scores == pytest.approx({"bm25": measured.by_words.mean(), "hybrid": measured.shipped.mean()})
    by_base, by_weight = measured.scores
    assert (by_base[bases[:1]] == measured.shipped).all()
    assert (by_base[bases[1:]] != measured.shipped).any()
    assert (by_weight[cap, weights[0]] == measured.shipped).all()
    assert (by_weight[cap, weights[1]] != measured.shipped).any()
    assert bases[0] == getattr(fusion, BASE)
