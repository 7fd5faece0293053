"""What every reranker promises."""

from __future__ import annotations

import math
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bunko import rerankers
from bunko.protocols import Reranker
from tests.tiny_models import write_cross_encoder

PROVIDERS = rerankers.builtin_providers()
QUERY = "猫 cat"
TEXTS = ["図書館は九時に開く", "cat 猫", "", "x" * 30_000, "\ud800 lone"]


@pytest.fixture(params=PROVIDERS)
def reranker(request: pytest.FixtureRequest, tmp_path: Path) -> Reranker:
    return PROVIDERS[request.param].build(str(write_cross_encoder(tmp_path / "model")))


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_says_what_it_is_and_names_an_extra_that_exists(name: str) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    provider = PROVIDERS[name]
    assert provider.description.endswith(".")
    assert "\n" not in provider.description
    assert provider.extra in ("", *project["optional-dependencies"])
    assert provider.build("").label


def test_every_module_declares_a_provider_or_is_a_helper() -> None:
    modules = {module.name for module in pkgutil.iter_modules(rerankers.__path__)}
    assert modules == set(PROVIDERS)


def test_each_text_has_a_finite_score_and_the_better_one_a_higher(reranker: Reranker) -> None:
    scores = reranker.scores(QUERY, TEXTS)
    assert scores is not None
    assert len(scores) == len(TEXTS)
    assert all(map(math.isfinite, scores))
    assert max(scores) == scores[1]
    assert reranker.scores(QUERY, []) == []


def test_a_text_has_the_same_score_alone_and_among_others(reranker: Reranker) -> None:
    together = reranker.scores(QUERY, TEXTS)
    assert together is not None
    for text, score in zip(TEXTS, together, strict=True):
        assert reranker.scores(QUERY, [text]) == pytest.approx([score])


def test_a_query_longer_than_the_model_reads_is_cut(reranker: Reranker) -> None:
    scores = reranker.scores("猫 " * 1000, TEXTS)
    assert scores is not None
    assert len(scores) == len(TEXTS)


def test_one_that_is_cancelled_returns_no_scores(reranker: Reranker) -> None:
    assert reranker.scores(QUERY, TEXTS, is_cancelled=lambda: True) is None


def test_whether_it_can_be_used_is_said_without_loading_it(reranker: Reranker) -> None:
    assert reranker.unavailable_reason() == ""
    assert reranker.label == "model"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_missing_package_is_said_to_be_missing(name: str) -> None:
    code = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        f"from bunko import rerankers\nprint(rerankers.builtin_providers()[{name!r}].build('').unavailable_reason())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "bunko[onnx]"' in ran.stdout
