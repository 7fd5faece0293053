"""Judged sets, settings and plans for the tests of sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bunko.evaluation import files
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery, JudgedSet
from bunko.evaluation.sweep.grid import parse_grid
from bunko.evaluation.sweep.result import SweepPlan
from bunko.settings import Settings
from bunko.settings.load import load_settings

OURS = files.find_judged_set(None, None, None, Settings())


def settings_with(overrides: Mapping[str, object]) -> Settings:
    return load_settings(flags=overrides, environ={}).settings


def sample_queries(judged: JudgedSet, count: int) -> JudgedSet:
    """Return a set with every document and some of the questions."""
    return JudgedSet(judged.name, judged.documents, judged.queries[:: len(judged.queries) // count])


def sweep_plan(
    *texts: str, measure: str = "ndcg@10", n_results: int = 10, documents: bool = False, **more: Any
) -> SweepPlan:
    return SweepPlan(parse_grid(texts), measure, more.pop("mode", "hybrid"), n_results, documents, **more)


def generated_set(query_count: int) -> JudgedSet:
    """Return questions that only b = 0 answers: the right document is long, and a short one says half as much."""
    documents, queries = [], []
    for i in range(query_count):
        word = f"word{chr(97 + i % 26)}{chr(97 + i // 26)}"
        documents.append(JudgedDocument(f"long{i}", "", f"{word} {word} {word} " + "filler text goes on. " * 60))
        documents.append(JudgedDocument(f"short{i}", "", f"{word} brief"))
        queries.append(JudgedQuery(f"q{i}", word, {f"long{i}": 1.0}, language="en"))
    return JudgedSet("made", tuple(documents), tuple(queries))
