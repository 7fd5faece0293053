"""A reranker is measured like any other setting, and never mistaken for one that did not run."""

from __future__ import annotations

import json
from pathlib import Path

from bunko.evaluation.dataset import JudgedDocument, JudgedQuery
from bunko.evaluation.eval_library import judged_library
from bunko.evaluation.run import run_queries
from bunko.settings.schema import SearchSection, Settings
from tests.conftest import Run
from tests.tiny_models import write_cross_encoder

# The letters of the query are all in the second text, its only whole word is thrice in the first.
FIRST = JudgedDocument("https://example.com/first", "fur", "cat cat cat")
SECOND = JudgedDocument("https://example.com/second", "sky", "cat is good " + "umbrella in winter " * 8)
QUERIES = [JudgedQuery("q", "cat dog", {SECOND.id: 1.0})]


def test_the_measures_are_those_of_the_reranked_results(tmp_path: Path) -> None:
    model = str(write_cross_encoder(tmp_path / "letters"))
    measures = []
    for reranker in (None, model):
        with judged_library((FIRST, SECOND), Settings(search=SearchSection(reranker=reranker))) as library:
            measures.append(run_queries(library, QUERIES, mode="bm25", n_results=2).measures["mrr@2"])
    assert measures == [0.5, 1.0]


def test_a_reranker_of_the_second_side_is_compared_with_none(
    run: Run, tmp_path: Path, public: tuple[str | Path, ...]
) -> None:
    model = write_cross_encoder(tmp_path / "letters")
    done = run("evaluate", *public, "--mode", "bm25", "--with", f"search.reranker={model}", "--output-dir", tmp_path)
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["comparisons"][0]["second"].startswith("search.reranker=")


def test_a_reranker_that_does_not_run_is_not_measured(run: Run, tmp_path: Path, public: tuple[str | Path, ...]) -> None:
    refused = run("evaluate", *public, "--mode", "bm25", "--with", f"search.reranker={tmp_path / 'nothing'}")
    assert refused.code == 21
    assert "cannot be measured" in refused.err
    assert "does not contain tokenizer.json" in refused.err
